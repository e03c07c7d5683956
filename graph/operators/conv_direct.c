/* Computes convolutions tap by tap, without a matrix product. */
#include "graph/operators/conv_internal.h"

#include "base/parallel.h"
#include "graph/operators/vector_f64_internal.h"

/* The operands of one kernel element: planes of x and y, and the range of outputs that use it. */
struct tap {
	double *x, *k, *y;	  /* x: plane; k: the element; y: plane */
	int64_t first[2], end[2]; /* rows and columns of y whose input is inside x */
	int64_t origin[2];	  /* input row and column of output 0, may be negative */
	int64_t stride[2];
	int64_t x_width, y_width;
};

static double *tap_x_row(const struct tap *t, int64_t h)
{
	return t->x + (h * t->stride[0] + t->origin[0]) * t->x_width;
}

/* y += k * x */
static void tap_forward(const struct tap *t)
{
	for (int64_t h = t->first[0]; h < t->end[0]; h++) {
		const double *x = tap_x_row(t, h);
		double *y = t->y + h * t->y_width;

		if (t->stride[1] == 1) {
			add_scaled(y + t->first[1], x + t->first[1] + t->origin[1], *t->k,
				   t->end[1] - t->first[1]);
			continue;
		}
		for (int64_t w = t->first[1]; w < t->end[1]; w++)
			y[w] += *t->k * x[w * t->stride[1] + t->origin[1]];
	}
}

/* x += k * y, where x and y hold gradients */
static void tap_grad_input(const struct tap *t)
{
	for (int64_t h = t->first[0]; h < t->end[0]; h++) {
		double *x = tap_x_row(t, h);
		const double *y = t->y + h * t->y_width;

		if (t->stride[1] == 1) {
			add_scaled(x + t->first[1] + t->origin[1], y + t->first[1], *t->k,
				   t->end[1] - t->first[1]);
			continue;
		}
		for (int64_t w = t->first[1]; w < t->end[1]; w++)
			x[w * t->stride[1] + t->origin[1]] += *t->k * y[w];
	}
}

/* k += y . x, where k and y hold gradients */
static void tap_grad_weight(const struct tap *t)
{
	double sum = 0;

	for (int64_t h = t->first[0]; h < t->end[0]; h++) {
		const double *x = tap_x_row(t, h);
		const double *y = t->y + h * t->y_width;

		if (t->stride[1] == 1) {
			sum += dot(y + t->first[1], x + t->first[1] + t->origin[1],
				   t->end[1] - t->first[1]);
			continue;
		}
		for (int64_t w = t->first[1]; w < t->end[1]; w++)
			sum += y[w] * x[w * t->stride[1] + t->origin[1]];
	}
	*t->k += sum;
}

/* The range of outputs on one axis for which this kernel position does not read padding. */
static void tap_range(const struct conv *conv, int axis, int64_t position, struct tap *t)
{
	int64_t stride = conv->attributes->strides[axis];
	int64_t size = conv->x->dims[2 + axis], outputs = conv->y->dims[2 + axis];
	int64_t origin =
		position * conv->attributes->dilations[axis] - conv->attributes->pads[axis];

	t->stride[axis] = stride;
	t->origin[axis] = origin;
	t->first[axis] = origin < 0 ? (-origin + stride - 1) / stride : 0;
	t->end[axis] = origin < size ? (size - 1 - origin) / stride + 1 : 0;
	if (t->end[axis] > outputs)
		t->end[axis] = outputs;
	if (t->first[axis] > t->end[axis])
		t->first[axis] = t->end[axis];
}

/* Visits all taps between one plane of x and one of y, with the kernel plane k. */
static void walk_planes(const struct conv *conv, double *x, double *k, double *y,
			void (*visit)(const struct tap *))
{
	struct tap tap = {.x = x, .y = y, .x_width = conv->x->dims[3], .y_width = conv->y->dims[3]};

	for (int64_t r = 0; r < conv->k->dims[2]; r++) {
		tap_range(conv, 0, r, &tap);
		for (int64_t s = 0; s < conv->k->dims[3]; s++) {
			tap_range(conv, 1, s, &tap);
			tap.k = k + r * conv->k->dims[3] + s;
			visit(&tap);
		}
	}
}

/* Visits all planes of x that plane o of sample n of y depends on. */
static void walk_output(const struct conv *conv, const struct conv_data *data, int64_t n, int64_t o,
			void (*visit)(const struct tap *))
{
	int64_t outputs = conv->y->dims[1], depth = conv->k->dims[1];
	int64_t first_channel = o / (outputs / conv->attributes->group) * depth;
	int64_t x_plane = conv->x->dims[2] * conv->x->dims[3];
	int64_t y_plane = conv->y->dims[2] * conv->y->dims[3];
	int64_t k_plane = conv->k->dims[2] * conv->k->dims[3];

	for (int64_t c = 0; c < depth; c++)
		walk_planes(conv, data->x + (n * conv->x->dims[1] + first_channel + c) * x_plane,
			    data->k + (o * depth + c) * k_plane,
			    data->y + (n * outputs + o) * y_plane, visit);
}

struct walk {
	const struct conv *conv;
	const struct conv_data *data;
};

/* An item is a plane of y. */
static void walk_forward(void *context, struct parallel_items *items)
{
	const struct walk *walk = context;
	int64_t outputs = walk->conv->y->dims[1];

	for (int64_t i = parallel_next(items); i >= 0; i = parallel_next(items))
		walk_output(walk->conv, walk->data, i / outputs, i % outputs, tap_forward);
}

/* An item is a group of a sample of x. */
static void walk_grad_input(void *context, struct parallel_items *items)
{
	const struct walk *walk = context;
	int64_t groups = walk->conv->attributes->group, outputs = walk->conv->y->dims[1] / groups;

	for (int64_t i = parallel_next(items); i >= 0; i = parallel_next(items))
		for (int64_t o = 0; o < outputs; o++)
			walk_output(walk->conv, walk->data, i / groups, i % groups * outputs + o,
				    tap_grad_input);
}

/* An item is the kernel of one output channel. */
static void walk_grad_weight(void *context, struct parallel_items *items)
{
	const struct walk *walk = context;

	for (int64_t o = parallel_next(items); o >= 0; o = parallel_next(items))
		for (int64_t n = 0; n < walk->conv->x->dims[0]; n++)
			walk_output(walk->conv, walk->data, n, o, tap_grad_weight);
}

static void walk_all(const struct conv *conv, const struct conv_data *data, int64_t items,
		     void (*work)(void *context, struct parallel_items *items))
{
	struct walk walk = {conv, data};
	int64_t macs = shape_elements(conv->y) * conv->k->dims[1];

	for (int axis = 2; axis < 4; axis++)
		if (__builtin_mul_overflow(macs, conv->k->dims[axis], &macs))
			macs = INT64_MAX; /* only the number of threads depends on it */
	parallel_run(items, parallel_threads(macs), work, &walk);
}

void conv_direct(const struct conv *conv, const struct conv_data *data)
{
	walk_all(conv, data, conv->y->dims[0] * conv->y->dims[1], walk_forward);
}

void conv_direct_grad_input(const struct conv *conv, const struct conv_data *data)
{
	walk_all(conv, data, conv->x->dims[0] * conv->attributes->group, walk_grad_input);
}

void conv_direct_grad_weight(const struct conv *conv, const struct conv_data *data)
{
	walk_all(conv, data, conv->y->dims[1], walk_grad_weight);
}
