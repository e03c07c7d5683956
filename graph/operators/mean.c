/* Means: ReduceMean, GlobalAveragePool and their gradients. */
#include "graph/operators/operator.h"

#include <assert.h>
#include <string.h>

static const struct attribute_row reduce_mean_attributes[] = {
	{ATTRIBUTE("axes", INTS, ints, 0), .input = 1, .input_since = 18},
	{ATTRIBUTE("keepdims", BOOL, keep_dims, 1)},
	{.name = NULL},
};

/* Makes axes count from the start, in ascending order; none means all. */
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
			return node_error(node, err, "axis %lld is listed twice", (long long)axis);
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

static enum prony_status reduce_mean_infer(struct graph *graph, struct node *node,
					   struct error *err)
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

static enum prony_status global_average_pool_infer(struct graph *graph, struct node *node,
						   struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	enum prony_status status = node_need_rank(graph, node, 0, 4, err);

	if (status != PRONY_OK)
		return status;
	y.dims[2] = y.dims[3] = 1;
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

/* Walks over x; place 0 is the offset of each element's mean. */
static struct array_walk mean_walk(const struct kernel_call *call, const struct shape *x)
{
	const struct node *node = call->node;
	bool global = node->op == OP_GLOBAL_AVERAGE_POOL || node->op == OP_GLOBAL_AVERAGE_POOL_GRAD;
	struct array_walk walk = array_walk_start(x);
	struct shape kept = *x;

	assert(x->rank >= 2 || !global);
	for (int i = 0; global && i < 2; i++)
		kept.dims[2 + i] = 1;
	for (int i = 0; !global && i < node->attributes.ints.count; i++)
		kept.dims[node->attributes.ints.items[i]] = 1;
	array_walk_broadcast(&walk, 0, &kept);
	return walk;
}

static void mean_compute(const struct kernel_call *call)
{
	const struct shape *shape = kernel_input_shape(call, 0);
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);
	int64_t count = kernel_output_count(call, 0);
	double share = (double)count / (double)shape_elements(shape);
	struct array_walk walk = mean_walk(call, shape);

	memset(y, 0, (size_t)count * sizeof(*y));
	for (int64_t i = 0; i < shape_elements(shape); i++, array_walk_next(&walk))
		y[walk.at[0]] += x[i];
	for (int64_t i = 0; i < count; i++)
		y[i] *= share;
}

static void mean_grad_compute(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0);
	double *dx = kernel_output(call, 0);
	int64_t count = kernel_output_count(call, 0);
	double share = (double)shape_elements(kernel_input_shape(call, 0)) / (double)count;
	struct array_walk walk = mean_walk(call, kernel_output_shape(call, 0));

	for (int64_t i = 0; i < count; i++, array_walk_next(&walk))
		dx[i] = dy[walk.at[0]] * share;
}

/* The batch must not be among the axes. Its axis moves to the front by the number of axes removed
 * before it. */
static struct samples_axis reduce_mean_samples(const struct samples *s, const struct node *node,
					       const struct samples_axis *x)
{
	const struct int_list *axes = &node->attributes.ints;
	int axis = x->axis;

	for (int i = 0; i < axes->count; i++) {
		if (axes->items[i] == x->axis)
			return samples_nowhere;
		axis -= axes->items[i] < x->axis && !node->attributes.keep_dims;
	}
	return samples_on_output(s, node, axis, x->outer);
}

/* clang-format off */
const struct operator_row row_REDUCE_MEAN = {
	ARITY(1, 1, 1), .attributes = reduce_mean_attributes, .is_reduction = true,
	.infer = reduce_mean_infer, .gradient = OP_REDUCE_MEAN_GRAD,
	.compute = mean_compute, .terms = terms_shared, .samples = reduce_mean_samples,
};

const struct operator_row row_REDUCE_MEAN_GRAD = {
	GRADIENT(1, 1, reduce_mean_attributes), .compute = mean_grad_compute,
};

const struct operator_row row_GLOBAL_AVERAGE_POOL = {
	ARITY(1, 1, 1), .attributes = no_attributes, .is_reduction = true,
	.infer = global_average_pool_infer, .gradient = OP_GLOBAL_AVERAGE_POOL_GRAD,
	.compute = mean_compute, .terms = terms_shared, .samples = samples_of_planes,
};

const struct operator_row row_GLOBAL_AVERAGE_POOL_GRAD = {
	GRADIENT(1, 1, no_attributes), .compute = mean_grad_compute,
};
/* clang-format on */
