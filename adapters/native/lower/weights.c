#include "adapters/native/lower/lower.h"
#include "adapters/native/lower/lower_internal.h"

#define COPIES (sizeof(((struct parameter *)NULL)->copies) / sizeof(int))

/* Whether weights can be kept in that layout from step to step: nobody changes them. */
static bool can_last(const struct lowering *l, const_dnnl_memory_desc_t own,
		     const_dnnl_memory_desc_t desc)
{
	return l->recipe->stage != STAGE_TRAIN && lower_same_dims(l, own, desc);
}

enum prony_status lower_weights(struct lowering *l, int value, const_dnnl_memory_desc_t desc,
				const char *name, int *out, struct error *err)
{
	struct parameter *parameter = lower_find_parameter(l, value);
	const_dnnl_memory_desc_t own = l->program->operands[parameter->operand].desc;
	size_t i = 0;
	enum prony_status status;

	for (; i < COPIES && parameter->copies[i] != OPERAND_NONE; i++) {
		*out = parameter->copies[i];
		if (l->dnn->memory_desc_equal(l->program->operands[*out].desc, desc))
			return PRONY_OK;
	}
	if (i < COPIES && !l->dnn->memory_desc_equal(own, desc) && can_last(l, own, desc))
		status = program_operand(l->program, desc, REGION_LASTING, out, err);
	else
		status = lower_as(l, parameter->operand, desc, name, out, err);
	if (status == PRONY_OK && i < COPIES && *out != parameter->operand)
		parameter->copies[i] = *out;
	return status;
}

enum prony_status lower_refresh_copies(const struct lowering *l, const struct parameter *parameter,
				       struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && i < COPIES; i++) {
		int copy = parameter->copies[i];

		if (copy != OPERAND_NONE && l->program->operands[copy].region == REGION_LASTING)
			status = program_load(l->program, copy,
					      l->program->operands[parameter->operand].desc,
					      l->program->operands[parameter->operand].data, err);
	}
	if (status == PRONY_OK && parameter->prepare)
		parameter->prepare(l->program, parameter);
	return status;
}

int64_t lower_parameter_elements(const struct lowering *l)
{
	int64_t total = 0;

	for (int i = 0; i < l->parameter_count; i++) {
		const_dnnl_memory_desc_t desc = l->program->operands[l->parameters[i].operand].desc;
		int64_t elements = 1;

		for (int k = 0; k < lower_rank(l, desc); k++)
			elements *= lower_dims(l, desc)[k];
		total += elements;
	}
	return total;
}
