#include "parity/kernels_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* One window of the pooling: its elements on a plane of the input, padding left out. */
struct pool_window {
	int64_t origin[2], kernel[2], dilation[2], size[2];
};

static struct pool_window window_at(const struct attributes *a, const struct shape *x, int64_t h,
				    int64_t w)
{
	struct pool_window window = {
		.origin = {h * a->strides[0] - a->pads[0], w * a->strides[1] - a->pads[1]}};

	for (int i = 0; i < 2; i++) {
		window.kernel[i] = a->kernel[i];
		window.dilation[i] = a->dilations[i];
		window.size[i] = x->dims[2 + i];
	}
	return window;
}

/* Index of element (r, s) of the window on its plane; -1 for padding. */
static int64_t window_index(const struct pool_window *window, int64_t r, int64_t s)
{
	int64_t row = window->origin[0] + r * window->dilation[0];
	int64_t column = window->origin[1] + s * window->dilation[1];

	if (row < 0 || row >= window->size[0] || column < 0 || column >= window->size[1])
		return -1;
	return row * window->size[1] + column;
}

/* The elements of the window on one axis that lie on the plane: from *first up to before *end. */
static void inside(const struct pool_window *window, int axis, int64_t *first, int64_t *end)
{
	int64_t step = window->dilation[axis], origin = window->origin[axis];
	int64_t left = window->size[axis] - origin;

	*first = origin < 0 ? (-origin + step - 1) / step : 0;
	*end = left > 0 ? (left + step - 1) / step : 0;
	if (*end > window->kernel[axis])
		*end = window->kernel[axis];
}

/* The first largest element in row-major order, and the largest of those below it (or -1). */
static int64_t window_maximum(const struct pool_window *window, const double *plane,
			      int64_t *runner_up)
{
	int64_t best = -1, second = -1, first[2], end[2];

	for (int axis = 0; axis < 2; axis++)
		inside(window, axis, &first[axis], &end[axis]);
	for (int64_t r = first[0]; r < end[0]; r++) {
		int64_t i = window_index(window, r, first[1]);

		for (int64_t s = first[1]; s < end[1]; s++, i += window->dilation[1]) {
			if (best < 0 || plane[i] > plane[best] || isnan(plane[i])) {
				second = best;
				best = i;
			} else if (plane[i] < plane[best] &&
				   (second < 0 || plane[i] > plane[second])) {
				second = i;
			}
		}
	}
	*runner_up = second;
	return best;
}

static int64_t plane_of(const struct shape *shape)
{
	return shape->dims[2] * shape->dims[3];
}

static int64_t planes_of(const struct shape *shape)
{
	return shape->dims[0] * shape->dims[1];
}

/* What all windows of an output look at. */
static int64_t window_elements(const struct kernel_call *call, const struct shape *y)
{
	const struct attributes *a = &call->node->attributes;

	return shape_elements(y) * a->kernel[0] * a->kernel[1];
}

static struct pool_window window_number(const struct kernel_call *call, const struct shape *x,
					const struct shape *y, int64_t i)
{
	return window_at(&call->node->attributes, x, i / y->dims[3], i % y->dims[3]);
}

static void max_pool_plane(void *context, int64_t p)
{
	const struct kernel_call *call = context;
	const struct shape *x = kernel_input_shape(call, 0), *y = kernel_output_shape(call, 0);
	const double *plane = kernel_input(call, 0) + p * plane_of(x);
	double *out = kernel_output(call, 0) + p * plane_of(y);
	int64_t runner_up;

	for (int64_t i = 0; i < plane_of(y); i++) {
		struct pool_window window = window_number(call, x, y, i);

		out[i] = plane[window_maximum(&window, plane, &runner_up)];
	}
}

void kernel_max_pool(const struct kernel_call *call)
{
	const struct shape *y = kernel_output_shape(call, 0);
	struct kernel_call shared = *call;

	kernel_parts(planes_of(y), window_elements(call, y), max_pool_plane, &shared);
}

/*
 * As in kernels_elementwise.c: all planes are done as if nothing were too close to call, and those
 * where something is are done again by one thread, which decides in the order of the elements.
 */
struct pool_gradient {
	const struct kernel_call *call;
	double close;
	bool deciding;
	bool *noted; /* by plane */
};

