#include "stats/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define COVERAGE_P 0.975 /* two-sided 95 % */
#define LOOKED_P 0.98	 /* the same where the number of processes follows from the interval */
/* Scales the MAD of a normal distribution to its standard deviation: 1 / quantile(0.75). */
#define MAD_SCALE 1.4826
#define NEEDED_MAX 1e9

static int compare_reals(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void sort_reals(double *x, size_t n)
{
	qsort(x, n, sizeof *x, compare_reals);
}

/* The caller frees it; n > 0. */
static double *sorted_copy(const double *x, size_t n)
{
	double *copy = memory_alloc(n * sizeof *copy);

	memcpy(copy, x, n * sizeof *copy);
	sort_reals(copy, n);
	return copy;
}

double percentile_of(const double *x, size_t n, double p)
{
	if (n == 0 || isnan(p))
		return NAN;
	double *sorted = sorted_copy(x, n);
	double place = (p < 0 ? 0 : p > 1 ? 1 : p) * (double)(n - 1);
	size_t below = (size_t)place;
	size_t above = below + 1 < n ? below + 1 : below;
	double value = sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
	free(sorted);
	return value;
}

double median_of(const double *x, size_t n)
{
	return percentile_of(x, n, 0.5);
}

double mad_of(const double *x, size_t n)
{
	if (n == 0)
		return NAN;
	double middle = median_of(x, n), *distances = memory_alloc(n * sizeof *distances);
	for (size_t i = 0; i < n; i++)
		distances[i] = fabs(x[i] - middle);
	double mad = MAD_SCALE * median_of(distances, n);
	free(distances);
	return mad;
}

/* Mean and sample standard deviation (NaN for one value) in two passes; n > 0. */
static void moments(const double *x, size_t n, double *mean, double *sd)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	*mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - *mean) * (x[i] - *mean);
	*sd = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
}

/* The same of the logarithms. */
static void log_moments(const double *x, size_t n, double *mean, double *sd)
{
	double *logs = memory_alloc(n * sizeof *logs);

	for (size_t i = 0; i < n; i++)
		logs[i] = log(x[i]);
	moments(logs, n, mean, sd);
	free(logs);
}

bool estimate_leaves_out(size_t all, size_t disturbed)
{
	size_t left = all - disturbed;

	return left >= UNDISTURBED_MIN && 2 * left >= all;
}

/* Number of processes for a target half width, if spread and t stayed the same
 * (docs/measurement.md). */
static size_t needed_for(double t_sd, double target)
{
	double needed = ceil(pow(t_sd / log1p(target), 2));

	return needed < NEEDED_MAX ? (size_t)needed : (size_t)NEEDED_MAX;
}

void estimate_compute(const double *means, size_t n, double target_half_width, bool looked,
		      struct estimate *out)
{
	*out = (struct estimate){.n = n,
				 .center = NAN,
				 .low = NAN,
				 .high = NAN,
				 .half_width = NAN,
				 .mean = NAN,
				 .median = median_of(means, n),
				 .sd = NAN,
				 .mad = mad_of(means, n),
				 .min = NAN,
				 .max = NAN,
				 .cv_between = NAN};
	if (n == 0)
		return;
	double log_mean, log_sd;
	log_moments(means, n, &log_mean, &log_sd);
	moments(means, n, &out->mean, &out->sd);
	out->center = exp(log_mean);
	out->min = percentile_of(means, n, 0);
	out->max = percentile_of(means, n, 1);
	if (n < 2)
		return;
	double t = student_t_quantile(looked ? LOOKED_P : COVERAGE_P, (double)(n - 1));
	double width = t * log_sd / sqrt((double)n);
	out->cv_between = log_sd;
	out->low = exp(log_mean - width);
	out->high = exp(log_mean + width);
	out->half_width = expm1(width);
	if (target_half_width > 0 && out->half_width > target_half_width)
		out->needed = needed_for(t * log_sd, target_half_width);
}
