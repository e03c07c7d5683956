/* Adds simulated float32 rounding to the reference's values. */
#include <math.h>

#include "parity/bounds.h"
#include "parity/reference_internal.h"

/* The deviation of one rounding relative to the number. The error is uniform within half a unit in
 * the last place, which is u to u / 2 of the number, 0.72 u on average; divided by sqrt(3).
 * bounds.c has the same for sums. */
#define ROUNDING 0.41
#define UNIT 0x1p-24 /* half a unit in the last place of fp32: u in bounds.c */
/* The same for a sum of n equal numbers, in sequence: sqrt(sum of k^2) = n^1.5 / sqrt(3). */
#define ROUNDING_ALIKE (1.0 / 3.0)

/* The finaliser of splitmix64 (Vigna 2015). */
static uint64_t scramble(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Returns a number of mean 0 and deviation 1, uniform between -/+ sqrt(3), that depends only on its
 * position. */
static double draw(const struct kernel_call *call, int output, int64_t i)
{
	uint64_t node = (uint64_t)(call->node - call->graph->nodes);
	uint64_t stream = scramble((uint64_t)call->step << 40 ^ node << 8 ^ (uint64_t)output);
	uint64_t x = scramble(stream + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u);

	return ((double)(x >> 11) * 0x1p-53 - 0.5) * sqrt(12);
}

/* Returns the rounding of a number; `deviation` is in units of u (bounds.c). */
static double rounding_of(const struct kernel_call *call, int output, int64_t i, double deviation)
{
	return call->kinks->rounding * UNIT * deviation * draw(call, output, i);
}

double rounding_of_value(const struct kernel_call *call, int output, int64_t i, double value)
{
	/* It may be an operand of a product, stored as such. */
	double operand = parity_operand_roundoff(call->kinks->precision);

	return rounding_of(call, output, i,
			   hypot(ROUNDING, ROUNDING * operand / UNIT) * fabs(value));
}

double rounding_of_sum(const struct kernel_call *call, int output, int64_t i, int64_t terms,
		       double sum, double norm)
{
	return rounding_of(call, output, i,
			   sqrt((double)terms) *
				   hypot(ROUNDING_ALIKE * fabs(sum), ROUNDING * norm));
}

/* One output during rounding. */
struct rounded {
	const struct kernel_call *call;
	int output;
	struct axis_split s; /* by channel; elements of a channel are sums of similar size */
	double deviation;
	double *y;
};

static void round_channel(void *context, int64_t c)
{
	const struct rounded *r = context;
	double squares = 0;

	for (int64_t n = 0; n < r->s.outer; n++) {
		const double *y = r->y + (n * r->s.size + c) * r->s.inner;

		for (int64_t i = 0; i < r->s.inner; i++)
			squares += y[i] * y[i];
	}
	double rms = sqrt(squares / (double)(r->s.outer * r->s.inner));
	for (int64_t n = 0; n < r->s.outer; n++) {
		int64_t at = (n * r->s.size + c) * r->s.inner;

		/* A sum of nothing but zeros is zero in any arithmetic. */
		for (int64_t i = at; i < at + r->s.inner; i++)
			if (r->y[i] != 0)
				r->y[i] += rounding_of(r->call, r->output, i, r->deviation * rms);
	}
}

static void round_elements(const struct kernel_call *call, int64_t first, int64_t end)
{
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] += rounding_of_value(call, 0, i, y[i]);
}

/* The channel is the second axis of activations and the first of weights. */
static int64_t channel_axis(const struct kernel_call *call, int output)
{
	int value = call->node->outputs[output];
	const struct shape *shape = &call->graph->values[value].shape;
	bool weights = operator_row(call->node->op)->first_target == 1;

	return shape->rank < 2 || weights ? 0 : 1;
}

void rounding_add(const struct kernel_call *call)
{
	for (int output = 0; output < call->node->output_count; output++) {
		int64_t terms;

		if (!kernel_output(call, output) || kernel_output_count(call, output) == 0)
			continue;
		terms = operator_terms(call->graph, call->node, output);
		if (terms == 1 && output == 0) {
			kernel_each(call, kernel_output_count(call, 0), round_elements);
		} else if (terms > 1) {
			const struct shape *shape = kernel_output_shape(call, output);
			struct rounded r = {
				.call = call, .output = output, .y = kernel_output(call, output)};
			struct accumulation sum = {(double)terms - 1,
						   operator_row(call->node->op)->macs ? 1 : 0};

			r.s = shape->rank == 0 ? (struct axis_split){1, 1, 1}
					       : split_axis(shape, channel_axis(call, output));
			r.deviation = ROUNDING *
				      accumulation_rounding(&sum, call->kinks->precision) / UNIT;
			kernel_parts(r.s.size, shape_elements(shape), round_channel, &r);
		}
	}
}
