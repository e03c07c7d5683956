/* TensorScatter writes rows into a state that lasts from step to step: a key-value cache. */
#include "graph/operators/operator.h"

#include <string.h>

static const struct attribute_row tensor_scatter_attributes[] = {
	{ATTRIBUTE("axis", INT, axis, -2)},
	{.name = NULL},
};

/* The index must be an input, so that a batch can be checked: all rows must have room. */
static enum prony_status check_index(const struct graph *graph, const struct node *node,
				     const struct shape *past, struct error *err)
{
	const struct value *index;

	if (!node_has_input(node, 2))
		return PRONY_OK;
	index = &graph->values[node->inputs[2]];
	if (index->kind != VALUE_INPUT || index->dtype != DTYPE_I64 || index->shape.rank != 1 ||
	    index->shape.dims[0] != past->dims[0])
		return node_error(node, err,
				  "the write index '%s' must be a network input of type I64, with "
				  "one number for each sample",
				  index->name);
	return PRONY_OK;
}

static enum prony_status tensor_scatter_infer(struct graph *graph, struct node *node,
					      struct error *err)
{
	const struct value *past = &graph->values[node->inputs[0]];
	struct shape want = past->shape;
	const struct shape *update = node_input_shape(graph, node, 1);
	enum prony_status status = node_need_float(graph, node, 1, err);

	if (status == PRONY_OK && past->kind != VALUE_STATE)
		status = node_error(node, err, "the cache '%s' must be a state", past->name);
	if (status == PRONY_OK)
		status = node_normal_axis(node, past->shape.rank, &node->attributes.axis, err);
	if (status != PRONY_OK)
		return status;
	if (node->attributes.axis == 0 || update->rank != want.rank)
		return node_error(node, err,
				  "axis 0 is the batch, and the update needs the cache's rank");
	want.dims[node->attributes.axis] = update->dims[node->attributes.axis];
	if (!shape_equal(&want, update) ||
	    want.dims[node->attributes.axis] > past->shape.dims[node->attributes.axis])
		return node_error(node, err,
				  "the update must have the cache's shape, or fewer rows on axis "
				  "%lld",
				  (long long)node->attributes.axis);
	status = check_index(graph, node, &past->shape, err);
	if (status != PRONY_OK)
		return status;
	want = past->shape;
	return node_set_output(graph, node, 0, DTYPE_F32, &want, err);
}

static void tensor_scatter_compute(const struct kernel_call *call)
{
	const struct shape *shape = kernel_input_shape(call, 0);
	struct axis_split past = split_axis(shape, call->node->attributes.axis);
	struct axis_split update =
		split_axis(kernel_input_shape(call, 1), call->node->attributes.axis);
	int64_t block = update.size * update.inner, of_sample = past.outer / shape->dims[0];
	const double *rows = kernel_input(call, 1), *index = NULL;
	double *y = kernel_output(call, 0);

	if (node_has_input(call->node, 2))
		index = kernel_input(call, 2);
	memcpy(y, kernel_input(call, 0), (size_t)shape_elements(shape) * sizeof(*y));
	for (int64_t i = 0; i < past.outer; i++) {
		int64_t at = index ? (int64_t)index[i / of_sample] : 0;

		memcpy(y + (i * past.size + at) * past.inner, rows + i * block,
		       (size_t)block * sizeof(*y));
	}
}

/* clang-format off */
const struct operator_row row_TENSOR_SCATTER = {
	ARITY(2, 3, 1), .attributes = tensor_scatter_attributes, .infer = tensor_scatter_infer,
	.compute = tensor_scatter_compute, .terms = terms_none, .replaces_state = true,
	.opset = 24,
};
/* clang-format on */
