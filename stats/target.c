#include "stats/target.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

#define LEVEL 0.05 /* p of trainings that differ */
#define PERMUTATIONS 4999
#define EQUAL 1e-9 /* relative; sums in another order differ by rounding */

void target_time_of(const struct median_interval *steps, const struct estimate *step,
		    struct target_time *out)
{
	out->ns = steps->median * step->center;
	out->low = steps->low * step->low;
	out->high = steps->high * step->high;
}

/* All trainings, those of `a` first. */
struct pool {
	double *ranks;
	double *values; /* [count][evaluations], in standard deviations of the evaluation */
	size_t *order, count, of_b, evaluations;
};

/* Mid-ranks: equal values share the mean of their ranks. */
static void fill_ranks(struct pool *pool, const double *steps)
{
	for (size_t i = 0; i < pool->count; i++) {
		size_t below = 0, equal = 0;

		for (size_t k = 0; k < pool->count; k++) {
			below += steps[k] < steps[i];
			equal += steps[k] == steps[i];
		}
		pool->ranks[i] = (double)below + ((double)equal + 1) / 2;
	}
}

/* Divides the values of an evaluation by their standard deviation, if it is not 0. */
static void scale_evaluation(struct pool *pool, size_t at)
{
	double n = (double)pool->count, mean = 0, square = 0;

	for (size_t i = 0; i < pool->count; i++)
		mean += pool->values[i * pool->evaluations + at] / n;
	for (size_t i = 0; i < pool->count; i++)
		square += pow(pool->values[i * pool->evaluations + at] - mean, 2);
	double sd = sqrt(square / (n - 1));
	for (size_t i = 0; i < pool->count; i++) {
		double *value = &pool->values[i * pool->evaluations + at];
		*value = sd > 0 ? (*value - mean) / sd : 0;
	}
}

/* The distance of the mean rank of the last of_b in `order` from that of the others. */
static double rank_distance(const struct pool *pool)
{
	double sum = 0, each = ((double)pool->count + 1) / 2;

	for (size_t i = pool->count - pool->of_b; i < pool->count; i++)
		sum += pool->ranks[pool->order[i]] - each;
	return fabs(sum);
}

/* The largest distance of the mean curves. All values of an evaluation have the mean 0, so the sum
 * over one side tells. *at: where it is. */
static double curve_distance(const struct pool *pool, size_t *at)
{
	double largest = 0;

	for (size_t e = 0; e < pool->evaluations; e++) {
		double sum = 0;

		for (size_t i = pool->count - pool->of_b; i < pool->count; i++)
			sum += pool->values[pool->order[i] * pool->evaluations + e];
		if (fabs(sum) > largest) {
			largest = fabs(sum);
			*at = e;
		}
	}
	return largest;
}

static double mean_at(const struct trainings *of, size_t at)
{
	double sum = 0;

	for (size_t i = 0; i < of->count; i++)
		sum += of->curves[i][at];
	return sum / (double)of->count;
}

/* The mean distance of curves of two frameworks, of the same seed or of different ones. */
static double curves_apart(const struct trainings *a, const struct trainings *b, size_t evaluations,
			   bool same)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < b->count; k++) {
			if ((a->seeds[i] == b->seeds[k]) != same)
				continue;
			for (size_t e = 0; e < evaluations; e++)
				sum += fabs(a->curves[i][e] - b->curves[k][e]);
			count += evaluations;
		}
	return sum / (double)count;
}

static void permute(struct pool *pool, uint64_t seed, struct sameness *out)
{
	double ranks = rank_distance(pool) * (1 - EQUAL);
	double curves = curve_distance(pool, &out->at) * (1 - EQUAL);
	size_t as_ranks = 1, as_curves = 1, ignored;
	struct random random;

	random_init_named(&random, seed, "trainings");
	for (int i = 0; i < PERMUTATIONS; i++) {
		random_shuffle(&random, pool->order, pool->count);
		as_ranks += rank_distance(pool) >= ranks;
		as_curves += curve_distance(pool, &ignored) >= curves;
	}
	out->p_steps = (double)as_ranks / (PERMUTATIONS + 1);
	out->p_curve = (double)as_curves / (PERMUTATIONS + 1);
	out->p = fmin(1, 2 * fmin(out->p_steps, out->p_curve));
}

/* The smallest p that these numbers of trainings can have: of all ways to deal them, two are as far
 * apart as the furthest, and there are two tests. */
static double smallest_p(size_t a, size_t b)
{
	double p = 4;

	for (size_t i = 1; i <= b; i++)
		p *= (double)i / (double)(a + i);
	return p;
}

void trainings_compare(const struct trainings *a, const struct trainings *b, uint64_t seed,
		       struct sameness *out)
{
	size_t count = a->count + b->count;
	struct pool pool = {.count = count,
			    .of_b = b->count,
			    .evaluations = a->evaluations < b->evaluations ? a->evaluations
									   : b->evaluations};

	*out = (struct sameness){NAN, NAN, NAN, 0, NAN, NAN, NAN};
	if (a->count < 2 || b->count < 2)
		return;
	double *steps = memory_alloc(count * sizeof *steps);
	pool.ranks = memory_alloc(count * sizeof *pool.ranks);
	pool.order = memory_alloc(count * sizeof *pool.order);
	pool.values = memory_alloc((count * pool.evaluations + 1) * sizeof *pool.values);
	for (size_t i = 0; i < count; i++) {
		const struct trainings *of = i < a->count ? a : b;
		size_t k = i < a->count ? i : i - a->count;

		pool.order[i] = i;
		steps[i] = of->steps[k];
		for (size_t e = 0; e < pool.evaluations; e++)
			pool.values[i * pool.evaluations + e] = of->curves[k][e];
	}
	fill_ranks(&pool, steps);
	for (size_t e = 0; e < pool.evaluations; e++)
		scale_evaluation(&pool, e);
	permute(&pool, seed, out);
	if (smallest_p(a->count, b->count) > LEVEL)
		out->p = NAN;
	if (pool.evaluations > 0) {
		out->a = mean_at(a, out->at);
		out->b = mean_at(b, out->at);
		out->apart = curves_apart(a, b, pool.evaluations, true) /
			     curves_apart(a, b, pool.evaluations, false);
	}
	free(steps);
	free(pool.ranks);
	free(pool.order);
	free(pool.values);
}
