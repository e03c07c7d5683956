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

void kernel_add(const struct kernel_call *call)
{
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = a[i] + b[i];
}
