/* Operators that move data without computing. Flatten, Reshape and Transpose are other layouts of
 * the same memory if such a layout exists; parts of arrays are copied from or into a view. */
#include "adapters/native/lower/lower_internal.h"

enum prony_status lower_rename(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];

	(void)err;
	l->values[node->outputs[0]].operand = l->values[node->inputs[l->nodes[n].passed]].operand;
	return PRONY_OK;
}

/* Whether only attentions, and matrix products if `products`, read the value: they take any
 * strides. Nodes between that only move data count for their readers. */
static bool takes_strides(const struct lowering *l, int value, bool products)
{
	for (int n = 0; n < l->graph->node_count; n++) {
		const struct node *node = &l->graph->nodes[n];
		bool moves = node->op == OP_TRANSPOSE || l->nodes[n].passes_on ||
			     (node->op == OP_RESHAPE && !products);

		for (int k = 0; l->nodes[n].needed && k < node->input_count; k++) {
			if (node->inputs[k] == value && !l->nodes[n].absorbed &&
			    !l->nodes[n].attention && !(products && node->op == OP_MATMUL) &&
			    (!moves || !takes_strides(l, node->outputs[0], products)))
				return false;
		}
	}
	return value != l->graph->logits && l->graph->values[value].kind != VALUE_PARAMETER;
}

enum prony_status lower_reshape(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	int x = l->values[node->inputs[0]].operand;
	const struct layout *own = lower_layout(l, x);
	struct layout rows;
	enum prony_status status;

	/* A matrix keeps the layout of its input, because most readers, such as matrix products,
	 * need no other order. The same holds for a value that returns to the dimensions that its
	 * operand still has, such as the gradient of a Flatten. */
	if ((shape->rank == 2 && own->rank >= 2 && own->dims[0] == shape->dims[0]) ||
	    layout_has_dims(own, shape->rank, shape->dims)) {
		l->values[node->outputs[0]].operand = x;
		return PRONY_OK;
	}
	status = lower_value(l, node->inputs[0], node->name, &x, err);
	if (status != PRONY_OK)
		return status;
	if (layout_split(lower_layout(l, x), shape->rank, shape->dims, &rows) &&
	    takes_strides(l, node->outputs[0], false))
		return program_alias(l->program, x, &rows, 0, &l->values[node->outputs[0]].operand,
				     err);
	rows = layout_row_major(lower_layout(l, x)->type, shape->rank, shape->dims);
	return lower_as(l, x, &rows, node->name, &l->values[node->outputs[0]].operand, err);
}

/* Dimension i of the output is dimension order[i] of the input. Often this only renames a layout
 * (NHWC to NCHW). */
enum prony_status lower_transpose(struct lowering *l, int n, struct error *err)
{
	const struct backend *backend = l->program->backend;
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	int order[TENSOR_MAX_RANK] = {0}, x, view;
	struct layout permuted, like;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	for (int i = 0; i < shape->rank; i++)
		order[i] = (int)node->attributes.ints.items[i];
	if (status == PRONY_OK && lower_layout(l, x)->blob &&
	    !backend->permute(l->program->device, lower_layout(l, x), order, &permuted))
		status = lower_unblocked(l, x, node->name, &x, err);
	if (status != PRONY_OK)
		return status;
	if (!lower_layout(l, x)->blob)
		permuted = layout_permuted(lower_layout(l, x), order);
	like = lower_like(l, &permuted, permuted.type, shape->rank, shape->dims);
	/* If only strides of dimensions of 1 differ, the usual ones are used: some of oneDNN's sums
	 * misread others. */
	status = program_alias(l->program, x, lower_same(l, &permuted, &like) ? &like : &permuted,
			       0, &view, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = view;
	if (!lower_layout(l, x)->blob && takes_strides(l, node->outputs[0], true))
		return PRONY_OK;
	return lower_as(l, view, &like, node->name, &l->values[node->outputs[0]].operand, err);
}

/* The position of a node's smaller array within the larger one: `dims` elements of each dimension
 * from `start` on; along `axis`, every step-th element. */
struct part {
	int64_t start[TENSOR_MAX_RANK], dims[TENSOR_MAX_RANK];
	int64_t step;
	int axis, rank;
};

static struct part part_of(const struct node *node, const struct shape *smaller)
{
	const struct attributes *a = &node->attributes;
	struct part part = {.step = 1, .rank = smaller->rank};

	for (int i = 0; i < smaller->rank; i++)
		part.dims[i] = smaller->dims[i];
	if (node->op == OP_SLICE || node->op == OP_SLICE_GRAD) {
		part.axis = (int)a->axis;
		part.start[part.axis] = a->start;
		part.step = a->step;
	} else {
		for (int i = 0; i < smaller->rank; i++)
			part.start[i] = a->ints.items[i];
	}
	return part;
}

/* A view of the part within `operand`; *found is false if the layout does not allow one. */
static enum prony_status view_part(struct lowering *l, int operand, const struct part *part,
				   bool *found, int *out, struct error *err)
{
	const struct layout *whole = lower_layout(l, operand);
	struct layout view;
	int64_t shift = 0;

	if (whole->blob) {
		*found = l->program->backend->view(l->program->device, whole, part->start,
						   part->dims, &view);
	} else {
		*found = true;
		view = layout_strided(whole->type, part->rank, part->dims, whole->strides);
		for (int i = 0; i < part->rank; i++)
			shift += part->start[i] * whole->strides[i];
	}
	return *found ? program_alias(l->program, operand, &view,
				      (size_t)shift * dtype_bytes(view.type), out, err)
		      : PRONY_OK;
}

/* The positions of the part's elements, or of all elements, in an unblocked operand. */
static struct box box_of(const struct lowering *l, int operand, const struct part *part)
{
	const struct layout *layout = lower_layout(l, operand);
	struct box box = {0};

