/* ConvTranspose: what a convolution is to its input's gradient. Its own gradients are convolutions.
 */
#include <string.h>

#include "graph/edit_internal.h"
#include "graph/operators/conv_internal.h"
#include "graph/operators/operator.h"

static const struct attribute_row conv_transpose_attributes[] = {
	{ATTRIBUTE("kernel_shape", INTS2, kernel, 0)},
	{ATTRIBUTE("strides", INTS2, strides, 1)},
	{ATTRIBUTE("dilations", INTS2, dilations, 1)},
	{ATTRIBUTE("pads", INTS4, pads, 0)},
	{ATTRIBUTE("output_padding", INTS2, output_padding, 0)},
	{ATTRIBUTE("group", INT, group, 1)},
	{.name = NULL},
};

/* Weights: I x O/group x H x W. */
static enum prony_status check_weights(const struct graph *graph, struct node *node,
				       struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *w = node_input_shape(graph, node, 1);
	struct attributes *a = &node->attributes;

	if (a->group < 1 || x->dims[1] % a->group != 0 ||
	    saturating_multiply(w->dims[1], a->group) > GRAPH_MAX_DIM)
		return node_error(node, err,
				  "group %lld must divide the number of input channels (%lld)",
				  (long long)a->group, (long long)x->dims[1]);
	if (w->dims[0] != x->dims[1])
		return node_error(node, err,
				  "the weights are for %lld input channels, but the input has %lld",
				  (long long)w->dims[0], (long long)x->dims[1]);
	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] == 0)
			a->kernel[i] = w->dims[2 + i];
		if (a->kernel[i] != w->dims[2 + i])
			return node_error(node, err,
					  "kernel_shape says %lld, but the weights have %lld",
					  (long long)a->kernel[i], (long long)w->dims[2 + i]);
	}
	if (node_has_input(node, 2) &&
	    node_input_shape(graph, node, 2)->dims[0] != w->dims[1] * a->group)
		return node_error(node, err,
				  "the bias has %lld elements, but there are %lld output channels",
				  (long long)node_input_shape(graph, node, 2)->dims[0],
				  (long long)(w->dims[1] * a->group));
	return PRONY_OK;
}

/* The size from which a convolution with these attributes gives x. */
static enum prony_status output_size(const struct graph *graph, const struct node *node,
				     struct shape *y, struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct attributes *a = &node->attributes;

	for (int i = 0; i < 2; i++) {
		const int64_t numbers[] = {a->strides[i], a->dilations[i], a->pads[i] + 1,
					   a->pads[i + 2] + 1, a->output_padding[i] + 1};
		int64_t *size = &y->dims[2 + i];

		for (int k = 0; k < 5; k++) {
			if (numbers[k] < 1 || numbers[k] > GRAPH_MAX_DIM)
				return node_error(node, err,
						  "strides, dilations, pads or output_padding are "
						  "negative, 0 or too large");
		}
		if (a->output_padding[i] >= a->strides[i])
			return node_error(
				node, err, "output_padding %lld must be less than the stride %lld",
				(long long)a->output_padding[i], (long long)a->strides[i]);
		*size = saturating_multiply(x->dims[2 + i] - 1, a->strides[i]);
		*size = saturating_add(*size, (a->kernel[i] - 1) * a->dilations[i] + 1);
		*size = saturating_add(*size, a->output_padding[i]) - a->pads[i] - a->pads[i + 2];
		if (*size < 1)
			return node_error(node, err, "the padding leaves no %s",
					  i == 0 ? "height" : "width");
	}
	return PRONY_OK;
}

static enum prony_status conv_transpose_infer(struct graph *graph, struct node *node,
					      struct error *err)
{
	struct shape y = {.rank = 4};
	enum prony_status status = PRONY_OK;

