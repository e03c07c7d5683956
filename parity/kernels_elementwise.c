#include "parity/kernels_internal.h"

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

static void elementwise(const struct kernel_call *call, int64_t first, int64_t end)
{
	const struct elementwise *function = operator_row(call->node->op)->elementwise;
	const struct attributes *a = &call->node->attributes;
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = function->value(a, x[i]);
}

void kernel_elementwise(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), elementwise);
}

/* The function that a gradient belongs to, with the gradient's attributes. */
struct slope {
	double (*slope)(const struct attributes *a, double x);
	const struct attributes *a;
	double kinks[ELEMENTWISE_MAX_KINKS];
	int kink_count;
};

static struct slope slope_of(const struct kernel_call *call)
{
	const struct node *forward = &call->graph->nodes[call->node->differentiates];
	const struct elementwise *function = operator_row(forward->op)->elementwise;
	struct slope s = {.slope = function->slope, .a = &call->node->attributes};

	if (function->kinks)
		s.kink_count = function->kinks(s.a, s.kinks);
	return s;
}

/* Exactly at a kink there is one agreed answer. */
static bool too_close(double x, double kink, double close)
{
	return x != kink && fabs(x - kink) < close;
}

static void slope_part(void *context, int64_t part)
{
	const struct watched *w = context;
	const struct slope s = slope_of(w->call);
	const double *dy = kernel_input(w->call, 0), *x = kernel_input(w->call, 1);
	double *dx = kernel_output(w->call, 0);
	bool noted = false;

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		dx[i] = dy[i] * s.slope(s.a, x[i]);
		for (int k = 0; k < s.kink_count; k++)
			noted |= too_close(x[i], s.kinks[k], w->close);
	}
	w->noted[part] = noted;
}

/* Where x is too close to a kink to call, it may count as just beyond it. */
static void slope_decide(struct watched *w, int64_t part)
{
	const struct slope s = slope_of(w->call);
	const double *dy = kernel_input(w->call, 0), *x = kernel_input(w->call, 1);
	double *dx = kernel_output(w->call, 0);

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		double taken = x[i];

		for (int k = 0; k < s.kink_count; k++) {
			bool above = x[i] > s.kinks[k];

			if (too_close(x[i], s.kinks[k], w->close) &&
			    kernel_decides(w->call, ELEMENTWISE_MAX_KINKS * i + k, above, !above) !=
				    above)
				taken = nextafter(s.kinks[k], above ? -INFINITY : INFINITY);
		}
		dx[i] = dy[i] * s.slope(s.a, taken);
	}
}

void kernel_elementwise_grad(const struct kernel_call *call)
{
	watch(call, kernel_input(call, 1), slope_part, slope_decide);
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

static void broadcast(const struct kernel_call *call, int64_t first, int64_t end)
{
	double (*function)(double a, double b) = operator_row(call->node->op)->broadcast;
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	if (same_shapes(call)) { /* most are, and walking costs more than this */
		for (int64_t i = first; i < end; i++)
			y[i] = function(a[i], b[i]);
		return;
	}
	struct array_walk walk = binary_walk(call, first);
	for (int64_t i = first; i < end; i++, array_walk_next(&walk))
		y[i] = function(a[walk.at[0]], b[walk.at[1]]);
}

void kernel_broadcast(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), broadcast);
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
