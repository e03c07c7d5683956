/* Transpose; its gradient is a Transpose. */
#include "graph/operators/operator.h"

static const struct attribute_row transpose_attributes[] = {
	{ATTRIBUTE("perm", INTS, ints, 0)},
	{.name = NULL},
};

static enum prony_status transpose_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape x = *node_input_shape(graph, node, 0);
	struct int_list *order = &node->attributes.ints;
	enum prony_status status = node_need_float(graph, node, 0, err);
	struct shape y = {.rank = x.rank};
	bool used[TENSOR_MAX_RANK] = {false};

	if (status != PRONY_OK)
		return status;
	if (order->count == 0) { /* ONNX: the dimensions are reversed */
		order->count = x.rank;
		for (int i = 0; i < x.rank; i++)
			order->items[i] = x.rank - 1 - i;
	}
	if (order->count != x.rank)
		return node_error(node, err, "perm has %d axes, but the input has %d", order->count,
				  x.rank);
	for (int i = 0; i < x.rank; i++) {
		int64_t from = order->items[i];

		if (from < 0 || from >= x.rank || used[from])
			return node_error(node, err, "perm must list each axis exactly once");
		used[from] = true;
		y.dims[i] = x.dims[from];
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
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

static void transpose_compute(const struct kernel_call *call)
{
	const struct shape *shape = kernel_input_shape(call, 0);
	const struct int_list *order = &call->node->attributes.ints;
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);
	struct array_walk walk = array_walk_start(kernel_output_shape(call, 0));

	for (int i = 0; i < order->count; i++)
		walk.steps[0][i] = split_axis(shape, order->items[i]).inner;
	for (int64_t i = 0; i < kernel_output_count(call, 0); i++, array_walk_next(&walk))
		y[i] = x[walk.at[0]];
}

static struct samples_axis transpose_samples(const struct samples *s, const struct node *node,
					     const struct samples_axis *x)
{
	int axis = 0;

	while (node->attributes.ints.items[axis] != x->axis)
		axis++;
	return samples_on_output(s, node, axis, x->outer);
}

/* clang-format off */
const struct operator_row row_TRANSPOSE = {
	ARITY(1, 1, 1), .attributes = transpose_attributes, .infer = transpose_infer,
	.backward = transpose_backward, .compute = transpose_compute, .terms = terms_none,
	.samples = transpose_samples,
};
/* clang-format on */
