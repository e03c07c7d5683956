/* Functions of two numbers, with ONNX's broadcasting; Expand, and the gradient of a mean. */
#include "adapters/native/cuda/walk.h"

static bool is_whole(const struct lowering *l, int operand, const struct shape *shape)
{
	return layout_has_dims(lower_layout(l, operand), shape->rank, shape->dims);
}

/* The stride of dimension i of y in an operand whose dimensions end with those of y; 0 where it is
 * repeated. */
static int64_t stride_of(const struct layout *y, const struct layout *layout, int i)
{
	int own = i - (y->rank - layout->rank);

	return own < 0 || layout->dims[own] == 1 ? 0 : layout->strides[own];
}

/* Appends y = a op b, where a and b (OPERAND_NONE: only a) are repeated. */
static enum prony_status append_broadcast(struct lowering *l, int n, int y, int a, int b,
					  struct cuda_broadcast *w, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct layout *whole = lower_layout(l, y), *first = lower_layout(l, a);
	const struct layout *second = b == OPERAND_NONE ? first : lower_layout(l, b);
	int64_t elements = (int64_t)layout_elements(whole);
	enum prony_status status = walk_check(node, whole, err);
	int order[TENSOR_MAX_RANK];
	struct work *work;

	if (status != PRONY_OK)
		return status;
	walk_order(whole, order);
	for (int i = 0; i < whole->rank; i++)
		walk_push(&w->a, stride_of(whole, first, order[i]), &w->b,
			  stride_of(whole, second, order[i]), whole->dims[order[i]]);
	work = cuda_kernel(l, node->name, "", "broadcast", whole->type, elements);
	cuda_operand(l, work, y);
	cuda_operand(l, work, a);
	cuda_operand(l, work, b);
	cuda_long(l, work, elements);
	cuda_struct(l, work, w, sizeof(*w));
	return PRONY_OK;
}

static int code_of(enum op op)
{
	return op == OP_ADD   ? BROADCAST_ADD
	       : op == OP_SUB ? BROADCAST_SUB
	       : op == OP_MUL ? BROADCAST_MUL
			      : BROADCAST_DIV;
}

/* What is computed with a function of two numbers: the Relu node that reads its result, or the
 * Relu's gradient, for which the result is dy. Each is -1 if there is none. */
struct fused {
	int relu, relu_gradient;
};

/* Arrays of the same layout. The result overwrites a, which the node read as `value`, if that is
 * allowed. */
static enum prony_status append_binary(struct lowering *l, int n, int value, int a, int b,
				       const struct fused *fused, int *y, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int mask = OPERAND_NONE;
	const struct layout *layout;
	enum prony_status status = PRONY_OK;
	struct work *work;

	if (fused->relu_gradient >= 0)
		status = lower_as(
			l, l->values[l->graph->nodes[fused->relu_gradient].inputs[1]].operand,
			lower_layout(l, a), node->name, &mask, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, value, a, y, err);
	if (status != PRONY_OK)
		return status;
	layout = lower_layout(l, a);
	work = cuda_kernel(l, node->name, "", "binary", layout->type,
			   cuda_packs(layout->type, (int64_t)layout_elements(layout)));
	cuda_operand(l, work, *y);
	cuda_operand(l, work, a);
	cuda_operand(l, work, b);
	cuda_operand(l, work, mask);
	cuda_long(l, work, (int64_t)layout_elements(layout));
	cuda_int(l, work, code_of(node->op));
	cuda_int(l, work, fused->relu >= 0);
	return PRONY_OK;
}

/* The sum of gradients is often read by the gradient of a Relu alone: where a residual block
 * begins. */
static int relu_gradient_of(const struct lowering *l, int n)
{
	int y = l->graph->nodes[n].outputs[0], reader = l->values[y].reader;

	return l->values[y].uses == 1 && reader >= 0 && !l->nodes[reader].absorbed &&
			       l->graph->nodes[reader].op == OP_RELU_GRAD &&
			       l->graph->nodes[reader].inputs[0] == y
		       ? reader
		       : -1;
}

