#include "graph/operator_rows_internal.h"

const struct attribute_row max_pool_attributes[] = {
	{"kernel_shape", ATTRIBUTE_INTS2, offsetof(struct attributes, kernel), 0, 0, NULL},
	{"strides", ATTRIBUTE_INTS2, offsetof(struct attributes, strides), 1, 0, NULL},
	{"dilations", ATTRIBUTE_INTS2, offsetof(struct attributes, dilations), 1, 0, NULL},
	{"pads", ATTRIBUTE_INTS4, offsetof(struct attributes, pads), 0, 0, NULL},
	{"ceil_mode", ATTRIBUTE_BOOL, offsetof(struct attributes, ceil_mode), 0, 0, NULL},
	{.name = NULL},
};

const struct attribute_row average_pool_attributes[] = {
	{"kernel_shape", ATTRIBUTE_INTS2, offsetof(struct attributes, kernel), 0, 0, NULL},
	{"strides", ATTRIBUTE_INTS2, offsetof(struct attributes, strides), 1, 0, NULL},
	{"pads", ATTRIBUTE_INTS4, offsetof(struct attributes, pads), 0, 0, NULL},
	{"ceil_mode", ATTRIBUTE_BOOL, offsetof(struct attributes, ceil_mode), 0, 0, NULL},
	{"count_include_pad", ATTRIBUTE_BOOL, offsetof(struct attributes, count_include_pad), 0, 0,
	 NULL},
	{.name = NULL},
};

/*
 * Every window must hold an element of the input, or its maximum is that of nothing. Padding
 * smaller than the kernel, as ONNX Runtime asks too, and taps no further apart than the input is
 * large, ensure it.
 */
static enum prony_status check_padding(const struct graph *graph, const struct node *node,
				       struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct attributes *a = &node->attributes;

	for (int i = 0; i < 2; i++) {
		if (a->pads[i] >= a->kernel[i] || a->pads[i + 2] >= a->kernel[i])
			return node_error(node, err,
					  "padding must be smaller than the kernel (%lld)",
					  (long long)a->kernel[i]);
		if (a->kernel[i] > 1 && a->dilations[i] > x->dims[2 + i])
			return node_error(node, err,
					  "dilation %lld is larger than the input (%lld)",
					  (long long)a->dilations[i], (long long)x->dims[2 + i]);
	}
	return PRONY_OK;
}

enum prony_status average_pool_infer(struct graph *graph, struct node *node, struct error *err)
{
	/* ONNX has no dilations here before opset 19. */
	node->attributes.dilations[0] = node->attributes.dilations[1] = 1;
	return max_pool_infer(graph, node, err);
}

enum prony_status global_average_pool_infer(struct graph *graph, struct node *node,
					    struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	enum prony_status status = node_need_rank(graph, node, 0, 4, err);

	if (status != PRONY_OK)
		return status;
	y.dims[2] = y.dims[3] = 1;
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

enum prony_status max_pool_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = {.rank = 4};
	enum prony_status status = node_need_rank(graph, node, 0, 4, err);

	if (status == PRONY_OK)
		status = node_window(graph, node, 0, &y.dims[2], err);
	if (status == PRONY_OK)
		status = check_padding(graph, node, err);
	if (status != PRONY_OK)
		return status;
	y.dims[0] = node_input_shape(graph, node, 0)->dims[0];
	y.dims[1] = node_input_shape(graph, node, 0)->dims[1];
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}
