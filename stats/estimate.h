/* Estimates a cell's step time with an interval: t on the logarithms of process means. */
#ifndef PRONY_STATS_ESTIMATE_H
#define PRONY_STATS_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

/* Figures have the unit of the samples (ns per step) unless they are ratios. */
struct estimate {
	size_t n;	   /* number of processes */
	double center;	   /* geometric mean of process means; NaN when n = 0 */
	double low, high;  /* 95 % t interval on logs; NaN when n < 2 */
	double half_width; /* exp(t s / sqrt n) - 1; NaN when n < 2 */
	double mean, median, sd, mad, min,
		max;	   /* over process means; mad = 1.4826 x median |x - median| */
	double cv_between; /* sd of logs */
	size_t needed;	   /* processes for the target half width; 0 when unknown or reached */
};

/* means: n positive finite process means. target_half_width <= 0: needed stays 0. `looked`: n was
 * chosen by looking at the interval after each process; t is then taken at 98 % instead of 97.5 %,
 * because such rules stop when the spread is underestimated (docs/measurement.md). */
void estimate_compute(const double *means, size_t n, double target_half_width, bool looked,
		      struct estimate *out);

/* Do those that were disturbed not count? Where so many are left, and half of all. */
#define UNDISTURBED_MIN 3
bool estimate_leaves_out(size_t all, size_t disturbed);

/* Quantile of Student's t with df degrees of freedom, p in (0, 1); absolute error below 1e-9
 * (Newton steps on the incomplete beta function). */
double student_t_quantile(double p, double df);

/* P(T > t) of Student's t with df degrees of freedom, from the same incomplete beta function. */
double student_t_upper(double t, double df);

/* The same when the mean is off by `shift` standard errors (noncentral t): the probability that a
 * test at t detects it and the estimated standard deviation lies between `from` and `to` of the
 * true one (0 and INFINITY: any). Absolute error below 1e-6. df is at least 1. */
double student_t_upper_shifted(double t, double df, double shift, double from, double to);

void sort_reals(double *x, size_t n); /* in ascending order; without NaN */
/* Order statistics; x is not changed; NaN when n = 0. Percentile by linear interpolation (type 7).
 */
double median_of(const double *x, size_t n);
double percentile_of(const double *x, size_t n, double p);
double mad_of(const double *x, size_t n);

#endif