/* Where the gradient of a window goes; notes, or decides, what is too close to call. */
static int64_t route(const struct pool_gradient *g, const struct pool_window *window,
		     const double *plane, int64_t p, int64_t place)
{
	int64_t runner_up;
	int64_t best = window_maximum(window, plane, &runner_up);

	if (!g->call->kinks || runner_up < 0)
		return best;
	double difference = plane[best] - plane[runner_up];
	if (!(difference < g->close))
		return best;
	if (g->deciding)
		return kernel_decides(g->call, place, best, runner_up);
	g->noted[p] = true;
	return best;
}

static void max_pool_grad_plane(void *context, int64_t p)
{
	const struct pool_gradient *g = context;
	const struct kernel_call *call = g->call;
	const struct shape *x = kernel_input_shape(call, 1), *y = kernel_input_shape(call, 0);
	const double *dy = kernel_input(call, 0) + p * plane_of(y);
	const double *plane = kernel_input(call, 1) + p * plane_of(x);
	double *dx = kernel_output(call, 0) + p * plane_of(x);

	memset(dx, 0, (size_t)plane_of(x) * sizeof(*dx));
	for (int64_t i = 0; i < plane_of(y); i++) {
		struct pool_window window = window_number(call, x, y, i);

		dx[route(g, &window, plane, p, p * plane_of(y) + i)] += dy[i];
	}
}

void kernel_max_pool_grad(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 1);
	int64_t planes = planes_of(x);
	struct pool_gradient g = {.call = call, .noted = memory_alloc((size_t)planes)};

	if (call->kinks)
		g.close = call->close * kernel_rms(kernel_input(call, 1), shape_elements(x));
	memset(g.noted, 0, (size_t)planes);
	kernel_parts(planes, window_elements(call, kernel_input_shape(call, 0)),
		     max_pool_grad_plane, &g);
	g.deciding = true;
	for (int64_t p = 0; p < planes; p++)
		if (g.noted[p])
			max_pool_grad_plane(&g, p);
	free(g.noted);
}

/* What the sum of a window is divided by. ceil_mode's windows may reach further than the padding:
 * what lies there never counts. */
static double window_divisor(const struct attributes *a, const struct pool_window *window)
{
	int64_t elements = 1;

	for (int i = 0; i < 2; i++) {
		int64_t first = window->origin[i], end = first + window->kernel[i];
		int64_t low = a->count_include_pad ? -a->pads[i] : 0;
		int64_t high = window->size[i] + (a->count_include_pad ? a->pads[i + 2] : 0);

		elements *= (end < high ? end : high) - (first > low ? first : low);
	}
	return (double)elements;
}

/* Either way over the windows of a plane: y is their means, or x gets what is in y back. */
static void average(const struct attributes *a, const struct shape *x_shape,
		    const struct shape *y_shape, double *x, double *y, bool backward)
{
	for (int64_t i = 0; i < plane_of(y_shape); i++, y++) {
		struct pool_window window =
			window_at(a, x_shape, i / y_shape->dims[3], i % y_shape->dims[3]);
		double divisor = window_divisor(a, &window), sum = 0;

		for (int64_t k = 0; k < window.kernel[0] * window.kernel[1]; k++) {
			int64_t at =
				window_index(&window, k / window.kernel[1], k % window.kernel[1]);

			if (at >= 0 && backward)
				x[at] += *y / divisor;
			else if (at >= 0)
				sum += x[at];
		}
		if (!backward)
			*y = sum / divisor;
	}
}

static void average_plane(void *context, int64_t p)
{
	const struct kernel_call *call = context;
	const struct shape *x = kernel_input_shape(call, 0), *y = kernel_output_shape(call, 0);

	average(&call->node->attributes, x, y, kernel_input(call, 0) + p * plane_of(x),
		kernel_output(call, 0) + p * plane_of(y), false);
}

void kernel_average_pool(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 0);
	struct kernel_call shared = *call;

	kernel_parts(planes_of(x), window_elements(call, kernel_output_shape(call, 0)),
		     average_plane, &shared);
}

static void average_grad_plane(void *context, int64_t p)
{
	const struct kernel_call *call = context;
	const struct shape *x = kernel_output_shape(call, 0), *y = kernel_input_shape(call, 0);
	double *dx = kernel_output(call, 0) + p * plane_of(x);

	memset(dx, 0, (size_t)plane_of(x) * sizeof(*dx));
	average(&call->node->attributes, x, y, dx, kernel_input(call, 0) + p * plane_of(y), true);
}

void kernel_average_pool_grad(const struct kernel_call *call)
{
	const struct shape *x = kernel_output_shape(call, 0);
	struct kernel_call shared = *call;

	kernel_parts(planes_of(x), window_elements(call, kernel_input_shape(call, 0)),
		     average_grad_plane, &shared);
}
