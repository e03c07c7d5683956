#include "parity/kernels.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

#define STREAM_NAME_BYTES 300

void kernel_relu(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);
	int64_t count = kernel_output_count(call, 0);

	/* Not fmax: a NaN must stay visible. */
	for (int64_t i = 0; i < count; i++)
		y[i] = x[i] < 0 ? 0 : x[i];
	if (!call->kinks)
		return;
	double close = call->close * kernel_rms(x, count);
	for (int64_t i = 0; i < count; i++) {
		if (x[i] == 0 || fabs(x[i]) >= close)
			continue;
		/* The gradient asks whether y is 0; the value itself is too small to matter. */
		if (kernel_turns(call->kinks))
			y[i] = x[i] > 0 ? 0 : DBL_MIN;
	}
}

void kernel_relu_grad(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0), *y = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		dx[i] = y[i] == 0 ? 0 : dy[i];
}

void kernel_copy(const struct kernel_call *call)
{
	double *y = kernel_output(call, 0);

	memcpy(y, kernel_input(call, 0), (size_t)kernel_output_count(call, 0) * sizeof(*y));
}

void kernel_dropout(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0), *mask = kernel_output(call, 1);
	double ratio = call->node->attributes.ratio;
	char stream[STREAM_NAME_BYTES];
	struct random random;

	snprintf(stream, sizeof(stream), "dropout/%lld/%s", (long long)call->step,
		 call->node->name);
	random_init_named(&random, call->seed, stream);
	for (int64_t i = 0; i < kernel_output_count(call, 0); i++) {
		double factor = 1;

		if (call->dropout)
			factor = random_uniform(&random) < ratio ? 0 : 1 / (1 - ratio);
		y[i] = x[i] * factor;
		if (mask)
			mask[i] = factor;
	}
}

void kernel_dropout_grad(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0), *mask = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		dx[i] = dy[i] * mask[i];
}

void kernel_tanh(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = tanh(x[i]);
}

void kernel_tanh_grad(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0), *y = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		dx[i] = dy[i] * (1 - y[i] * y[i]);
}

void kernel_sigmoid(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = 1 / (1 + exp(-x[i]));
}

void kernel_sigmoid_grad(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0), *y = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		dx[i] = dy[i] * y[i] * (1 - y[i]);
}

/* Not fmin and fmax: a NaN must stay visible. */
static double clamp(double x, double min, double max)
{
	return x < min ? min : x > max ? max : x;
}

void kernel_clip(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = clamp(x[i], a->min, a->max);
}

void kernel_hard_sigmoid(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = clamp(a->alpha * x[i] + a->beta, 0, 1);
}

void kernel_hard_swish(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = x[i] * clamp(x[i] / 6 + 0.5, 0, 1);
}

/* A function of three pieces: its derivative below `low`, above `high` and between them. */
struct pieces {
	double low, high;
	double below, above;
	double slope, rise; /* between: slope + rise * x */
};

/* dx = dy times the derivative; an end too close to x to call may count as the other side's. */
static void pieces_grad(const struct kernel_call *call, const struct pieces *p)
{
	const double *dy = kernel_input(call, 0), *x = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);
	int64_t count = kernel_output_count(call, 0);
	double close = call->kinks ? call->close * kernel_rms(x, count) : 0;

	for (int64_t i = 0; i < count; i++) {
		bool below = x[i] <= p->low, above = x[i] >= p->high;

		/* Exactly at an end there is one agreed answer. */
		if (call->kinks && x[i] != p->low && fabs(x[i] - p->low) < close)
			below ^= kernel_turns(call->kinks);
		if (call->kinks && x[i] != p->high && fabs(x[i] - p->high) < close)
			above ^= kernel_turns(call->kinks);
		dx[i] = dy[i] * (below ? p->below : above ? p->above : p->slope + p->rise * x[i]);
	}
}

void kernel_clip_grad(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;

	pieces_grad(call, &(struct pieces){.low = a->min, .high = a->max, .slope = 1});
}

void kernel_hard_sigmoid_grad(const struct kernel_call *call)
{
	double alpha = call->node->attributes.alpha, beta = call->node->attributes.beta;
	struct pieces pieces = {.low = -beta / alpha, .high = (1 - beta) / alpha, .slope = alpha};

	if (alpha == 0) { /* constant */
		pieces = (struct pieces){.low = INFINITY, .high = INFINITY};
	} else if (alpha < 0) {
		double low = pieces.high;

		pieces.high = pieces.low;
		pieces.low = low;
	}
	pieces_grad(call, &pieces);
}

void kernel_hard_swish_grad(const struct kernel_call *call)
{
	pieces_grad(call, &(struct pieces){
				  .low = -3, .high = 3, .above = 1, .slope = 0.5, .rise = 1.0 / 3});
}

void kernel_neg(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = -x[i];
}

static struct array_walk binary_walk(const struct kernel_call *call)
{
	struct array_walk walk = array_walk_start(kernel_output_shape(call, 0));

	for (int i = 0; i < 2; i++)
		array_walk_broadcast(&walk, i, kernel_input_shape(call, i));
	return walk;
}

static bool same_shapes(const struct kernel_call *call)
{
	return shape_equal(kernel_input_shape(call, 0), kernel_input_shape(call, 1));
}

void kernel_add(const struct kernel_call *call)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);
	int64_t count = kernel_output_count(call, 0);

	if (same_shapes(call)) { /* most are, and walking costs more than adding */
		for (int64_t i = 0; i < count; i++)
			y[i] = a[i] + b[i];
		return;
	}
	struct array_walk walk = binary_walk(call);
	for (int64_t i = 0; i < count; i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] + b[walk.at[1]];
}

void kernel_sub(const struct kernel_call *call)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);
	struct array_walk walk = binary_walk(call);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] - b[walk.at[1]];
}

void kernel_mul(const struct kernel_call *call)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);
	struct array_walk walk = binary_walk(call);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] * b[walk.at[1]];
}

void kernel_div(const struct kernel_call *call)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);
	struct array_walk walk = binary_walk(call);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] / b[walk.at[1]];
}

void kernel_broadcast_grad(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0);
	double *dx = kernel_output(call, 0);
	struct array_walk walk = array_walk_start(kernel_input_shape(call, 0));

	array_walk_broadcast(&walk, 0, kernel_output_shape(call, 0));
	memset(dx, 0, (size_t)kernel_output_count(call, 0) * sizeof(*dx));
	for (int64_t i = 0; i < shape_elements(&walk.shape); i++, array_walk_next(&walk))
		dx[walk.at[0]] += dy[i];
}
