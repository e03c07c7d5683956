#include "graph/operator_rows_internal.h"

const struct attribute_row conv_attributes[] = {
	{"kernel_shape", ATTRIBUTE_INTS2, offsetof(struct attributes, kernel), 0, 0, NULL},
	{"strides", ATTRIBUTE_INTS2, offsetof(struct attributes, strides), 1, 0, NULL},
	{"dilations", ATTRIBUTE_INTS2, offsetof(struct attributes, dilations), 1, 0, NULL},
	{"pads", ATTRIBUTE_INTS4, offsetof(struct attributes, pads), 0, 0, NULL},
	{"group", ATTRIBUTE_INT, offsetof(struct attributes, group), 1, 0, NULL},
	{.name = NULL},
};

/* Channels, groups and kernel of the weights (O x I/group x H x W) agree with x and attributes. */
static enum prony_status check_weights(const struct graph *graph, struct node *node,
				       struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *w = node_input_shape(graph, node, 1);
	struct attributes *a = &node->attributes;

	if (a->group < 1 || x->dims[1] % a->group != 0 || w->dims[0] % a->group != 0)
		return node_error(node, err, "group %lld does not divide %lld and %lld channels",
				  (long long)a->group, (long long)x->dims[1],
				  (long long)w->dims[0]);
	if (w->dims[1] != x->dims[1] / a->group)
		return node_error(node, err, "the weights take %lld channels, the input gives %lld",
				  (long long)w->dims[1], (long long)(x->dims[1] / a->group));
	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] == 0) /* ONNX: left out means that the weights say it */
			a->kernel[i] = w->dims[2 + i];
		if (a->kernel[i] != w->dims[2 + i])
			return node_error(node, err, "kernel_shape has %lld, the weights have %lld",
					  (long long)a->kernel[i], (long long)w->dims[2 + i]);
	}
	if (node_has_input(node, 2) && node_input_shape(graph, node, 2)->dims[0] != w->dims[0])
		return node_error(node, err,
				  "the bias has %lld elements, the weights %lld channels",
				  (long long)node_input_shape(graph, node, 2)->dims[0],
				  (long long)w->dims[0]);
	return PRONY_OK;
}

enum prony_status conv_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = {.rank = 4};
	enum prony_status status = node_need_rank(graph, node, 0, 4, err);

	if (status == PRONY_OK)
		status = node_need_rank(graph, node, 1, 4, err);
	if (status == PRONY_OK && node_has_input(node, 2))
		status = node_need_rank(graph, node, 2, 1, err);
	if (status == PRONY_OK)
		status = check_weights(graph, node, err);
	if (status == PRONY_OK)
		status = node_window(graph, node, 0, &y.dims[2], err);
	if (status != PRONY_OK)
		return status;
	y.dims[0] = node_input_shape(graph, node, 0)->dims[0];
	y.dims[1] = node_input_shape(graph, node, 1)->dims[0];
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

int64_t conv_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *w = node_input_shape(graph, node, 1);
	int64_t macs = shape_elements(node_output_shape(graph, node, 0));

	for (int i = 1; i < 4; i++)
		macs = saturating_multiply(macs, w->dims[i]);
	return macs;
}

/* Each of the two gradients of a convolution costs what the convolution does. */
int64_t conv_grad_macs(const struct graph *graph, const struct node *node)
{
	return conv_macs(graph, &graph->nodes[node->differentiates]);
}
