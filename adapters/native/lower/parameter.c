/* Weights and states: their operands. */
#include "adapters/native/lower/lower_internal.h"

static const struct parameter no_parameter = {
	.gradient = OPERAND_NONE, .folded = -1, .copies = {OPERAND_NONE, OPERAND_NONE}};

struct parameter *lower_find_parameter(const struct lowering *l, int value)
{
	for (int i = 0; i < l->parameter_count; i++) {
		if (l->parameters[i].value == value)
			return &l->parameters[i];
	}
	return NULL;
}

enum prony_status lower_parameter(struct lowering *l, int value, const struct layout *layout,
				  const struct layout *outside, struct error *err)
{
	struct parameter *parameter = lower_find_parameter(l, value);

	if (parameter)
		return PRONY_OK;
	parameter = &l->parameters[l->parameter_count++];
	*parameter = no_parameter;
	parameter->value = value;
	parameter->outside = *outside;
	parameter->keeps_original = layout->type != DTYPE_F32;
	return program_pair(l->program, layout, &parameter->operand, &parameter->gradient, err);
}

size_t lower_decayed_first(struct lowering *l)
{
	struct operand *operands = l->program->operands;
	size_t bytes = 0, decayed = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < l->parameter_count; i++) {
			const struct parameter *parameter = &l->parameters[i];
			bool decays = l->graph->values[parameter->value].shape.rank >= 2;

			if (decays != (pass == 0))
				continue;
			operands[parameter->operand].offset = bytes;
			operands[parameter->gradient].offset = bytes;
			for (size_t k = 0; k < sizeof(parameter->copies) / sizeof(int); k++)
				if (parameter->copies[k] != OPERAND_NONE &&
				    operands[parameter->copies[k]].region == REGION_COPY)
					operands[parameter->copies[k]].offset = bytes / 2;
			bytes += program_pair_bytes(l->program, parameter->operand);
		}
		decayed = pass == 0 ? bytes : decayed;
	}
	return decayed;
}

enum prony_status lower_data_operand(struct lowering *l, int value, int *out, struct error *err)
{
	const struct value *data = &l->graph->values[value];
	struct layout rows = layout_row_major(DTYPE_F32, data->shape.rank, data->shape.dims);
	struct parameter *state;
	enum prony_status status;

	*out = l->values[value].operand;
	if (*out != OPERAND_NONE)
		return PRONY_OK;
	if (data->kind == VALUE_PARAMETER) {
		status = lower_parameter(l, value, &rows, &rows, err);
		*out = lower_find_parameter(l, value)->operand;
	} else {
		state = &l->states[l->state_count++];
		*state = no_parameter;
		state->value = value;
		state->outside = rows;
		status = program_operand(l->program, &rows, REGION_LASTING, &state->operand, err);
		*out = state->operand;
	}
	l->values[value].operand = *out;
	return status;
}

enum prony_status lower_channel_gradient(struct lowering *l, const struct node *node, int k,
					 int parameter, int *out, struct error *err)
{
	int value = node->output_count > k ? node->outputs[k] : VALUE_NONE;
	const struct parameter *found = lower_find_parameter(l, parameter);
	enum prony_status status;

	if (found && value != VALUE_NONE && l->graph->values[parameter].gradient == value) {
		*out = l->values[value].operand = found->gradient;
		return PRONY_OK;
	}
	status = program_operand(l->program,
				 &l->program->operands[l->values[parameter].operand].layout,
				 REGION_PLANNED, out, err);
	if (status == PRONY_OK && value != VALUE_NONE)
		l->values[value].operand = *out;
	return status;
}

enum prony_status lower_weight_gradient(struct lowering *l, const struct node *node, int value,
					const struct layout *layout, int *out, struct error *err)
{
	enum prony_status status;

	if (l->graph->values[value].gradient == node->outputs[0]) {
		*out = lower_find_parameter(l, value)->gradient;
		return PRONY_OK;
	}
	status = program_operand(l->program, layout, REGION_PLANNED, out, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = *out;
	return status;
}
