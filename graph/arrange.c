#include "graph/operator_rows_internal.h"

const struct attribute_row transpose_attributes[] = {
	{"perm", ATTRIBUTE_INTS, offsetof(struct attributes, ints), 0, 0, NULL},
	{.name = NULL},
};

const struct attribute_row concat_attributes[] = {
	{"axis", ATTRIBUTE_INT, offsetof(struct attributes, axis), 1, 0, NULL},
	{.name = NULL},
};

const struct attribute_row slice_attributes[] = {
	{"start", ATTRIBUTE_INT, offsetof(struct attributes, start), 0, 1, NULL},
	{"end", ATTRIBUTE_INT, offsetof(struct attributes, end), INT32_MAX, 2, NULL},
	{"axis", ATTRIBUTE_INT, offsetof(struct attributes, axis), 0, 3, NULL},
	{"step", ATTRIBUTE_INT, offsetof(struct attributes, step), 1, 4, NULL},
	{.name = NULL},
};

const struct attribute_row pad_attributes[] = {
	{"pads", ATTRIBUTE_INTS, offsetof(struct attributes, ints), 0, 1, NULL},
	{"value", ATTRIBUTE_REAL, offsetof(struct attributes, value), 0, 2, NULL},
	{.name = NULL},
};

enum prony_status transpose_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape x = *node_input_shape(graph, node, 0);
	struct int_list *order = &node->attributes.ints;
	enum prony_status status = node_need_float(graph, node, 0, err);
	struct shape y = {.rank = x.rank};
	bool used[TENSOR_MAX_RANK] = {false};

	if (status != PRONY_OK)
		return status;
	if (order->count == 0) { /* ONNX: the dimensions the other way round */
		order->count = x.rank;
		for (int i = 0; i < x.rank; i++)
			order->items[i] = x.rank - 1 - i;
	}
	if (order->count != x.rank)
		return node_error(node, err, "perm has %d axes, the input %d", order->count,
				  x.rank);
	for (int i = 0; i < x.rank; i++) {
		int64_t from = order->items[i];

		if (from < 0 || from >= x.rank || used[from])
			return node_error(node, err, "perm must name each axis once");
		used[from] = true;
		y.dims[i] = x.dims[from];
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

enum prony_status concat_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	enum prony_status status = node_normal_axis(node, y.rank, &node->attributes.axis, err);
	int64_t axis = node->attributes.axis;

	for (int i = 0; status == PRONY_OK && i < node->input_count; i++) {
		struct shape like;

		if (!node_has_input(node, i))
			return node_error(node, err, "input %d is required", i);
		status = node_need_rank(graph, node, i, y.rank, err);
		if (status != PRONY_OK)
			return status;
		like = *node_input_shape(graph, node, i);
		if (i > 0)
			y.dims[axis] = saturating_add(y.dims[axis], like.dims[axis]);
		like.dims[axis] = y.dims[axis];
		if (!shape_equal(&like, &y))
			return node_error(node, err,
					  "input %d ('%s') differs in more than axis %lld", i,
					  graph->values[node->inputs[i]].name, (long long)axis);
	}
	return status == PRONY_OK ? node_set_output(graph, node, 0, DTYPE_F32, &y, err) : status;
}

/* From the end if negative, and into the range of 0 to size. */
static int64_t clamp(int64_t end, int64_t size)
{
	if (end < 0)
		end = end < -size ? 0 : end + size;
	return end > size ? size : end;
}

enum prony_status slice_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	struct attributes *a = &node->attributes;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status == PRONY_OK)
		status = node_normal_axis(node, y.rank, &a->axis, err);
	if (status != PRONY_OK)
		return status;
	if (a->step < 1 || a->step > INT32_MAX)
		return node_error(node, err, "step is %lld; only steps forward are supported",
				  (long long)a->step);
	a->start = clamp(a->start, y.dims[a->axis]);
	a->end = clamp(a->end, y.dims[a->axis]);
	if (a->start >= a->end)
		return node_error(node, err, "nothing lies between %lld and %lld",
				  (long long)a->start, (long long)a->end);
	y.dims[a->axis] = (a->end - a->start - 1) / a->step + 1;
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

enum prony_status pad_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	const struct int_list *pads = &node->attributes.ints;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	if (pads->count != 2 * y.rank)
		return node_error(node, err, "it has %d pads, the input %d dimensions", pads->count,
				  y.rank);
	for (int i = 0; i < pads->count; i++) {
		if (pads->items[i] < 0 || pads->items[i] > INT32_MAX)
			return node_error(node, err, "pads has %lld; it must be 0 or more",
					  (long long)pads->items[i]);
		y.dims[i % y.rank] = saturating_add(y.dims[i % y.rank], pads->items[i]);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}
