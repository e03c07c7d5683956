#include "parity/kernels.h"

#include <math.h>
#include <string.h>

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

/* The first largest element in row-major order, and the largest of those below it (or -1). */
static int64_t window_maximum(const struct pool_window *window, const double *plane,
			      int64_t *runner_up)
{
	int64_t best = -1, second = -1;

	for (int64_t r = 0; r < window->kernel[0]; r++) {
		for (int64_t s = 0; s < window->kernel[1]; s++) {
			int64_t i = window_index(window, r, s);

			if (i < 0)
				continue;
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

void kernel_max_pool(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 0), *y = kernel_output_shape(call, 0);
	const double *plane = kernel_input(call, 0);
	double *out = kernel_output(call, 0);
	int64_t runner_up;

	for (int64_t p = 0; p < y->dims[0] * y->dims[1]; p++) {
		for (int64_t h = 0; h < y->dims[2]; h++) {
			for (int64_t w = 0; w < y->dims[3]; w++) {
				struct pool_window window =
					window_at(&call->node->attributes, x, h, w);

				*out++ = plane[window_maximum(&window, plane, &runner_up)];
			}
		}
		plane += x->dims[2] * x->dims[3];
	}
}

/* Where the gradient of a window goes; notes and turns decisions that are too close to call. */
static int64_t route(const struct pool_window *window, const double *plane, double close,
		     struct kinks *kinks)
{
	int64_t runner_up;
	int64_t best = window_maximum(window, plane, &runner_up);

	if (!kinks || runner_up < 0 || !(plane[best] - plane[runner_up] < close))
		return best;
	return kernel_turns(kinks) ? runner_up : best;
}

void kernel_max_pool_grad(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 1), *y = kernel_input_shape(call, 0);
	const double *dy = kernel_input(call, 0), *plane = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);
	double close = call->kinks ? call->close * kernel_rms(plane, shape_elements(x)) : 0;

	memset(dx, 0, (size_t)shape_elements(x) * sizeof(*dx));
	for (int64_t p = 0; p < y->dims[0] * y->dims[1]; p++) {
		for (int64_t h = 0; h < y->dims[2]; h++) {
			for (int64_t w = 0; w < y->dims[3]; w++) {
				struct pool_window window =
					window_at(&call->node->attributes, x, h, w);

				dx[route(&window, plane, close, call->kinks)] += *dy++;
			}
		}
		plane += x->dims[2] * x->dims[3];
		dx += x->dims[2] * x->dims[3];
	}
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

/* Either way over all windows: y is their means, or x gets what is given in y back. */
static void average(const struct attributes *a, const struct shape *x_shape,
		    const struct shape *y_shape, double *x, double *y, bool backward)
{
	for (int64_t p = 0; p < y_shape->dims[0] * y_shape->dims[1]; p++) {
		for (int64_t i = 0; i < y_shape->dims[2] * y_shape->dims[3]; i++, y++) {
			struct pool_window window =
				window_at(a, x_shape, i / y_shape->dims[3], i % y_shape->dims[3]);
			double divisor = window_divisor(a, &window), sum = 0;

			for (int64_t k = 0; k < window.kernel[0] * window.kernel[1]; k++) {
				int64_t at = window_index(&window, k / window.kernel[1],
							  k % window.kernel[1]);

				if (at >= 0 && backward)
					x[at] += *y / divisor;
				else if (at >= 0)
					sum += x[at];
			}
			if (!backward)
				*y = sum / divisor;
		}
		x += x_shape->dims[2] * x_shape->dims[3];
	}
}

void kernel_average_pool(const struct kernel_call *call)
{
	average(&call->node->attributes, kernel_input_shape(call, 0), kernel_output_shape(call, 0),
		kernel_input(call, 0), kernel_output(call, 0), false);
}

void kernel_average_pool_grad(const struct kernel_call *call)
{
	double *dx = kernel_output(call, 0);

	memset(dx, 0, (size_t)kernel_output_count(call, 0) * sizeof(*dx));
	average(&call->node->attributes, kernel_output_shape(call, 0), kernel_input_shape(call, 0),
		dx, kernel_input(call, 0), true);
}
