/* MaxPool, AveragePool and their gradients. */
#include "graph/operators/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct attribute_row max_pool_attributes[] = {
	{ATTRIBUTE("kernel_shape", INTS2, kernel, 0)}, {ATTRIBUTE("strides", INTS2, strides, 1)},
	{ATTRIBUTE("dilations", INTS2, dilations, 1)}, {ATTRIBUTE("pads", INTS4, pads, 0)},
	{ATTRIBUTE("ceil_mode", BOOL, ceil_mode, 0)},  {.name = NULL},
};

static const struct attribute_row average_pool_attributes[] = {
	{ATTRIBUTE("kernel_shape", INTS2, kernel, 0)},
	{ATTRIBUTE("strides", INTS2, strides, 1)},
	{ATTRIBUTE("pads", INTS4, pads, 0)},
	{ATTRIBUTE("ceil_mode", BOOL, ceil_mode, 0)},
	{ATTRIBUTE("count_include_pad", BOOL, count_include_pad, 0)},
	{.name = NULL},
};

/* Every window must contain an element of the input; otherwise its maximum is undefined. This is
 * ensured by padding smaller than the kernel, which ONNX Runtime also requires, and by taps that
 * are no further apart than the input is large. */
static enum prony_status check_padding(const struct graph *graph, const struct node *node,
				       struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct attributes *a = &node->attributes;

	for (int i = 0; i < 2; i++) {
		if (a->pads[i] >= a->kernel[i] || a->pads[i + 2] >= a->kernel[i])
			return node_error(node, err,
					  "padding must be smaller than the kernel (%lld)",
					  (long long)a->kernel[i]);
		if (a->kernel[i] > 1 && a->dilations[i] > x->dims[2 + i])
			return node_error(node, err,
					  "dilation %lld is larger than the input (%lld)",
					  (long long)a->dilations[i], (long long)x->dims[2 + i]);
	}
	return PRONY_OK;
}

static enum prony_status max_pool_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = {.rank = 4};
	enum prony_status status = node_need_rank(graph, node, 0, 4, err);

	if (status == PRONY_OK)
		status = node_sliding_windows(graph, node, 0, &y.dims[2], err);
	if (status == PRONY_OK)
		status = check_padding(graph, node, err);
	if (status != PRONY_OK)
		return status;
	y.dims[0] = node_input_shape(graph, node, 0)->dims[0];
	y.dims[1] = node_input_shape(graph, node, 0)->dims[1];
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static enum prony_status average_pool_infer(struct graph *graph, struct node *node,
					    struct error *err)
{
	/* ONNX has no dilations here before opset 19. */
	node->attributes.dilations[0] = node->attributes.dilations[1] = 1;
	return max_pool_infer(graph, node, err);
}

/* One window of the pool: its elements on a plane of the input, without padding. */
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

/* Index of element (r, s) of the window on its plane; -1 if it is padding. */
static int64_t window_index(const struct pool_window *window, int64_t r, int64_t s)
{
	int64_t row = window->origin[0] + r * window->dilation[0];
	int64_t column = window->origin[1] + s * window->dilation[1];

	if (row < 0 || row >= window->size[0] || column < 0 || column >= window->size[1])
		return -1;
	return row * window->size[1] + column;
}

/* The elements of the window on one axis that are on the plane: from *first up to, but not
 * including, *end. */
static void inside(const struct pool_window *window, int axis, int64_t *first, int64_t *end)
{
	int64_t step = window->dilation[axis], origin = window->origin[axis];
	int64_t left = window->size[axis] - origin;

	*first = origin < 0 ? (-origin + step - 1) / step : 0;
	*end = left > 0 ? (left + step - 1) / step : 0;
	if (*end > window->kernel[axis])
		*end = window->kernel[axis];
}

/*
 * Index of the first largest element in row-major order, and of the largest of the smaller ones (or
 * -1).
 */
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

/* The number of elements that all windows of an output read. */
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

static void max_pool_compute(const struct kernel_call *call)
{
	const struct shape *y = kernel_output_shape(call, 0);
	struct kernel_call shared = *call;

	kernel_parts(planes_of(y), window_elements(call, y), max_pool_plane, &shared);
}

/* As in elementwise.c: all planes are computed as if nothing were too close to call. Planes with
 * such elements are computed again by one thread, which decides in the order of the elements. */
struct pool_gradient {
	const struct kernel_call *call;
	double close;
	bool deciding;
	bool *noted; /* by plane */
};

/* Returns where the gradient of a window goes; notes or decides comparisons that are too close to
 * call. */
static int64_t route(const struct pool_gradient *g, const struct pool_window *window,
		     const double *plane, int64_t p, int64_t place)
{
	int64_t runner_up;
	int64_t best = window_maximum(window, plane, &runner_up);

	if (!g->call->hooks || runner_up < 0)
		return best;
	double difference = plane[best] - plane[runner_up];
	if (!(difference < g->close))
		return best;
	if (g->deciding)
		return g->call->hooks->decide(g->call, place, best, runner_up);
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

static void max_pool_grad_compute(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 1);
	int64_t planes = planes_of(x);
	struct pool_gradient g = {.call = call, .noted = memory_alloc((size_t)planes)};

	if (call->hooks)
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

/* The divisor of a window's sum. Windows of ceil_mode may reach beyond the padding; elements there
 * never count. */
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

/* Goes over the windows of a plane: computes their means into y, or distributes y back to x. */
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

static void average_pool_compute(const struct kernel_call *call)
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

static void average_pool_grad_compute(const struct kernel_call *call)
{
	const struct shape *x = kernel_output_shape(call, 0);
	struct kernel_call shared = *call;

	kernel_parts(planes_of(x), window_elements(call, kernel_input_shape(call, 0)),
		     average_grad_plane, &shared);
}

static int64_t average_pool_terms(const struct graph *graph, const struct node *node, int output)
{
	(void)graph;
	(void)output;
	return node->attributes.kernel[0] * node->attributes.kernel[1];
}

/* clang-format off */
const struct operator_row row_MAX_POOL = {
	ARITY(1, 1, 1), .attributes = max_pool_attributes, .is_reduction = true,
	.infer = max_pool_infer, .gradient = OP_MAX_POOL_GRAD, .gradient_reads = "xy",
	.compute = max_pool_compute, .terms = terms_none, .samples = samples_of_planes,
};

const struct operator_row row_MAX_POOL_GRAD = {
	GRADIENT(3, 1, max_pool_attributes), .compute = max_pool_grad_compute,
	.compares = 2, .keeps_less = true,
};

const struct operator_row row_AVERAGE_POOL = {
	ARITY(1, 1, 1), .attributes = average_pool_attributes, .is_reduction = true,
	.infer = average_pool_infer, .gradient = OP_AVERAGE_POOL_GRAD,
	.compute = average_pool_compute, .terms = average_pool_terms,
	.samples = samples_of_planes,
};

const struct operator_row row_AVERAGE_POOL_GRAD = {
	GRADIENT(1, 1, average_pool_attributes), .compute = average_pool_grad_compute,
};
/* clang-format on */
