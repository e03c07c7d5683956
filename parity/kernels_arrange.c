#include "parity/kernels_internal.h"

#include <string.h>

void kernel_transpose(const struct kernel_call *call)
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

void kernel_concat(const struct kernel_call *call)
{
	int64_t axis = call->node->attributes.axis, start = 0;
	struct axis_split y = split_axis(kernel_output_shape(call, 0), axis);

	for (int i = 0; i < call->node->input_count; i++) {
		struct axis_split x = split_axis(kernel_input_shape(call, i), axis);
		int64_t run = x.size * x.inner;

		for (int64_t n = 0; n < x.outer; n++)
			memcpy(kernel_output(call, 0) + n * y.size * y.inner + start,
			       kernel_input(call, i) + n * run, (size_t)run * sizeof(double));
		start += run;
	}
}

/* Where element i of the slice begins in the whole array. */
static int64_t slice_at(const struct attributes *a, const struct axis_split *whole, int64_t n,
			int64_t i)
{
	return (n * whole->size + a->start + i * a->step) * whole->inner;
}

void kernel_slice(const struct kernel_call *call)
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

void kernel_slice_grad(const struct kernel_call *call)
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

/* Walks over the small array; place 0 is where its elements stand in the padded one. */
static struct array_walk pad_walk(const struct kernel_call *call, const struct shape *inner,
				  const struct shape *padded)
{
	struct array_walk walk = array_walk_start(inner);

	for (int i = 0; i < inner->rank; i++) {
		walk.steps[0][i] = split_axis(padded, i).inner;
		walk.at[0] += call->node->attributes.ints.items[i] * walk.steps[0][i];
	}
	return walk;
}

void kernel_pad(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);
	struct array_walk walk =
		pad_walk(call, kernel_input_shape(call, 0), kernel_output_shape(call, 0));

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = call->node->attributes.value;
	for (int64_t i = 0; i < shape_elements(&walk.shape); i++, array_walk_next(&walk))
		y[walk.at[0]] = x[i];
}

void kernel_pad_grad(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0);
	double *dx = kernel_output(call, 0);
	struct array_walk walk =
		pad_walk(call, kernel_output_shape(call, 0), kernel_input_shape(call, 0));

	for (int64_t i = 0; i < shape_elements(&walk.shape); i++, array_walk_next(&walk))
		dx[i] = dy[walk.at[0]];
}
