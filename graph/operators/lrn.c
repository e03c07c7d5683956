/* LRN: local response normalisation across channels, and its gradient. */
#include "graph/operators/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct attribute_row lrn_attributes[] = {
	{ATTRIBUTE("alpha", REAL, alpha, 1e-4)},
	{ATTRIBUTE("beta", REAL, beta, 0.75)},
	{ATTRIBUTE("bias", REAL, bias, 1)},
	{ATTRIBUTE("size", INT, size, 0)},
	{.name = NULL},
};

static enum prony_status lrn_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct attributes *a = &node->attributes;

	if (node_input_shape(graph, node, 0)->rank < 2)
		return node_error(node, err,
				  "its input has fewer than 2 dimensions, so no channels");
	if (a->size < 1 || a->size > INT32_MAX)
		return node_error(node, err, "size is %lld; it must be 1 or more",
				  (long long)a->size);
	/* This excludes powers of zero and of negative numbers. */
	if (!(a->bias > 0 && a->alpha >= 0))
		return node_error(
			node, err,
			"bias is %g and must be positive; alpha is %g and must not be negative",
			a->bias, a->alpha);
	return node_copy_shape(graph, node, err);
}

/* The channels around c; an even size has one more channel above than below, as in ONNX. */
static void lrn_range(int64_t size, int64_t channels, int64_t c, int64_t *first, int64_t *end)
{
	*first = c - (size - 1) / 2;
	*end = c + size / 2 + 1;
	if (*first < 0)
		*first = 0;
	if (*end > channels)
		*end = channels;
}

/*
 * bias + alpha / size * the sum of squares around it, for all elements of channel c of one sample.
 */
static void lrn_scale(const struct attributes *a, const struct axis_split *s, const double *sample,
		      int64_t c, double *scale)
{
	int64_t first, end;

	lrn_range(a->size, s->size, c, &first, &end);
	for (int64_t i = 0; i < s->inner; i++)
		scale[i] = 0;
	for (int64_t k = first; k < end; k++)
		for (int64_t i = 0; i < s->inner; i++)
			scale[i] += sample[k * s->inner + i] * sample[k * s->inner + i];
	for (int64_t i = 0; i < s->inner; i++)
		scale[i] = a->bias + a->alpha / (double)a->size * scale[i];
}

static void lrn_compute(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	struct axis_split s = split_axis(kernel_input_shape(call, 0), 1);
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t n = 0; n < s.outer; n++, x += s.size * s.inner, y += s.size * s.inner) {
		for (int64_t c = 0; c < s.size; c++) {
			double *scale = y + c * s.inner;

			lrn_scale(a, &s, x, c, scale);
			for (int64_t i = 0; i < s.inner; i++)
				scale[i] = x[c * s.inner + i] * pow(scale[i], -a->beta);
		}
	}
}

/* y[c] = x[c] s[c]^-beta, and x[c] is part of s[k] for every k whose range contains c: dx[c] =
 * dy[c] s[c]^-beta - 2 alpha beta / size x[c] sum over those k of dy[k] y[k] / s[k] */
static void lrn_grad_compute(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	struct axis_split s = split_axis(kernel_input_shape(call, 1), 1);
	const double *dy = kernel_input(call, 0), *x = kernel_input(call, 1);
	const double *y = kernel_input(call, 2);
	double *dx = kernel_output(call, 0), slope = 2 * a->alpha * a->beta / (double)a->size;
	double *scale = memory_alloc((size_t)s.inner * sizeof(*scale));
	int64_t sample = s.size * s.inner;

	memset(dx, 0, (size_t)(s.outer * sample) * sizeof(*dx));
	for (int64_t n = 0; n < s.outer; n++) {
		for (int64_t k = 0; k < s.size; k++) {
			int64_t first, end, at = n * sample + k * s.inner;

			lrn_scale(a, &s, x + n * sample, k, scale);
			lrn_range(a->size, s.size, k, &first, &end);
			for (int64_t c = first; c < end; c++) {
				int64_t to = n * sample + c * s.inner;

				for (int64_t i = 0; i < s.inner; i++)
					dx[to + i] -= slope * x[to + i] * dy[at + i] * y[at + i] /
						      scale[i];
			}
			for (int64_t i = 0; i < s.inner; i++)
				dx[at + i] += dy[at + i] * pow(scale[i], -a->beta);
		}
	}
	free(scale);
}

/* clang-format off */
const struct operator_row row_LRN = {
	ARITY(1, 1, 1), .attributes = lrn_attributes, .infer = lrn_infer,
	.gradient = OP_LRN_GRAD, .gradient_reads = "xy", .compute = lrn_compute,
	.samples = samples_beside_channels, .onnx_inputs = "x",
};

const struct operator_row row_LRN_GRAD = {
	GRADIENT(3, 1, lrn_attributes), .compute = lrn_grad_compute,
};
/* clang-format on */
