#include <string.h>

#include "adapters/native/lower/lower_internal.h"

/* Layouts, and operands in the layout that somebody wants. */

static enum prony_status reorder_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
				    const char *name, const char *what, int *out, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_attr_t attributes;
	enum prony_status status = lower_attributes(l, false, &attributes, err);

	if (status != PRONY_OK)
		return status;
	status = onednn_check(
		dnn->reorder_primitive_desc_create(&pd, l->program->operands[operand].desc,
						   dnn->engine, desc, dnn->engine, attributes),
		"reorder", name, err);
	dnn->primitive_attr_destroy(attributes);
	if (status != PRONY_OK)
		return status;
	status = program_operand(l->program, desc, REGION_PLANNED, out, err);
	if (status == PRONY_OK)
		status = program_primitive(l->program, name, what, pd,
					   (const int[]){DNNL_ARG_FROM, DNNL_ARG_TO},
					   (const int[]){operand, *out}, 2, err);
	dnn->primitive_desc_destroy(pd);
	return status;
}

static enum prony_status reorder(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
				 const char *name, int *out, struct error *err)
{
	return reorder_as(l, operand, desc, name, "reorder", out, err);
}

enum prony_status lower_part(struct lowering *l, int view, const_dnnl_memory_desc_t desc,
			     const char *name, int *out, struct error *err)
{
	return reorder_as(l, view, desc, name, "part", out, err);
}

/* Another shape: through row-major memory, where it is only another name for the same bytes. */
static enum prony_status reshape(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
				 const char *name, int *out, struct error *err)
{
	const_dnnl_memory_desc_t own = l->program->operands[operand].desc;
	dnnl_memory_desc_t plain = NULL;
	int row_major = operand;
	enum prony_status status = lower_plain(l, lower_type(l, operand), lower_rank(l, own),
					       lower_dims(l, own), &plain, err);

	if (status != PRONY_OK)
		return status;
	if (!l->dnn->memory_desc_equal(own, plain))
		status = reorder(l, operand, plain, name, &row_major, err);
	l->dnn->memory_desc_destroy(plain);
	if (status != PRONY_OK)
		return status;
	status = lower_plain(l, lower_type(l, operand), lower_rank(l, desc), lower_dims(l, desc),
			     &plain, err);
	if (status != PRONY_OK)
		return status;
	status = program_alias(l->program, row_major, plain, 0, out, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

enum prony_status lower_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
			   const char *name, int *out, struct error *err)
{
	if (!lower_same_dims(l, l->program->operands[operand].desc, desc)) {
		enum prony_status status = reshape(l, operand, desc, name, &operand, err);

		if (status != PRONY_OK)
			return status;
	}
	if (l->dnn->memory_desc_equal(l->program->operands[operand].desc, desc)) {
		*out = operand;
		return PRONY_OK;
	}
	return reorder(l, operand, desc, name, out, err);
}

enum prony_status lower_typed(struct lowering *l, int operand, dnnl_data_type_t type,
			      const char *name, int *out, struct error *err)
{
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status;

	*out = operand;
	if (lower_type(l, operand) == type)
		return PRONY_OK;
	status = lower_retype(l, l->program->operands[operand].desc, type, &desc, err);
	if (status != PRONY_OK)
		return status;
	status = lower_as(l, operand, desc, name, out, err);
	l->dnn->memory_desc_destroy(desc);
	return status;
}

enum prony_status lower_value(struct lowering *l, int value, const char *name, int *out,
			      struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	int operand = l->values[value].operand;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	if (operand == OPERAND_NONE)
		return lower_data_operand(l, value, out, err);
	status = lower_plain(l, lower_type(l, operand), shape->rank, shape->dims, &plain, err);
	if (status != PRONY_OK)
		return status;
	if (lower_same_dims(l, l->program->operands[operand].desc, plain))
		*out = operand;
	else
		status = lower_as(l, operand, plain, name, out, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

enum prony_status lower_activation(struct lowering *l, int value, const char *name, int *out,
				   struct error *err)
{
	enum prony_status status = lower_value(l, value, name, out, err);

	return status == PRONY_OK ? lower_typed(l, *out, l->data, name, out, err) : status;
}

enum prony_status lower_unblocked(struct lowering *l, int operand, const char *name, int *out,
				  struct error *err)
{
	const_dnnl_memory_desc_t desc = l->program->operands[operand].desc;
	dnnl_memory_desc_t plain = NULL;
	int blocks = 0;
	enum prony_status status;

	*out = operand;
	l->dnn->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
	if (blocks == 0)
		return PRONY_OK;
	status = lower_plain(l, lower_type(l, operand), lower_rank(l, desc), lower_dims(l, desc),
			     &plain, err);
	if (status != PRONY_OK)
		return status;
	status = lower_as(l, operand, plain, name, out, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

/* Whether the gradient of node n reads `value`. */
static bool gradient_reads(const struct lowering *l, int n, int value)
{
	for (int i = l->graph->forward_count; l->training && i < l->graph->node_count; i++) {
		const struct node *node = &l->graph->nodes[i];

		for (int k = 0; node->differentiates == n && k < node->input_count; k++) {
			if (node->inputs[k] == value)
				return true;
		}
	}
	return false;
}

bool lower_may_overwrite(const struct lowering *l, int n, int value, int from)
{
	const struct value_state *state = &l->values[value];
	int root = program_root(l->program, from);

	/* A copy that was made for this node: only its gradient may want it, too. */
	if (root != program_root(l->program, state->operand))
		return !gradient_reads(l, n, value);
	return l->values[state->class].last_use <= n &&
	       l->program->operands[root].region == REGION_PLANNED;
}

enum prony_status lower_result(struct lowering *l, int n, int value, int from, int *out,
			       struct error *err)
{
	if (lower_may_overwrite(l, n, value, from)) {
		*out = from;
		return PRONY_OK;
	}
	return program_operand(l->program, l->program->operands[from].desc, REGION_PLANNED, out,
			       err);
}

enum prony_status lower_unary(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	enum prony_status status =
		lower_result(l, n, node->inputs[0], state->src, &state->dst, err);

	if (status == PRONY_OK)
		status = program_primitive(l->program, node->name, "forward", state->forward,
					   (const int[]){DNNL_ARG_SRC, DNNL_ARG_DST},
					   (const int[]){state->src, state->dst}, 2, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

enum prony_status lower_unary_grad(struct lowering *l, int n, int like, int *dy, int *dx,
				   struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	enum prony_status status = lower_value(l, node->inputs[0], node->name, dy, err);

	if (status == PRONY_OK)
		status = lower_as(l, *dy, l->program->operands[like].desc, node->name, dy, err);
	return status == PRONY_OK ? lower_result(l, n, node->inputs[0], *dy, dx, err) : status;
}
