#include "graph/operator_rows.h"

#include <float.h>

#include "graph/backward.h"

const struct attribute_row dropout_attributes[] = {
	{"ratio", ATTRIBUTE_REAL, offsetof(struct attributes, ratio), 0.5, 0},
	{.name = NULL},
};

const struct attribute_row hard_sigmoid_attributes[] = {
	{"alpha", ATTRIBUTE_REAL, offsetof(struct attributes, alpha), 0.2, 0},
	{"beta", ATTRIBUTE_REAL, offsetof(struct attributes, beta), 0.5, 0},
	{.name = NULL},
};

const struct attribute_row clip_attributes[] = {
	{"min", ATTRIBUTE_REAL, offsetof(struct attributes, min), -(double)FLT_MAX, 1},
	{"max", ATTRIBUTE_REAL, offsetof(struct attributes, max), (double)FLT_MAX, 2},
	{.name = NULL},
};

enum prony_status unary_infer(struct graph *graph, struct node *node, struct error *err)
{
	return node_copy_shape(graph, node, err);
}

enum prony_status clip_infer(struct graph *graph, struct node *node, struct error *err)
{
	if (!(node->attributes.min <= node->attributes.max))
		return node_error(node, err, "min is %g, max is %g", node->attributes.min,
				  node->attributes.max);
	return node_copy_shape(graph, node, err);
}

enum prony_status relu_backward(struct graph *graph, const struct node *node, struct error *err)
{
	return backward_unary(graph, node, OP_RELU_GRAD, node->outputs[0], err);
}

enum prony_status tanh_backward(struct graph *graph, const struct node *node, struct error *err)
{
	return backward_unary(graph, node, OP_TANH_GRAD, node->outputs[0], err);
}

enum prony_status sigmoid_backward(struct graph *graph, const struct node *node, struct error *err)
{
	return backward_unary(graph, node, OP_SIGMOID_GRAD, node->outputs[0], err);
}

enum prony_status hard_sigmoid_backward(struct graph *graph, const struct node *node,
					struct error *err)
{
	return backward_unary(graph, node, OP_HARD_SIGMOID_GRAD, node->inputs[0], err);
}

enum prony_status hard_swish_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	return backward_unary(graph, node, OP_HARD_SWISH_GRAD, node->inputs[0], err);
}

enum prony_status clip_backward(struct graph *graph, const struct node *node, struct error *err)
{
	return backward_unary(graph, node, OP_CLIP_GRAD, node->inputs[0], err);
}

enum prony_status neg_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node), dx;
	enum prony_status status;

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	status = backward_apply(graph, node, 0, OP_NEG, &dy, 1, NULL, &dx, err);
	return status == PRONY_OK ? backward_contribute(graph, node->inputs[0], dx, err) : status;
}

enum prony_status identity_backward(struct graph *graph, const struct node *node, struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_contribute(graph, node->inputs[0], backward_gradient(graph, node), err);
}

enum prony_status dropout_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape shape = *node_input_shape(graph, node, 0);
	enum prony_status status;

	if (!(node->attributes.ratio >= 0 && node->attributes.ratio < 1))
		return node_error(node, err, "ratio is %g; it must be at least 0 and less than 1",
				  node->attributes.ratio);
	status = node_copy_shape(graph, node, err);
	if (status != PRONY_OK)
		return status;
	return node_set_output(graph, node, 1, DTYPE_F32, &shape, err);
}

enum prony_status dropout_backward(struct graph *graph, const struct node *node, struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	if (node->output_count < 2 || node->outputs[1] == VALUE_NONE)
		return node_error(node, err, "it has no mask output, which training needs");
	return backward_unary(graph, node, OP_DROPOUT_GRAD, node->outputs[1], err);
}