	for (int i = 0; i < 3 && status == PRONY_OK; i++) {
		if (node_has_input(node, i))
			status = node_need_rank(graph, node, i, i < 2 ? 4 : 1, err);
	}
	if (status == PRONY_OK)
		status = check_weights(graph, node, err);
	if (status == PRONY_OK)
		status = output_size(graph, node, &y, err);
	if (status != PRONY_OK)
		return status;
	y.dims[0] = node_input_shape(graph, node, 0)->dims[0];
	y.dims[1] = node_input_shape(graph, node, 1)->dims[1] * node->attributes.group;
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static int64_t conv_transpose_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *w = node_input_shape(graph, node, 1);
	int64_t macs = shape_elements(node_input_shape(graph, node, 0));

	for (int i = 1; i < 4; i++)
		macs = saturating_multiply(macs, w->dims[i]);
	return macs;
}

static int64_t conv_transpose_grad_macs(const struct graph *graph, const struct node *node)
{
	return conv_transpose_macs(graph, &graph->nodes[node->differentiates]);
}

static enum prony_status conv_transpose_backward(struct graph *graph, const struct node *node,
						 struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 1) || backward_wants(graph, node, 2))
		status = backward_node(graph, node, OP_CONV_TRANSPOSE_GRAD_WEIGHT,
				       (const int[]){node->inputs[0], dy}, 2, 1,
				       backward_wants(graph, node, 2) ? 2 : 1, err);
	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = backward_node(graph, node, OP_CONV_TRANSPOSE_GRAD_INPUT,
				       (const int[]){dy, node->inputs[1]}, 2, 0, 1, err);
	return status;
}

/* The convolution from y to x, with the same weights. */
static void conv_transpose_compute(const struct kernel_call *call)
{
	struct conv conv = {&call->node->attributes, kernel_output_shape(call, 0),
			    kernel_input_shape(call, 1), kernel_input_shape(call, 0)};
	struct conv_data data = {kernel_output(call, 0), kernel_input(call, 1),
				 kernel_input(call, 0)};

	conv_fill(conv.x, data.x, kernel_input(call, 2));
	conv_grad_input(&conv, &data);
}

static void conv_transpose_grad_input_compute(const struct kernel_call *call)
{
	struct conv conv = {&call->node->attributes, kernel_input_shape(call, 0),
			    kernel_input_shape(call, 1), kernel_output_shape(call, 0)};
	struct conv_data data = {kernel_input(call, 0), kernel_input(call, 1),
				 kernel_output(call, 0)};

	memset(data.y, 0, (size_t)kernel_output_count(call, 0) * sizeof(*data.y));
	conv_forward(&conv, &data);
}

static void conv_transpose_grad_weight_compute(const struct kernel_call *call)
{
	struct conv conv = {&call->node->attributes, kernel_input_shape(call, 1),
			    kernel_output_shape(call, 0), kernel_input_shape(call, 0)};
	struct conv_data data = {kernel_input(call, 1), kernel_output(call, 0),
				 kernel_input(call, 0)};

	conv_grad_weight(&conv, &data);
	if (kernel_output(call, 1))
		conv_grad_bias(conv.x, data.x, kernel_output(call, 1));
}

/* clang-format off */
const struct operator_row row_CONV_TRANSPOSE = {
	ARITY(2, 3, 1), .attributes = conv_transpose_attributes, .infer = conv_transpose_infer,
	.macs = conv_transpose_macs, .backward = conv_transpose_backward,
	.compute = conv_transpose_compute, .samples = samples_first, .layout = LAYOUT_CONVOLVES,
};

const struct operator_row row_CONV_TRANSPOSE_GRAD_INPUT = {
	GRADIENT(2, 1, conv_transpose_attributes), .macs = conv_transpose_grad_macs,
	.compute = conv_transpose_grad_input_compute,
};

const struct operator_row row_CONV_TRANSPOSE_GRAD_WEIGHT = {
	GRADIENT(2, 2, conv_transpose_attributes), .first_target = 1,
	.macs = conv_transpose_grad_macs, .compute = conv_transpose_grad_weight_compute,
	.terms = terms_of_weight_gradient,
};
/* clang-format on */
