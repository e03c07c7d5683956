#include "parity/kernels.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

#define STREAM_NAME_BYTES 300

/*
 * What kinks turn is decided by one thread and in the order of the elements: first all parts are
 * done as if nothing were too close, and those with something too close are noted.
 */
struct watched {
	const struct kernel_call *call;
	double close;
	bool *noted; /* by part */
};

static int64_t watched_end(const struct watched *w, int64_t part)
{
	int64_t count = kernel_output_count(w->call, 0), end = (part + 1) * KERNEL_PART;

	return end < count ? end : count;
}

/* Does all parts, then again those that were noted. */
static void watch(const struct kernel_call *call, const double *x,
		  void (*work)(void *watched, int64_t part),
		  void (*decide)(struct watched *watched, int64_t part))
{
	int64_t count = kernel_output_count(call, 0);
	int64_t parts = (count + KERNEL_PART - 1) / KERNEL_PART;
	struct watched watched = {.call = call, .noted = memory_alloc((size_t)parts)};

	if (call->kinks)
		watched.close = call->close * kernel_rms(x, count);
	kernel_parts(parts, count, work, &watched);
	for (int64_t part = 0; call->kinks && part < parts; part++)
		if (watched.noted[part])
			decide(&watched, part);
	free(watched.noted);
}

/* Not fmax: a NaN must stay visible. */
static void relu_part(void *context, int64_t part)
{
	const struct watched *w = context;
	const double *x = kernel_input(w->call, 0);
	double *y = kernel_output(w->call, 0);
	bool noted = false;

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		y[i] = x[i] < 0 ? 0 : x[i];
		noted |= fabs(x[i]) < w->close && x[i] != 0;
	}
	w->noted[part] = noted;
}

/* The gradient asks whether y is 0; the value itself is too small to matter. */
static void relu_decide(struct watched *w, int64_t part)
{
	const double *x = kernel_input(w->call, 0);
	double *y = kernel_output(w->call, 0);

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		if (x[i] == 0 || fabs(x[i]) >= w->close)
			continue;
		bool positive = kernel_decides(w->call, i, x[i] > 0, x[i] <= 0);
		if (positive != (x[i] > 0))
			y[i] = positive ? DBL_MIN : 0;
	}
}

void kernel_relu(const struct kernel_call *call)
{
	watch(call, kernel_input(call, 0), relu_part, relu_decide);
}

static void relu_grad(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *dy = kernel_input(call, 0), *y = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		dx[i] = y[i] == 0 ? 0 : dy[i];
}

void kernel_relu_grad(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), relu_grad);
}

static void copy(const struct kernel_call *call, int64_t first, int64_t end)
{
	memcpy(kernel_output(call, 0) + first, kernel_input(call, 0) + first,
	       (size_t)(end - first) * sizeof(double));
}

void kernel_copy(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), copy);
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

static void dropout_grad(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *dy = kernel_input(call, 0), *mask = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		dx[i] = dy[i] * mask[i];
}

void kernel_dropout_grad(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), dropout_grad);
}

static void tanh_all(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = tanh(x[i]);
}

void kernel_tanh(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), tanh_all);
}

static void tanh_grad(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *dy = kernel_input(call, 0), *y = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		dx[i] = dy[i] * (1 - y[i] * y[i]);
}

void kernel_tanh_grad(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), tanh_grad);
}

static void sigmoid(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = 1 / (1 + exp(-x[i]));
}

void kernel_sigmoid(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), sigmoid);
}

static void sigmoid_grad(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *dy = kernel_input(call, 0), *y = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		dx[i] = dy[i] * y[i] * (1 - y[i]);
}

void kernel_sigmoid_grad(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), sigmoid_grad);
}

/* Not fmin and fmax: a NaN must stay visible. */
static double clamp(double x, double min, double max)
{
	return x < min ? min : x > max ? max : x;
}

static void clip(const struct kernel_call *call, int64_t first, int64_t end)
{
	const struct attributes *a = &call->node->attributes;
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = clamp(x[i], a->min, a->max);
}

void kernel_clip(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), clip);
}

static void hard_sigmoid(const struct kernel_call *call, int64_t first, int64_t end)
{
	const struct attributes *a = &call->node->attributes;
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = clamp(a->alpha * x[i] + a->beta, 0, 1);
}

void kernel_hard_sigmoid(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), hard_sigmoid);
}

static void hard_swish(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = x[i] * clamp(x[i] / 6 + 0.5, 0, 1);
}

void kernel_hard_swish(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), hard_swish);
}

/* A function of three pieces: its derivative below `low`, above `high` and between them. */
struct pieces {
	double low, high;
	double below, above;
	double slope, rise; /* between: slope + rise * x */
};

/* The pieces of a gradient. */
static struct pieces pieces_of(const struct node *node)
{
	const struct attributes *a = &node->attributes;

