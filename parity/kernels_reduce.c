#include "parity/kernels_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Walks over x; place 0 is where each element's mean stands. */
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

void kernel_mean(const struct kernel_call *call)
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

void kernel_mean_grad(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0);
	double *dx = kernel_output(call, 0);
	int64_t count = kernel_output_count(call, 0);
	double share = (double)shape_elements(kernel_input_shape(call, 0)) / (double)count;
	struct array_walk walk = mean_walk(call, kernel_output_shape(call, 0));

	for (int64_t i = 0; i < count; i++, array_walk_next(&walk))
		dx[i] = dy[walk.at[0]] * share;
}

void kernel_softmax(const struct kernel_call *call)
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
void kernel_softmax_grad(const struct kernel_call *call)
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
