/* The backward pass: what each operator appends for the gradients of its inputs, and the walk. */
#include "graph/backward_internal.h"

#include <assert.h>
#include <stdio.h>

#include "graph/edit_internal.h"
#include "graph/operator_rows_internal.h"

static enum prony_status conv_backward(struct graph *graph, const struct node *node,
				       struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 1) || backward_wants(graph, node, 2))
		status = backward_node(graph, node, OP_CONV_GRAD_WEIGHT,
				       (const int[]){node->inputs[0], dy}, 2, 1,
				       backward_wants(graph, node, 2) ? 2 : 1, err);
	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = backward_node(graph, node, OP_CONV_GRAD_INPUT,
				       (const int[]){dy, node->inputs[1]}, 2, 0, 1, err);
	return status;
}

static enum prony_status gemm_backward(struct graph *graph, const struct node *node,
				       struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 1) || backward_wants(graph, node, 2))
		status = backward_node(graph, node, OP_GEMM_GRAD_WEIGHT,
				       (const int[]){node->inputs[0], dy}, 2, 1,
				       backward_wants(graph, node, 2) ? 2 : 1, err);
	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = backward_node(graph, node, OP_GEMM_GRAD_INPUT,
				       (const int[]){dy, node->inputs[1]}, 2, 0, 1, err);
	return status;
}

static enum prony_status average_pool_backward(struct graph *graph, const struct node *node,
					       struct error *err)
{
	return backward_unary(graph, node, OP_AVERAGE_POOL_GRAD, VALUE_NONE, err);
}

static enum prony_status global_average_pool_backward(struct graph *graph, const struct node *node,
						      struct error *err)
{
	return backward_unary(graph, node, OP_GLOBAL_AVERAGE_POOL_GRAD, VALUE_NONE, err);
}

static enum prony_status max_pool_backward(struct graph *graph, const struct node *node,
					   struct error *err)
{
	int dy = backward_gradient(graph, node);

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_MAX_POOL_GRAD,
			     (const int[]){dy, node->inputs[0], node->outputs[0]}, 3, 0, 1, err);
}

/* Its gradient reads y, which says what the forward pass decided. */
static enum prony_status relu_backward(struct graph *graph, const struct node *node,
				       struct error *err)
{
	return backward_unary(graph, node, OP_RELU_GRAD, node->outputs[0], err);
}

static enum prony_status neg_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node), dx;
	enum prony_status status;

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	status = backward_apply(graph, node, 0, OP_NEG, &dy, 1, NULL, &dx, err);
	return status == PRONY_OK ? backward_contribute(graph, node->inputs[0], dx, err) : status;
}

static enum prony_status identity_backward(struct graph *graph, const struct node *node,
					   struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_contribute(graph, node->inputs[0], backward_gradient(graph, node), err);
}

static enum prony_status slope_backward(struct graph *graph, const struct node *node,
					struct error *err)
{
	bool of_output = operator_row(node->op)->elementwise->slope_of_output;

	return backward_unary(graph, node, OP_ELEMENTWISE_GRAD,
			      of_output ? node->outputs[0] : node->inputs[0], err);
}

static enum prony_status dropout_backward(struct graph *graph, const struct node *node,
					  struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	if (node->output_count < 2 || node->outputs[1] == VALUE_NONE)
		return node_error(node, err, "it has no mask output, which training needs");
	return backward_unary(graph, node, OP_DROPOUT_GRAD, node->outputs[1], err);
}

/* `gradient` has the shape of the output: sums up what broadcasting has repeated. */
static enum prony_status contribute(struct graph *graph, const struct node *node, int i,
				    int gradient, struct error *err)
{
	struct node copy = *node;

	if (shape_equal(&graph->values[gradient].shape, node_input_shape(graph, node, i)))
		return backward_contribute(graph, node->inputs[i], gradient, err);
	copy.attributes.axis = i;
	return backward_node(graph, &copy, OP_BROADCAST_GRAD, &gradient, 1, i, 1, err);
}

/* The gradient of a sum is the gradient of each term: no node is needed. */
static enum prony_status add_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		if (backward_wants(graph, node, i))
			status = contribute(graph, node, i, dy, err);
	}
	return status;
}

/* Appends op(inputs) with the shape of the output and contributes it to input i. */
static enum prony_status apply(struct graph *graph, const struct node *node, int i, enum op op,
			       const int *inputs, int count, struct error *err)
{
	int gradient = VALUE_NONE;
	enum prony_status status =
		backward_apply(graph, node, i, op, inputs, count, NULL, &gradient, err);

	return status == PRONY_OK ? contribute(graph, node, i, gradient, err) : status;
}

