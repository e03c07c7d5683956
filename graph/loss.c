/* The losses: SoftmaxCrossEntropyLoss, HalfSumOfSquares and their gradients. */
#include "graph/operators/operator.h"

static enum prony_status cross_entropy_infer(struct graph *graph, struct node *node,
					     struct error *err)
{
	const struct value *labels = &graph->values[node->inputs[1]];
	struct shape scalar = {.rank = 0};
	enum prony_status status = node_need_rank(graph, node, 0, 2, err);

	if (status != PRONY_OK)
		return status;
	if (labels->dtype != DTYPE_I64 ||
	    shape_elements(&labels->shape) != node_input_shape(graph, node, 0)->dims[0])
		return node_error(node, err,
				  "the labels '%s' must be I64, one for each row of the logits",
				  labels->name);
	return node_set_output(graph, node, 0, DTYPE_F32, &scalar, err);
}

static enum prony_status half_squares_infer(struct graph *graph, struct node *node,
					    struct error *err)
{
	struct shape scalar = {.rank = 0};
	enum prony_status status = node_need_float(graph, node, 0, err);

	return status == PRONY_OK ? node_set_output(graph, node, 0, DTYPE_F32, &scalar, err)
				  : status;
}

/* The pass starts here: d loss / d loss is 1 and never stored. */
static enum prony_status cross_entropy_backward(struct graph *graph, const struct node *node,
						struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_SOFTMAX_CROSS_ENTROPY_GRAD, node->inputs, 2, 0, 1,
			     err);
}

static enum prony_status half_squares_backward(struct graph *graph, const struct node *node,
					       struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_HALF_SQUARES_GRAD, node->inputs, 1, 0, 1, err);
}

/* clang-format off */
const struct operator_row row_SOFTMAX_CROSS_ENTROPY = {
	ARITY(2, 2, 1), .attributes = no_attributes, .is_loss = true,
	.infer = cross_entropy_infer, .backward = cross_entropy_backward,
};

const struct operator_row row_SOFTMAX_CROSS_ENTROPY_GRAD = {
	GRADIENT(2, 1, no_attributes),
};

const struct operator_row row_HALF_SQUARES = {
	ARITY(1, 1, 1), .attributes = no_attributes, .is_loss = true, .sums_batch = true,
	.infer = half_squares_infer, .backward = half_squares_backward,
};

const struct operator_row row_HALF_SQUARES_GRAD = {
	GRADIENT(1, 1, no_attributes), .compute = compute_copy, .terms = terms_none,
};
/* clang-format on */
