/* Softmax over one axis, and its gradient. */
#include "graph/operators/operator.h"

#include <math.h>

static const struct attribute_row softmax_attributes[] = {
	{ATTRIBUTE("axis", INT, axis, -1)},
	{.name = NULL},
};

static enum prony_status softmax_infer(struct graph *graph, struct node *node, struct error *err)
{
	enum prony_status status = node_normal_axis(node, node_input_shape(graph, node, 0)->rank,
						    &node->attributes.axis, err);

	return status == PRONY_OK ? node_copy_shape(graph, node, err) : status;
}

static void softmax_compute(const struct kernel_call *call)
{
	struct axis_split s = split_axis(kernel_output_shape(call, 0), call->node->attributes.axis);

	for (int64_t k = 0; k < s.outer * s.inner; k++) {
		int64_t first = k / s.inner * s.size * s.inner + k % s.inner;
		const double *x = kernel_input(call, 0) + first;
		double *y = kernel_output(call, 0) + first, largest = x[0], sum = 0;

		for (int64_t i = 1; i < s.size; i++)
			if (x[i * s.inner] > largest)
				largest = x[i * s.inner];
		for (int64_t i = 0; i < s.size; i++)
			sum += y[i * s.inner] = exp(x[i * s.inner] - largest);
		for (int64_t i = 0; i < s.size; i++)
			y[i * s.inner] /= sum;
	}
}

/* dx = y (dy - sum of dy y) */
static void softmax_grad_compute(const struct kernel_call *call)
{
	struct axis_split s = split_axis(kernel_output_shape(call, 0), call->node->attributes.axis);

	for (int64_t k = 0; k < s.outer * s.inner; k++) {
		int64_t first = k / s.inner * s.size * s.inner + k % s.inner;
		const double *dy = kernel_input(call, 0) + first;
		const double *y = kernel_input(call, 1) + first;
		double *dx = kernel_output(call, 0) + first, sum = 0;

		for (int64_t i = 0; i < s.size; i++)
			sum += dy[i * s.inner] * y[i * s.inner];
		for (int64_t i = 0; i < s.size; i++)
			dx[i * s.inner] = y[i * s.inner] * (dy[i * s.inner] - sum);
	}
}

/* The sum over the axis, in the value and in the gradient. */
static int64_t softmax_terms(const struct graph *graph, const struct node *node, int output)
{
	return node_output_shape(graph, node, output)->dims[node->attributes.axis];
}

static struct samples_axis softmax_samples(const struct samples *s, const struct node *node,
					   const struct samples_axis *x)
{
	(void)s;
	return x->axis != node->attributes.axis ? *x : samples_nowhere;
}

/* clang-format off */
const struct operator_row row_SOFTMAX = {
	ARITY(1, 1, 1), .attributes = softmax_attributes, .infer = softmax_infer,
	.gradient = OP_SOFTMAX_GRAD, .gradient_reads = "y", .compute = softmax_compute,
	.terms = softmax_terms, .samples = softmax_samples,
};

const struct operator_row row_SOFTMAX_GRAD = {
	GRADIENT(2, 1, softmax_attributes), .compute = softmax_grad_compute,
	.terms = softmax_terms,
};
/* clang-format on */