	for (int i = 0; i < layout->rank; i++) {
		box.strides[i] = layout->strides[i];
		if (part)
			box.start += part->start[i] * layout->strides[i];
	}
	if (part)
		box.strides[part->axis] *= part->step;
	return box;
}

/* Copies every step-th element, because such a part has no view. */
static enum prony_status take_steps(struct lowering *l, int n, const struct part *part,
				    struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct box source, target;
	int x, y;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, x, node->name, &x, err);
	if (status == PRONY_OK)
		status = lower_new(l, lower_layout(l, x)->type, part->rank, part->dims, &y, err);
	if (status != PRONY_OK)
		return status;
	source = box_of(l, x, part);
	target = box_of(l, y, NULL);
	l->program->backend->copy_box(l, node->name, part->rank, part->dims, x, &source, y,
				      &target);
	l->values[node->outputs[0]].operand = y;
	return PRONY_OK;
}

enum prony_status lower_take(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	struct part part = part_of(node, shape);
	struct layout like;
	bool found;
	int x, view;
	enum prony_status status;

	if (part.step > 1)
		return take_steps(l, n, &part, err);
	status = lower_value(l, node->inputs[0], node->name, &x, err);
	if (status != PRONY_OK)
		return status;
	like = lower_like(l, lower_layout(l, x), lower_layout(l, x)->type, shape->rank,
			  shape->dims);
	status = view_part(l, x, &part, &found, &view, err);
	if (status == PRONY_OK && !found) {
		status = lower_unblocked(l, x, node->name, &x, err);
		if (status == PRONY_OK)
			status = view_part(l, x, &part, &found, &view, err);
	}
	if (status == PRONY_OK && found && !lower_layout(l, view)->blob &&
	    takes_strides(l, node->outputs[0], false)) {
		l->values[node->outputs[0]].operand = view;
		return PRONY_OK;
	}
	/* A copy: a view has gaps, which most implementations do not support. */
	return status == PRONY_OK ? lower_part(l, view, &like, node->name,
					       &l->values[node->outputs[0]].operand, err)
				  : status;
}

/*
 * Creates the larger array's operand. Its layout follows the part's if that layout allows a view.
 */
static enum prony_status make_whole(struct lowering *l, int n, int x, double value,
				    const struct part *part, int *whole, struct error *err)
{
	const struct shape *shape = &l->graph->values[l->graph->nodes[n].outputs[0]].shape;
	const struct layout *own = lower_layout(l, x);
	struct layout layout = layout_row_major(own->type, shape->rank, shape->dims);
	/* The padding of blocked channels must stay zero. */
	bool follow = value == 0 && part->step == 1;

	for (int i = 0; i < 2 && i < part->rank; i++)
		follow = follow && part->dims[i] == shape->dims[i];
	if (follow)
		layout = lower_like(l, own, own->type, shape->rank, shape->dims);
	return program_operand(l->program, &layout, REGION_PLANNED, whole, err);
}

/* Appends the copy of x into a view of the part of the larger array. */
static enum prony_status put_part(struct lowering *l, const char *name, int x, int whole,
				  const struct part *part, struct error *err)
{
	bool found;
	int view;
	enum prony_status status = view_part(l, whole, part, &found, &view, err);

	if (status == PRONY_OK && !found)
		return error_set(err, PRONY_UNSUPPORTED,
				 "part of '%s' cannot be addressed in its memory layout", name);
	return status == PRONY_OK ? l->program->backend->copy(l, x, view, name, "copy", err)
				  : status;
}

enum prony_status lower_put(struct lowering *l, int n, struct error *err)
{
	const struct backend *backend = l->program->backend;
	const struct node *node = &l->graph->nodes[n];
	double value = node->op == OP_PAD ? node->attributes.value : 0;
	struct part part = part_of(node, &l->graph->values[node->inputs[0]].shape);
	struct box source, target;
	int x, whole;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK && part.step > 1)
		status = lower_unblocked(l, x, node->name, &x, err);
	if (status == PRONY_OK)
		status = make_whole(l, n, x, value, &part, &whole, err);
	if (status != PRONY_OK)
		return status;
	backend->fill(l, node->name, whole, value);
	if (part.step > 1) {
		source = box_of(l, x, NULL);
		target = box_of(l, whole, &part);
		backend->copy_box(l, node->name, part.rank, part.dims, x, &source, whole, &target);
	} else {
		status = put_part(l, node->name, x, whole, &part, err);
	}
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = whole;
	return status;
}
