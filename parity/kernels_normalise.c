#include "parity/kernels_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Mean, and mean of the squared differences from it, of one channel. */
static void channel_moments(const double *x, const struct axis_split *s, int64_t channel,
			    double *mean, double *variance)
{
	double count = (double)(s->outer * s->inner), sum = 0, squares = 0;

	for (int64_t n = 0; n < s->outer; n++) {
		const double *plane = x + (n * s->size + channel) * s->inner;

		for (int64_t i = 0; i < s->inner; i++)
			sum += plane[i];
	}
	*mean = sum / count;
	for (int64_t n = 0; n < s->outer; n++) {
		const double *plane = x + (n * s->size + channel) * s->inner;

		for (int64_t i = 0; i < s->inner; i++)
			squares += (plane[i] - *mean) * (plane[i] - *mean);
	}
	*variance = squares / count;
}

/* Both are sums over the channel: one of numbers around the mean, one of squares. */
static void round_moments(const struct kernel_call *call, int64_t c, int64_t count, double *mean,
			  double *variance)
{
	double n = (double)count, squares = n * (*variance + *mean * *mean);

	*mean += rounding_of_sum(call, 1, c, count, n * *mean, sqrt(squares)) / n;
	*variance += rounding_of_sum(call, 2, c, count, n * *variance, 0) / n;
}

static void batch_norm_channel(void *context, int64_t c)
{
	const struct kernel_call *call = context;
	struct axis_split s = split_axis(kernel_input_shape(call, 0), 1);
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0), bias = kernel_input(call, 2)[c];
	double mean = kernel_input(call, 3)[c], variance = kernel_input(call, 4)[c];

	if (call->training)
		channel_moments(x, &s, c, &mean, &variance);
	if (call->training && rounding_wanted(call))
		round_moments(call, c, s.outer * s.inner, &mean, &variance);
	double factor = kernel_input(call, 1)[c] / sqrt(variance + call->node->attributes.epsilon);
	if (rounding_wanted(call)) {
		factor += rounding_of_value(call, 4, c, factor);
		bias += rounding_of_value(call, 5, c, mean * factor);
	}
	for (int64_t n = 0; n < s.outer; n++) {
		int64_t at = (n * s.size + c) * s.inner;

		for (int64_t i = 0; i < s.inner; i++)
			y[at + i] = (x[at + i] - mean) * factor + bias;
		for (int64_t i = at; rounding_wanted(call) && i < at + s.inner; i++)
			y[i] += rounding_of_value(call, 0, i, x[i] * factor);
	}
	if (kernel_output(call, 1))
		kernel_output(call, 1)[c] = mean;
	if (kernel_output(call, 2))
		kernel_output(call, 2)[c] = variance;
}

void kernel_batch_norm(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 0);
	struct kernel_call shared = *call;

	kernel_parts(x->dims[1], shape_elements(x), batch_norm_channel, &shared);
}

/*
 * With z = (x - mean) / sqrt(var + eps), y = scale z + bias, and sums over the n elements of a
 * channel: dscale = sum dy z, dbias = sum dy, dx = scale / sqrt(var + eps) (dy - dbias / n - z
 * dscale / n), because mean and variance depend on x (Ioffe and Szegedy 2015, arXiv 1502.03167).
 */
static void batch_norm_grad_channel(void *context, int64_t c)
{
	const struct kernel_call *call = context;
	struct axis_split s = split_axis(kernel_input_shape(call, 1), 1);
	const double *dy = kernel_input(call, 0), *x = kernel_input(call, 1);
	double *dx = kernel_output(call, 0), count = (double)(s.outer * s.inner);
	double mean = kernel_input(call, 3)[c];
	double inverse = 1 / sqrt(kernel_input(call, 4)[c] + call->node->attributes.epsilon);
	double dscale = 0, dbias = 0, squares[2] = {0};

	for (int64_t n = 0; n < s.outer; n++) {
		int64_t at = (n * s.size + c) * s.inner;

		for (int64_t i = at; i < at + s.inner; i++) {
			double product = dy[i] * (x[i] - mean) * inverse;

			dscale += product;
			dbias += dy[i];
			squares[0] += product * product;
			squares[1] += dy[i] * dy[i];
		}
	}
	double factor = kernel_input(call, 2)[c] * inverse;
	if (rounding_wanted(call)) {
		int64_t terms = s.outer * s.inner;

		dscale += rounding_of_sum(call, 1, c, terms, dscale, sqrt(squares[0]));
		dbias += rounding_of_sum(call, 2, c, terms, dbias, sqrt(squares[1]));
	}
	for (int64_t n = 0; dx && n < s.outer; n++) {
		int64_t at = (n * s.size + c) * s.inner;

		for (int64_t i = at; i < at + s.inner; i++)
			dx[i] = factor *
				(dy[i] - dbias / count - (x[i] - mean) * inverse * dscale / count);
		for (int64_t i = at; rounding_wanted(call) && i < at + s.inner; i++)
			dx[i] += rounding_of_value(call, 0, i, factor * dy[i]);
	}
	if (kernel_output(call, 1))
		kernel_output(call, 1)[c] = dscale;
	if (kernel_output(call, 2))
		kernel_output(call, 2)[c] = dbias;
}