	switch (node->op) {
	case OP_CLIP_GRAD:
		return (struct pieces){.low = a->min, .high = a->max, .slope = 1};
	case OP_HARD_SWISH_GRAD:
		return (struct pieces){
			.low = -3, .high = 3, .above = 1, .slope = 0.5, .rise = 1.0 / 3};
	default:
		break;
	}
	assert(node->op == OP_HARD_SIGMOID_GRAD);
	double ends[2] = {-a->beta / a->alpha, (1 - a->beta) / a->alpha};
	if (a->alpha == 0) /* constant */
		return (struct pieces){.low = INFINITY, .high = INFINITY};
	return (struct pieces){
		.low = ends[a->alpha < 0], .high = ends[a->alpha > 0], .slope = a->alpha};
}

static double derivative(const struct pieces *p, double x, bool below, bool above)
{
	return below ? p->below : above ? p->above : p->slope + p->rise * x;
}

/* Exactly at an end there is one agreed answer. */
static bool too_close(double x, double end, double close)
{
	return x != end && fabs(x - end) < close;
}

static void pieces_part(void *context, int64_t part)
{
	const struct watched *w = context;
	const struct pieces p = pieces_of(w->call->node);
	const double *dy = kernel_input(w->call, 0), *x = kernel_input(w->call, 1);
	double *dx = kernel_output(w->call, 0);
	bool noted = false;

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		dx[i] = dy[i] * derivative(&p, x[i], x[i] <= p.low, x[i] >= p.high);
		noted |= too_close(x[i], p.low, w->close) || too_close(x[i], p.high, w->close);
	}
	w->noted[part] = noted;
}

/* An end too close to x to call may count as the other side's. */
static void pieces_decide(struct watched *w, int64_t part)
{
	const struct pieces p = pieces_of(w->call->node);
	const double *dy = kernel_input(w->call, 0), *x = kernel_input(w->call, 1);
	double *dx = kernel_output(w->call, 0);

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		bool below = x[i] <= p.low, above = x[i] >= p.high;

		if (too_close(x[i], p.low, w->close))
			below = kernel_decides(w->call, 2 * i, below, !below);
		if (too_close(x[i], p.high, w->close))
			above = kernel_decides(w->call, 2 * i + 1, above, !above);
		dx[i] = dy[i] * derivative(&p, x[i], below, above);
	}
}

static void pieces_grad(const struct kernel_call *call)
{
	watch(call, kernel_input(call, 1), pieces_part, pieces_decide);
}

void kernel_clip_grad(const struct kernel_call *call)
{
	pieces_grad(call);
}

void kernel_hard_sigmoid_grad(const struct kernel_call *call)
{
	pieces_grad(call);
}

void kernel_hard_swish_grad(const struct kernel_call *call)
{
	pieces_grad(call);
}

static void neg(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = -x[i];
}

void kernel_neg(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), neg);
}

static struct array_walk binary_walk(const struct kernel_call *call, int64_t first)
{
	struct array_walk walk = array_walk_start(kernel_output_shape(call, 0));

	for (int i = 0; i < 2; i++)
		array_walk_broadcast(&walk, i, kernel_input_shape(call, i));
	array_walk_seek(&walk, first);
	return walk;
}

static bool same_shapes(const struct kernel_call *call)
{
	return shape_equal(kernel_input_shape(call, 0), kernel_input_shape(call, 1));
}

static void add(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	if (same_shapes(call)) { /* most are, and walking costs more than this */
		for (int64_t i = first; i < end; i++)
			y[i] = a[i] + b[i];
		return;
	}
	struct array_walk walk = binary_walk(call, first);
	for (int64_t i = first; i < end; i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] + b[walk.at[1]];
}

void kernel_add(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), add);
}

static void subtract(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	if (same_shapes(call)) { /* most are, and walking costs more than this */
		for (int64_t i = first; i < end; i++)
			y[i] = a[i] - b[i];
		return;
	}
	struct array_walk walk = binary_walk(call, first);
	for (int64_t i = first; i < end; i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] - b[walk.at[1]];
}

void kernel_sub(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), subtract);
}

static void multiply(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	if (same_shapes(call)) { /* most are, and walking costs more than this */
		for (int64_t i = first; i < end; i++)
			y[i] = a[i] * b[i];
		return;
	}
	struct array_walk walk = binary_walk(call, first);
	for (int64_t i = first; i < end; i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] * b[walk.at[1]];
}

void kernel_mul(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), multiply);
}

static void divide(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	if (same_shapes(call)) { /* most are, and walking costs more than this */
		for (int64_t i = first; i < end; i++)
			y[i] = a[i] / b[i];
		return;
	}
	struct array_walk walk = binary_walk(call, first);
	for (int64_t i = first; i < end; i++, array_walk_next(&walk))
		y[i] = a[walk.at[0]] / b[walk.at[1]];
}

void kernel_div(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), divide);
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
