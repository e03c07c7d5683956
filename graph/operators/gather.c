/* Gather along the first axis (an embedding takes rows of a table), and its gradient. */
#include "graph/operators/operator.h"

#include <string.h>

static const struct attribute_row gather_attributes[] = {
	{ATTRIBUTE("axis", INT, axis, 0)},
	{.name = NULL},
};

static enum prony_status gather_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct value *table = &graph->values[node->inputs[0]];
	const struct value *indices = &graph->values[node->inputs[1]];
	struct shape shape = indices->shape;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status == PRONY_OK)
		status = node_normal_axis(node, table->shape.rank, &node->attributes.axis, err);
	if (status != PRONY_OK)
		return status;
	if (node->attributes.axis != 0)
		return node_error(node, err, "axis is %lld; only axis 0 is supported",
				  (long long)node->attributes.axis);
	/* The indices must be an input, so that a batch can be checked: every index must name a
	 * row. */
	if (indices->kind != VALUE_INPUT ||
	    (indices->dtype != DTYPE_I64 && indices->dtype != DTYPE_I32))
		return node_error(node, err,
				  "the indices '%s' must be a network input of type I64 or I32",
				  indices->name);
	if (shape.rank + table->shape.rank - 1 > TENSOR_MAX_RANK)
		return node_error(node, err, "its result has more than %d dimensions",
				  TENSOR_MAX_RANK);
	for (int i = 1; i < table->shape.rank; i++)
		shape.dims[shape.rank++] = table->shape.dims[i];
	return node_set_output(graph, node, 0, DTYPE_F32, &shape, err);
}

static enum prony_status gather_backward(struct graph *graph, const struct node *node,
					 struct error *err)
{
	return backward_unary(graph, node, OP_GATHER_GRAD, node->inputs[1], err);
}

static void gather_compute(const struct kernel_call *call)
{
	const struct shape *table = kernel_input_shape(call, 0);
	int64_t width = shape_elements(table) / table->dims[0];
	const double *rows = kernel_input(call, 0), *indices = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < shape_elements(kernel_input_shape(call, 1)); i++)
		memcpy(y + i * width, rows + (int64_t)indices[i] * width,
		       (size_t)width * sizeof(*y));
}

/* A row that was taken several times gets the sum of its gradients. */
static void gather_grad_compute(const struct kernel_call *call)
{
	const struct shape *table = kernel_output_shape(call, 0);
	int64_t width = shape_elements(table) / table->dims[0];
	const double *dy = kernel_input(call, 0), *indices = kernel_input(call, 1);
	double *gradient = kernel_output(call, 0);

	memset(gradient, 0, (size_t)shape_elements(table) * sizeof(*gradient));
	for (int64_t i = 0; i < shape_elements(kernel_input_shape(call, 1)); i++) {
		double *row = gradient + (int64_t)indices[i] * width;

		for (int64_t k = 0; k < width; k++)
			row[k] += dy[i * width + k];
	}
}

/* The number of times that a row is taken on average, at least 1. */
static int64_t gather_grad_terms(const struct graph *graph, const struct node *node, int output)
{
	return terms_shared(graph, node, output) + 1;
}

/* The indices contain the samples, the table does not. */
static struct samples_axis gather_samples(const struct samples *s, const struct node *node,
					  const struct samples_axis *indices)
{
	if (s->places[node->inputs[0]].axis >= 0)
		return samples_nowhere;
	return samples_on_output(s, node, indices->axis, indices->outer);
}

/* clang-format off */
const struct operator_row row_GATHER = {
	ARITY(2, 2, 1), .attributes = gather_attributes, .infer = gather_infer,
	.backward = gather_backward, .compute = gather_compute, .terms = terms_none,
	.samples = gather_samples, .samples_from = 1,
};

const struct operator_row row_GATHER_GRAD = {
	GRADIENT(2, 1, gather_attributes), .compute = gather_grad_compute,
	.terms = gather_grad_terms,
};
/* clang-format on */
