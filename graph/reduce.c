#include "graph/operator_rows_internal.h"

const struct attribute_row reduce_mean_attributes[] = {
	{"axes", ATTRIBUTE_INTS, offsetof(struct attributes, ints), 0, 0, NULL},
	{"keepdims", ATTRIBUTE_BOOL, offsetof(struct attributes, keep_dims), 1, 0, NULL},
	{.name = NULL},
};

const struct attribute_row softmax_attributes[] = {
	{"axis", ATTRIBUTE_INT, offsetof(struct attributes, axis), -1, 0, NULL},
	{.name = NULL},
};

/* Counts axes from the start, in ascending order; none means all. */
static enum prony_status normal_axes(struct node *node, int rank, struct error *err)
{
	struct int_list *axes = &node->attributes.ints;
	bool reduced[TENSOR_MAX_RANK] = {false};

	for (int i = 0; i < axes->count; i++) {
		int64_t axis = axes->items[i];
		enum prony_status status = node_normal_axis(node, rank, &axis, err);

		if (status != PRONY_OK)
			return status;
		if (reduced[axis])
			return node_error(node, err, "axis %lld is named twice", (long long)axis);
		reduced[axis] = true;
	}
	if (axes->count == 0) {
		for (int i = 0; i < rank; i++)
			reduced[i] = true;
	}
	axes->count = 0;
	for (int i = 0; i < rank; i++) {
		if (reduced[i])
			axes->items[axes->count++] = i;
	}
	return PRONY_OK;
}

enum prony_status reduce_mean_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape x = *node_input_shape(graph, node, 0);
	const struct int_list *axes = &node->attributes.ints;
	struct shape y = {.rank = 0};
	enum prony_status status = node_need_float(graph, node, 0, err);
	int next = 0;

	if (status == PRONY_OK)
		status = normal_axes(node, x.rank, err);
	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < x.rank; i++) {
		bool reduced = next < axes->count && axes->items[next] == i;

		next += reduced;
		if (!reduced || node->attributes.keep_dims)
			y.dims[y.rank++] = reduced ? 1 : x.dims[i];
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

enum prony_status softmax_infer(struct graph *graph, struct node *node, struct error *err)
{
	enum prony_status status = node_normal_axis(node, node_input_shape(graph, node, 0)->rank,
						    &node->attributes.axis, err);

	return status == PRONY_OK ? node_copy_shape(graph, node, err) : status;
}