static enum prony_status sub_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 0))
		status = contribute(graph, node, 0, dy, err);
	if (status == PRONY_OK && backward_wants(graph, node, 1))
		status = apply(graph, node, 1, OP_NEG, &dy, 1, err);
	return status;
}

static enum prony_status mul_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		if (backward_wants(graph, node, i))
			status = apply(graph, node, i, OP_MUL,
				       (const int[]){dy, node->inputs[1 - i]}, 2, err);
	}
	return status;
}

/* y = a / b: da = dy / b, db = -da * y */
static enum prony_status div_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node), quotient, product;
	enum prony_status status =
		backward_apply(graph, node, 0, OP_DIV, (const int[]){dy, node->inputs[1]}, 2, NULL,
			       &quotient, err);

	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = contribute(graph, node, 0, quotient, err);
	if (status != PRONY_OK || !backward_wants(graph, node, 1))
		return status;
	status = backward_apply(graph, node, 1, OP_MUL, (const int[]){quotient, node->outputs[0]},
				2, NULL, &product, err);
	return status == PRONY_OK ? apply(graph, node, 1, OP_NEG, &product, 1, err) : status;
}

static enum prony_status batch_norm_backward(struct graph *graph, const struct node *node,
					     struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->inputs[1],
			      node->outputs[1], node->outputs[2]};

	if (node->output_count < 3 || inputs[3] == VALUE_NONE || inputs[4] == VALUE_NONE)
		return node_error(node, err,
				  "it has no outputs for mean and variance, which training needs");
	return backward_node(graph, node, OP_BATCH_NORM_GRAD, inputs, 5, 0, 3, err);
}

static enum prony_status lrn_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->outputs[0]};

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_LRN_GRAD, inputs, 3, 0, 1, err);
}

static enum prony_status flatten_backward(struct graph *graph, const struct node *node,
					  struct error *err)
{
	return backward_unary(graph, node, OP_FLATTEN_GRAD, VALUE_NONE, err);
}

static enum prony_status reshape_backward(struct graph *graph, const struct node *node,
					  struct error *err)
{
	return backward_unary(graph, node, OP_RESHAPE_GRAD, VALUE_NONE, err);
}

static enum prony_status transpose_backward(struct graph *graph, const struct node *node,
					    struct error *err)
{
	struct attributes back = node->attributes;
	int dy = backward_gradient(graph, node), dx;
	enum prony_status status;

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	for (int i = 0; i < back.ints.count; i++)
		back.ints.items[node->attributes.ints.items[i]] = i;
	status = backward_apply(graph, node, 0, OP_TRANSPOSE, &dy, 1, &back, &dx, err);
	return status == PRONY_OK ? backward_contribute(graph, node->inputs[0], dx, err) : status;
}

/* The gradient of each input is a slice. */
static enum prony_status concat_backward(struct graph *graph, const struct node *node,
					 struct error *err)
{
	int dy = backward_gradient(graph, node);
	struct attributes cut = {.axis = node->attributes.axis, .step = 1};

