/* Slice of one axis, and its gradient. */
#include "graph/operators/operator.h"

#include <string.h>

static const struct attribute_row slice_attributes[] = {
	{ATTRIBUTE("start", INT, start, 0), .input = 1},
	{ATTRIBUTE("end", INT, end, INT32_MAX), .input = 2},
	{ATTRIBUTE("axis", INT, axis, 0), .input = 3},
	{ATTRIBUTE("step", INT, step, 1), .input = 4},
	{.name = NULL},
};

/* Makes a negative position count from the start, and limits it to 0 to size. */
static int64_t clamp(int64_t end, int64_t size)
{
	if (end < 0)
		end = end < -size ? 0 : end + size;
	return end > size ? size : end;
}

static enum prony_status slice_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	struct attributes *a = &node->attributes;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status == PRONY_OK)
		status = node_normal_axis(node, y.rank, &a->axis, err);
	if (status != PRONY_OK)
		return status;
	if (a->step < 1 || a->step > INT32_MAX)
		return node_error(node, err, "step is %lld; only positive steps are supported",
				  (long long)a->step);
	a->start = clamp(a->start, y.dims[a->axis]);
	a->end = clamp(a->end, y.dims[a->axis]);
	if (a->start >= a->end)
		return node_error(node, err, "the slice from %lld to %lld is empty",
				  (long long)a->start, (long long)a->end);
	y.dims[a->axis] = (a->end - a->start - 1) / a->step + 1;
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

/* Offset of element i of the slice in the whole array. */
static int64_t slice_at(const struct attributes *a, const struct axis_split *whole, int64_t n,
			int64_t i)
{
	return (n * whole->size + a->start + i * a->step) * whole->inner;
}

static void slice_compute(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	struct axis_split x = split_axis(kernel_input_shape(call, 0), a->axis);
	struct axis_split y = split_axis(kernel_output_shape(call, 0), a->axis);
	double *to = kernel_output(call, 0);

	for (int64_t n = 0; n < y.outer; n++)
		for (int64_t i = 0; i < y.size; i++, to += y.inner)
			memcpy(to, kernel_input(call, 0) + slice_at(a, &x, n, i),
			       (size_t)y.inner * sizeof(*to));
}

static void slice_grad_compute(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	struct axis_split x = split_axis(kernel_output_shape(call, 0), a->axis);
	struct axis_split y = split_axis(kernel_input_shape(call, 0), a->axis);
	const double *from = kernel_input(call, 0);
	double *dx = kernel_output(call, 0);

	memset(dx, 0, (size_t)kernel_output_count(call, 0) * sizeof(*dx));
	for (int64_t n = 0; n < y.outer; n++)
		for (int64_t i = 0; i < y.size; i++, from += y.inner)
			memcpy(dx + slice_at(a, &x, n, i), from, (size_t)y.inner * sizeof(*from));
}

/* Along the batch, a slice may take whole groups of samples only. */
static struct samples_axis slice_samples(const struct samples *s, const struct node *node,
					 const struct samples_axis *x)
{
	const struct attributes *a = &node->attributes;
	int64_t group = s->batch * x->inner;

	if (a->axis != x->axis)
		return samples_on_output(s, node, x->axis, x->outer);
	if (a->step != 1 || a->start % group != 0 || a->end % group != 0)
		return samples_nowhere;
	return samples_on_output(s, node, x->axis, (a->end - a->start) / group);
}

static void slice_rebatch(const struct samples *s, const struct samples_axis *x,
			  const struct samples_axis *y, int64_t batch, struct attributes *a)
{
	(void)y;
	if (a->axis != x->axis)
		return;
	a->start = saturating_multiply(a->start / s->batch, batch);
	a->end = saturating_multiply(a->end / s->batch, batch);
}

/* clang-format off */
const struct operator_row row_SLICE = {
	ARITY(1, 1, 1), .attributes = slice_attributes, .infer = slice_infer,
	.gradient = OP_SLICE_GRAD, .compute = slice_compute, .terms = terms_none,
	.samples = slice_samples, .rebatch = slice_rebatch,
};

const struct operator_row row_SLICE_GRAD = {
	GRADIENT(1, 1, slice_attributes), .compute = slice_grad_compute,
	.terms = terms_none,
};
/* clang-format on */
