/* Copies of weights in the layouts that commands need. */
#include "adapters/native/lower/lower.h"
#include "adapters/native/lower/lower_internal.h"

#define COPIES (sizeof(((struct parameter *)NULL)->copies) / sizeof(int))

/* Whether each update also writes that copy. */
static bool is_updated(const struct lowering *l, const struct layout *own,
		       const struct layout *copy)
{
	struct layout same = *own;

	same.type = copy->type;
	return l->recipe->stage == STAGE_TRAIN && l->program->backend->updates_copies &&
	       !own->blob && own->type == DTYPE_F32 && dtype_bytes(copy->type) == 2 &&
	       lower_same(l, &same, copy);
}

enum prony_status lower_weights(struct lowering *l, int value, const struct layout *layout,
				const char *name, int *out, struct error *err)
{
	struct parameter *parameter = lower_find_parameter(l, value);
	const struct layout *own = lower_layout(l, parameter->operand);
	size_t i = 0;
	enum prony_status status;

	for (; i < COPIES && parameter->copies[i] != OPERAND_NONE; i++) {
		*out = parameter->copies[i];
		if (lower_same(l, lower_layout(l, *out), layout))
			return PRONY_OK;
	}
	/* If no step changes the weights, a copy is made once. */
	if (i < COPIES && !lower_same(l, own, layout) && l->recipe->stage != STAGE_TRAIN &&
	    layout_same_dims(own, layout))
		status = program_operand(l->program, layout, REGION_LASTING, out, err);
	else if (i < COPIES && is_updated(l, own, layout))
		status = program_copy(l->program, parameter->operand, layout, out, err);
	else
		status = lower_as(l, parameter->operand, layout, name, out, err);
	if (status == PRONY_OK && i < COPIES && *out != parameter->operand)
		parameter->copies[i] = *out;
	return status;
}

enum prony_status lower_bias_as(struct lowering *l, int n, const struct chain *chain,
				enum dtype type, int *out, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	enum prony_status status = lower_bias(l, n, chain, out, err);
	struct layout row;

	if (status != PRONY_OK || *out == OPERAND_NONE || lower_layout(l, *out)->type == type)
		return status;
	row = layout_row_major(type, 1, lower_layout(l, *out)->dims);
	if (chain->batch_norm < 0)
		return lower_weights(l, node->inputs[2], &row, node->name, out, err);
	status = program_operand(l->program, &row, REGION_LASTING, out, err);
	l->folds[l->fold_count - 1].bias_copy = *out;
	return status;
}

enum prony_status lower_refresh_copies(const struct lowering *l, const struct parameter *parameter,
				       struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && i < COPIES; i++) {
		int copy = parameter->copies[i];

		if (copy != OPERAND_NONE && (l->program->operands[copy].region == REGION_LASTING ||
					     l->program->operands[copy].region == REGION_COPY))
			status = l->program->backend->convert(l->program, parameter->operand, copy,
							      err);
	}
	if (status == PRONY_OK && parameter->prepare)
		parameter->prepare(l->program, parameter);
	return status;
}

bool lower_weights_are_shared(const struct lowering *l, int n)
{
	return graph_forward_readers(l->graph, l->graph->nodes[n].inputs[1]) > 1;
}