	for (int i = 0; i < node->input_count; i++) {
		enum prony_status status;
		int dx;

		cut.start = cut.end;
		cut.end += node_input_shape(graph, node, i)->dims[cut.axis];
		if (!backward_wants(graph, node, i))
			continue;
		status = backward_apply(graph, node, i, OP_SLICE, &dy, 1, &cut, &dx, err);
		if (status == PRONY_OK)
			status = backward_contribute(graph, node->inputs[i], dx, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

static enum prony_status slice_backward(struct graph *graph, const struct node *node,
					struct error *err)
{
	return backward_unary(graph, node, OP_SLICE_GRAD, VALUE_NONE, err);
}

static enum prony_status pad_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	return backward_unary(graph, node, OP_PAD_GRAD, VALUE_NONE, err);
}

static enum prony_status reduce_mean_backward(struct graph *graph, const struct node *node,
					      struct error *err)
{
	return backward_unary(graph, node, OP_REDUCE_MEAN_GRAD, VALUE_NONE, err);
}

static enum prony_status softmax_backward(struct graph *graph, const struct node *node,
					  struct error *err)
{
	return backward_unary(graph, node, OP_SOFTMAX_GRAD, node->outputs[0], err);
}

static enum prony_status backward(struct graph *graph, const struct node *node, enum op op,
				  struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->inputs[1],
			      node->inputs[2], node->inputs[3]};

	return backward_node(graph, node, op, inputs, 5, 0, 4, err);
}

static enum prony_status lstm_backward(struct graph *graph, const struct node *node,
				       struct error *err)
{
	return backward(graph, node, OP_LSTM_GRAD, err);
}

static enum prony_status rnn_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	return backward(graph, node, OP_RNN_GRAD, err);
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

/*
 * Appends the nodes that compute the gradients of the inputs that want one, given the gradients of
 * the outputs; see graph/backward_internal.h.
 */
typedef enum prony_status gradient_function(struct graph *graph, const struct node *node,
					    struct error *err);

/* Functions of each element have slope_backward, but for these. */
static gradient_function *const gradients[OP_COUNT] = {
	[OP_CONV] = conv_backward,
	[OP_MAX_POOL] = max_pool_backward,
	[OP_AVERAGE_POOL] = average_pool_backward,
	[OP_GLOBAL_AVERAGE_POOL] = global_average_pool_backward,
	[OP_GEMM] = gemm_backward,
	[OP_SOFTMAX] = softmax_backward,
	[OP_BATCH_NORM] = batch_norm_backward,
	[OP_LRN] = lrn_backward,
	[OP_FLATTEN] = flatten_backward,
	[OP_RESHAPE] = reshape_backward,
	[OP_TRANSPOSE] = transpose_backward,
	[OP_CONCAT] = concat_backward,
	[OP_SLICE] = slice_backward,
	[OP_PAD] = pad_backward,
	[OP_REDUCE_MEAN] = reduce_mean_backward,
	[OP_DROPOUT] = dropout_backward,
	[OP_ADD] = add_backward,
	[OP_SUB] = sub_backward,
	[OP_MUL] = mul_backward,
	[OP_DIV] = div_backward,
	[OP_LSTM] = lstm_backward,
	[OP_RNN] = rnn_backward,
	[OP_SOFTMAX_CROSS_ENTROPY] = cross_entropy_backward,
	[OP_HALF_SQUARES] = half_squares_backward,
	[OP_RELU] = relu_backward,
	[OP_NEG] = neg_backward,
	[OP_IDENTITY] = identity_backward,
};

static gradient_function *gradient_of(enum op op)
{
	return gradients[op] == NULL && operator_row(op)->elementwise ? slope_backward
								      : gradients[op];
}

/* Marks parameters, and what is computed from them, as wanting a gradient. */
static void mark_wanted(struct graph *graph)
{
	for (int i = 0; i < graph->value_count; i++)
		graph->values[i].gradient =
			graph->values[i].kind == VALUE_PARAMETER ? GRADIENT_WANTED : VALUE_NONE;
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		/* Only output 0 is differentiable: others are Dropout's mask, statistics. */
		for (int k = 0; k < node->input_count; k++) {
			if (backward_wants(graph, node, k))
				graph->values[node->outputs[0]].gradient = GRADIENT_WANTED;
		}
	}
}

static enum prony_status append_all(struct graph *graph, struct error *err)
{
	for (int i = graph->forward_count - 1; i >= 0; i--) {
		/* A copy: appending moves the nodes. */
		struct node node = graph->nodes[i];
		gradient_function *gradient = gradient_of(node.op);
		enum prony_status status;

		/* Nodes that the loss does not depend on have got no gradient. */
		if (!operator_row(node.op)->is_loss && graph->values[node.outputs[0]].gradient < 0)
			continue;
		if (gradient == NULL)
			return node_error(&node, err, "it cannot be differentiated");
		status = gradient(graph, &node, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

/* No mark may be left; a parameter without a gradient is an error. */
static enum prony_status sweep_marks(struct graph *graph, struct error *err)
{
	for (int i = 0; i < graph->value_count; i++) {
		if (graph->values[i].gradient != GRADIENT_WANTED)
			continue;
		graph->values[i].gradient = VALUE_NONE;
		if (graph->values[i].kind == VALUE_PARAMETER)
			error_set(err, PRONY_BAD_INPUT,
				  "parameter '%s' has no influence on the loss",
				  graph->values[i].name);
	}
	return err->code;
}

enum prony_status graph_add_backward(struct graph *graph, struct error *err)
{
	struct error local = ERROR_INIT;
	int value_count = graph->value_count, node_count = graph->node_count;

	if (graph->loss == VALUE_NONE)
		return error_set(err, PRONY_BAD_INPUT, "network '%s' has no loss to differentiate",
				 graph->name);
	if (graph->node_count > graph->forward_count)
		return error_set(err, PRONY_BAD_INPUT, "network '%s' has a backward pass already",
				 graph->name);
	mark_wanted(graph);
	append_all(graph, &local);
	sweep_marks(graph, &local);
	if (local.code == PRONY_OK)
		return PRONY_OK;
	graph->value_count = value_count;
	graph->node_count = node_count;
	for (int i = 0; i < value_count; i++)
		graph->values[i].gradient = VALUE_NONE;
	return error_set(err, local.code, "%s", local.text);
}
