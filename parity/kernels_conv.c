#include "parity/kernels.h"

#include <string.h>

/*
 * The forward convolution and both gradients visit the same products y[n,o,h,w] ~ k[o,c,r,s] *
 * x[n,c,h*stride+r*dilation-pad,...]; they differ in which of the three is summed up. One walk over
 * (n, o, c, r, s) therefore serves all, and each operator says what happens on a plane of one tap.
 */
struct conv {
	const struct attributes *attributes;
	const struct shape *x, *k, *y;
};

/* What one element of the kernel sees: planes of x and y, and the outputs it takes part in. */
struct tap {
	double *x, *k, *y;	  /* x: plane; k: the element; y: plane */
	int64_t first[2], end[2]; /* rows and columns of y whose input lies inside x */
	int64_t origin[2];	  /* input row and column of output 0, may be negative */
	int64_t stride[2];
	int64_t x_width, y_width;
};

static void add_scaled(double *restrict to, const double *restrict from, double factor,
		       int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		to[i] += factor * from[i];
}

/* Four partial sums, so that the compiler may use vectors. */
static double dot(const double *restrict a, const double *restrict b, int64_t count)
{
	double sum[4] = {0};
	int64_t i = 0;

	for (; i + 4 <= count; i += 4)
		for (int lane = 0; lane < 4; lane++)
			sum[lane] += a[i + lane] * b[i + lane];
	for (; i < count; i++)
		sum[0] += a[i] * b[i];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

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

/* The outputs on one axis whose input for this position in the kernel is not padding. */
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

/* All taps between one plane of x and one of y, with the kernel plane k. */
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

static void walk(const struct conv *conv, double *x, double *k, double *y,
		 void (*visit)(const struct tap *))
{
	int64_t outputs = conv->y->dims[1], depth = conv->k->dims[1];
	int64_t outputs_per_group = outputs / conv->attributes->group;
	int64_t x_plane = conv->x->dims[2] * conv->x->dims[3];
	int64_t y_plane = conv->y->dims[2] * conv->y->dims[3];
	int64_t k_plane = conv->k->dims[2] * conv->k->dims[3];

	for (int64_t n = 0; n < conv->x->dims[0]; n++) {
		for (int64_t o = 0; o < outputs; o++) {
			int64_t first_channel = o / outputs_per_group * depth;

			for (int64_t c = 0; c < depth; c++)
				walk_planes(conv,
					    x + (n * conv->x->dims[1] + first_channel + c) *
							    x_plane,
					    k + (o * depth + c) * k_plane,
					    y + (n * outputs + o) * y_plane, visit);
		}
	}
}

void kernel_conv(const struct kernel_call *call)
{
	struct conv conv = {.attributes = &call->node->attributes,
			    .x = kernel_input_shape(call, 0),
			    .k = kernel_input_shape(call, 1),
			    .y = kernel_output_shape(call, 0)};
	const double *bias = kernel_input(call, 2);
	double *y = kernel_output(call, 0);
	int64_t plane = conv.y->dims[2] * conv.y->dims[3];

	for (int64_t i = 0; i < conv.y->dims[0] * conv.y->dims[1]; i++)
		for (int64_t j = 0; j < plane; j++)
			y[i * plane + j] = bias ? bias[i % conv.y->dims[1]] : 0;
	walk(&conv, kernel_input(call, 0), kernel_input(call, 1), y, tap_forward);
}

void kernel_conv_grad_input(const struct kernel_call *call)
{
	struct conv conv = {.attributes = &call->node->attributes,
			    .x = kernel_output_shape(call, 0),
			    .k = kernel_input_shape(call, 1),
			    .y = kernel_input_shape(call, 0)};
	double *dx = kernel_output(call, 0);

	memset(dx, 0, (size_t)kernel_output_count(call, 0) * sizeof(*dx));
	walk(&conv, dx, kernel_input(call, 1), kernel_input(call, 0), tap_grad_input);
}

void kernel_conv_grad_weight(const struct kernel_call *call)
{
	struct conv conv = {.attributes = &call->node->attributes,
			    .x = kernel_input_shape(call, 0),
			    .k = kernel_output_shape(call, 0),
			    .y = kernel_input_shape(call, 1)};
	double *dy = kernel_input(call, 1), *dw = kernel_output(call, 0);
	double *db = kernel_output(call, 1);
	int64_t outputs = conv.y->dims[1], plane = conv.y->dims[2] * conv.y->dims[3];

	memset(dw, 0, (size_t)kernel_output_count(call, 0) * sizeof(*dw));
	walk(&conv, kernel_input(call, 0), dw, dy, tap_grad_weight);
	if (!db)
		return;
	memset(db, 0, (size_t)outputs * sizeof(*db));
	for (int64_t i = 0; i < conv.y->dims[0] * outputs; i++)
		for (int64_t j = 0; j < plane; j++)
			db[i % outputs] += dy[i * plane + j];
}