void kernel_batch_norm_grad(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 1);
	struct kernel_call shared = *call;

	kernel_parts(x->dims[1], shape_elements(x), batch_norm_grad_channel, &shared);
}

/* Channels around c: for an even size one more above it than below, as ONNX has it. */
static void lrn_range(int64_t size, int64_t channels, int64_t c, int64_t *first, int64_t *end)
{
	*first = c - (size - 1) / 2;
	*end = c + size / 2 + 1;
	if (*first < 0)
		*first = 0;
	if (*end > channels)
		*end = channels;
}

/* bias + alpha / size * the sum of squares around, for all elements of channel c of one sample. */
static void lrn_scale(const struct attributes *a, const struct axis_split *s, const double *sample,
		      int64_t c, double *scale)
{
	int64_t first, end;

	lrn_range(a->size, s->size, c, &first, &end);
	for (int64_t i = 0; i < s->inner; i++)
		scale[i] = 0;
	for (int64_t k = first; k < end; k++)
		for (int64_t i = 0; i < s->inner; i++)
			scale[i] += sample[k * s->inner + i] * sample[k * s->inner + i];
	for (int64_t i = 0; i < s->inner; i++)
		scale[i] = a->bias + a->alpha / (double)a->size * scale[i];
}

void kernel_lrn(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	struct axis_split s = split_axis(kernel_input_shape(call, 0), 1);
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t n = 0; n < s.outer; n++, x += s.size * s.inner, y += s.size * s.inner) {
		for (int64_t c = 0; c < s.size; c++) {
			double *scale = y + c * s.inner;

			lrn_scale(a, &s, x, c, scale);
			for (int64_t i = 0; i < s.inner; i++)
				scale[i] = x[c * s.inner + i] * pow(scale[i], -a->beta);
		}
	}
}

/*
 * y[c] = x[c] s[c]^-beta, and x[c] stands in s[k] of every k whose range holds c:
 * dx[c] = dy[c] s[c]^-beta - 2 alpha beta / size x[c] sum over those k of dy[k] y[k] / s[k]
 */
void kernel_lrn_grad(const struct kernel_call *call)
{
	const struct attributes *a = &call->node->attributes;
	struct axis_split s = split_axis(kernel_input_shape(call, 1), 1);
	const double *dy = kernel_input(call, 0), *x = kernel_input(call, 1);
	const double *y = kernel_input(call, 2);
	double *dx = kernel_output(call, 0), slope = 2 * a->alpha * a->beta / (double)a->size;
	double *scale = memory_alloc((size_t)s.inner * sizeof(*scale));
	int64_t sample = s.size * s.inner;

	memset(dx, 0, (size_t)(s.outer * sample) * sizeof(*dx));
	for (int64_t n = 0; n < s.outer; n++) {
		for (int64_t k = 0; k < s.size; k++) {
			int64_t first, end, at = n * sample + k * s.inner;

			lrn_scale(a, &s, x + n * sample, k, scale);
			lrn_range(a->size, s.size, k, &first, &end);
			for (int64_t c = first; c < end; c++) {
				int64_t to = n * sample + c * s.inner;

				for (int64_t i = 0; i < s.inner; i++)
					dx[to + i] -= slope * x[to + i] * dy[at + i] * y[at + i] /
						      scale[i];
			}
			for (int64_t i = 0; i < s.inner; i++)
				dx[at + i] += dy[at + i] * pow(scale[i], -a->beta);
		}
	}
	free(scale);
}
