#include "adapters/native/lower/lower_internal.h"

enum prony_status lower_parameter(struct lowering *l, int value, const_dnnl_memory_desc_t desc,
				  dnnl_memory_desc_t plain, struct error *err)
{
	struct parameter *parameter = &l->parameters[l->parameter_count++];

	*parameter = (struct parameter){.value = value,
					.plain = plain,
					.folded = -1,
					.copies = {OPERAND_NONE, OPERAND_NONE},
					.keeps_original = onednn_type(l->dnn, desc) != dnnl_f32};
	return program_pair(l->program, desc, &parameter->operand, &parameter->gradient, err);
}

struct parameter *lower_find_parameter(const struct lowering *l, int value)
{
	for (int i = 0; i < l->parameter_count; i++) {
		if (l->parameters[i].value == value)
			return &l->parameters[i];
	}
	return NULL;
}

enum prony_status lower_data_operand(struct lowering *l, int value, int *out, struct error *err)
{
	const struct value *row = &l->graph->values[value];
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	if (l->values[value].operand != OPERAND_NONE) {
		*out = l->values[value].operand;
		return PRONY_OK;
	}
	status = lower_plain(l, dnnl_f32, row->shape.rank, row->shape.dims, &plain, err);
	if (status != PRONY_OK)
		return status;
	if (row->kind == VALUE_PARAMETER) {
		status = lower_parameter(l, value, plain, plain, err);
		*out = lower_find_parameter(l, value)->operand;
	} else {
		struct parameter *state = &l->states[l->state_count++];

		*state = (struct parameter){.value = value,
					    .gradient = OPERAND_NONE,
					    .plain = plain,
					    .folded = -1,
					    .copies = {OPERAND_NONE, OPERAND_NONE}};
		status = program_operand(l->program, plain, REGION_LASTING, &state->operand, err);
		*out = state->operand;
	}
	l->values[value].operand = *out;
	return status;
}
