/* Provides operands in a wanted layout. */
#include "adapters/native/lower/lower_internal.h"

const struct layout *lower_layout(const struct lowering *l, int operand)
{
	return &l->program->operands[operand].layout;
}

bool lower_same(const struct lowering *l, const struct layout *a, const struct layout *b)
{
	if (!a->blob && !b->blob)
		return layout_same_strides(a, b);
	return a->blob && b->blob && l->program->backend->same_layout(l->program->device, a, b);
}

static bool is_channels_last(const struct layout *layout)
{
	struct layout last;

	if (layout->blob || layout->rank != 4)
		return false;
	last = layout_channels_last(layout->type, 4, layout->dims);
	return layout_same_strides(layout, &last);
}

struct layout lower_like(const struct lowering *l, const struct layout *layout, enum dtype type,
			 int rank, const int64_t *dims)
{
	struct layout like;

	if (layout->blob &&
	    l->program->backend->same_blocks(l->program->device, layout, type, rank, dims, &like))
		return like;
	if (is_channels_last(layout) && rank == 4)
		return layout_channels_last(type, rank, dims);
	return layout_row_major(type, rank, dims);
}

static enum prony_status copy_as(struct lowering *l, int operand, const struct layout *layout,
				 const char *name, const char *what, int *out, struct error *err)
{
	int from = operand;
	enum prony_status status = program_operand(l->program, layout, REGION_PLANNED, out, err);

	return status == PRONY_OK ? l->program->backend->copy(l, from, *out, name, what, err)
				  : status;
}

enum prony_status lower_part(struct lowering *l, int view, const struct layout *layout,
			     const char *name, int *out, struct error *err)
{
	return copy_as(l, view, layout, name, "part", out, err);
}

/* Reshapes: in row-major order the result is a view of the same bytes. */
static enum prony_status reshape(struct lowering *l, int operand, const struct layout *layout,
				 const char *name, int *out, struct error *err)
{
	const struct layout *own = lower_layout(l, operand);
	struct layout rows = layout_row_major(own->type, own->rank, own->dims);
	struct layout reshaped = layout_row_major(own->type, layout->rank, layout->dims);

	if (!lower_same(l, own, &rows)) {
		enum prony_status status =
			copy_as(l, operand, &rows, name, "reorder", &operand, err);

		if (status != PRONY_OK)
			return status;
	}
	return program_alias(l->program, operand, &reshaped, 0, out, err);
}

enum prony_status lower_as(struct lowering *l, int operand, const struct layout *layout,
			   const char *name, int *out, struct error *err)
{
	if (!layout_same_dims(lower_layout(l, operand), layout)) {
		enum prony_status status = reshape(l, operand, layout, name, &operand, err);

		if (status != PRONY_OK)
			return status;
	}
	if (lower_same(l, lower_layout(l, operand), layout)) {
		*out = operand;
		return PRONY_OK;
	}
	return copy_as(l, operand, layout, name, "reorder", out, err);
}

enum prony_status lower_new(struct lowering *l, enum dtype type, int rank, const int64_t *dims,
			    int *out, struct error *err)
{
	struct layout layout = layout_row_major(type, rank, dims);

	return program_operand(l->program, &layout, REGION_PLANNED, out, err);
}

enum prony_status lower_typed(struct lowering *l, int operand, enum dtype type, const char *name,
			      int *out, struct error *err)
{
	const struct layout *own = lower_layout(l, operand);
	struct layout layout;

	*out = operand;
	if (own->type == type)
		return PRONY_OK;
	layout = own->blob || is_channels_last(own)
			 ? lower_like(l, own, type, own->rank, own->dims)
			 : layout_strided(type, own->rank, own->dims, own->strides);
	return lower_as(l, operand, &layout, name, out, err);
}

enum prony_status lower_value(struct lowering *l, int value, const char *name, int *out,
			      struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	int operand = l->values[value].operand;
	struct layout rows;

	if (operand == OPERAND_NONE)
		return lower_data_operand(l, value, out, err);
	rows = layout_row_major(lower_layout(l, operand)->type, shape->rank, shape->dims);
	*out = operand;
	return layout_same_dims(lower_layout(l, operand), &rows)
		       ? PRONY_OK
		       : lower_as(l, operand, &rows, name, out, err);
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
	const struct layout *own = lower_layout(l, operand);
	struct layout rows = layout_row_major(own->type, own->rank, own->dims);

	*out = operand;
	return own->blob ? lower_as(l, operand, &rows, name, out, err) : PRONY_OK;
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

	/* A copy that was made for this node: only its gradient may also read it. */
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
	return program_operand(l->program, lower_layout(l, from), REGION_PLANNED, out, err);
}

enum prony_status lower_unary_grad(struct lowering *l, int n, int like, int *dy, int *dx,
				   struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	enum prony_status status = lower_value(l, node->inputs[0], node->name, dy, err);

	if (status == PRONY_OK)
		status = lower_as(l, *dy, lower_layout(l, like), node->name, dy, err);
	return status == PRONY_OK ? lower_result(l, n, node->inputs[0], *dy, dx, err) : status;
}

int lower_largest(const struct lowering *l, const int *operands, int count)
{
	int best = 0;

	for (int i = 1; i < count; i++) {
		if (lower_layout(l, operands[i])->bytes > lower_layout(l, operands[best])->bytes)
			best = i;
	}
	return operands[best];
}

enum prony_status lower_shaped_like(struct lowering *l, const struct shape *shape, int model,
				    int *out, struct error *err)
{
	if (layout_has_dims(lower_layout(l, model), shape->rank, shape->dims))
		return program_operand(l->program, lower_layout(l, model), REGION_PLANNED, out,
				       err);
	return lower_new(l, lower_layout(l, model)->type, shape->rank, shape->dims, out, err);
}