/* Sum and product may overwrite either term. */
static bool swaps(const struct lowering *l, int n, const int *inputs, int a, int b)
{
	enum op op = l->graph->nodes[n].op;

	return (op == OP_ADD || op == OP_MUL) && !lower_may_overwrite(l, n, inputs[0], a) &&
	       lower_may_overwrite(l, n, inputs[1], b);
}

enum prony_status cuda_binary(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const int *inputs = node->inputs;
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	bool equal =
		shape_equal(&l->graph->values[inputs[0]].shape, &l->graph->values[inputs[1]].shape);
	struct cuda_broadcast w = {.code = code_of(node->op)};
	struct fused fused = {lower_fusable_relu(l, n), -1};
	int a, b, y;
	enum dtype type;
	enum prony_status status = lower_value(l, inputs[0], node->name, &a, err);

	if (status == PRONY_OK)
		status = lower_value(l, inputs[1], node->name, &b, err);
	if (status != PRONY_OK)
		return status;
	type = lower_layout(l, a)->type == lower_layout(l, b)->type ? lower_layout(l, a)->type
								    : l->data;
	status = lower_typed(l, a, type, node->name, &a, err);
	if (status == PRONY_OK)
		status = equal ? lower_as(l, b, lower_layout(l, a), node->name, &b, err)
			       : lower_typed(l, b, type, node->name, &b, err);
	if (status == PRONY_OK && equal) {
		fused.relu_gradient = relu_gradient_of(l, n);
		status = swaps(l, n, inputs, a, b)
				 ? append_binary(l, n, inputs[1], b, a, &fused, &y, err)
				 : append_binary(l, n, inputs[0], a, b, &fused, &y, err);
	} else if (status == PRONY_OK) {
		w.relu = fused.relu >= 0;
		status = lower_shaped_like(l, shape, is_whole(l, a, shape) ? a : b, &y, err);
		if (status == PRONY_OK)
			status = append_broadcast(l, n, y, a, b, &w, err);
	}
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = l->nodes[n].dst = y;
	if (fused.relu >= 0)
		lower_absorb(l, fused.relu, y);
	if (fused.relu_gradient >= 0)
		lower_absorb(l, fused.relu_gradient, y);
	return PRONY_OK;
}

enum prony_status cuda_expand(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	struct cuda_broadcast w = {.code = BROADCAST_SCALE, .factor = 1};
	int x, y;
	enum prony_status status = lower_activation(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK)
		status = lower_new(l, lower_layout(l, x)->type, shape->rank, shape->dims, &y, err);
	if (status == PRONY_OK)
		status = append_broadcast(l, n, y, x, OPERAND_NONE, &w, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = y;
	return status;
}

/* The view of dy with the dimensions of x, 1 where they are reduced. */
static enum prony_status with_reduced(struct lowering *l, const struct node *node,
				      const struct shape *x, int dy, int *out, struct error *err)
{
	const struct layout *own = lower_layout(l, dy);
	const struct int_list *removed = &node->attributes.ints;
	int64_t dims[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
	struct layout view;

	for (int i = 0, axis = 0, next = 0; i < x->rank; i++) {
		bool reduced = axis < removed->count && removed->items[axis] == i;

		axis += reduced;
		dims[i] = reduced ? 1 : x->dims[i];
		strides[i] = reduced ? 1 : own->strides[next];
		next += !reduced || node->attributes.keep_dims;
	}
	view = layout_strided(own->type, x->rank, dims, strides);
	return program_alias(l->program, dy, &view, 0, out, err);
}

enum prony_status cuda_mean_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *x = &l->graph->values[node->outputs[0]].shape;
	const struct shape *y = &l->graph->values[node->inputs[0]].shape;
	double count = (double)shape_elements(x) / (double)shape_elements(y);
	struct cuda_broadcast w = {.code = BROADCAST_SCALE, .factor = (float)(1 / count)};
	int dy, dx;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_shaped_like(l, x, l->nodes[node->differentiates].src, &dx, err);
	if (status == PRONY_OK)
		status = lower_typed(l, dy, lower_layout(l, dx)->type, node->name, &dy, err);
	if (status == PRONY_OK)
		status = with_reduced(l, node, x, dy, &dy, err);
	if (status == PRONY_OK)
		status = append_broadcast(l, n, dx, dy, OPERAND_NONE, &w, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
