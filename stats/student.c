#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "stats/estimate.h"

#define PI 3.14159265358979323846
/* Above this the gamma functions lose too many digits, and the series below is exact enough. */
#define SERIES_DF 1e5

/* lgamma without its global sign variable, which is not thread-safe. */
static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign);
}

/* The continued fraction of DLMF 8.17.22 by the modified Lentz method; x < (a + 1) / (a + b + 2).
 */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);

	d = 1 / (fabs(d) < tiny ? tiny : d);
	double value = d;
	for (int m = 1; m < 100000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		value *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		value *= d * c;
		if (fabs(d * c - 1) < 1e-16)
			break;
	}
	return value;
}

/* Regularised incomplete beta function I_x(a, b). y = 1 - x is passed in, because near 1 the
 * difference would lose digits of x. */
static double beta_of_pair(double a, double b, double x, double y)
{
	if (x <= 0)
		return 0;
	if (y <= 0)
		return 1;
	double front =
		exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y));
	if (x < (a + 1) / (a + b + 2))
		return front / a * beta_fraction(a, b, x);
	return 1 - front / b * beta_fraction(b, a, y);
}

/* P(T > t) for t >= 0. */
static double upper_tail(double t, double df)
{
	double square = t * t;

	return 0.5 * beta_of_pair(df / 2, 0.5, df / (df + square), square / (df + square));
}

double student_t_upper(double t, double df)
{
	if (isnan(t) || !(df > 0))
		return NAN;
	/* With this many degrees of freedom the normal distribution is exact to 1e-6. */
	if (df > SERIES_DF)
		return 0.5 * erfc(t / sqrt(2));
	return t >= 0 ? upper_tail(t, df) : 1 - upper_tail(-t, df);
}

/* Density of the standard deviation of df + 1 values, divided by the true one (chi over sqrt(df)).
 */
static double deviation_density(double u, double df)
{
	if (u <= 0)
		return df > 1 ? 0 : sqrt(2 / PI);
	return exp(log(2) + df / 2 * log(df / 2) - log_gamma(df / 2) + (df - 1) * log(u) -
		   df * u * u / 2);
}

/* P(shift + Z > t u), Z normal, over those u, by Simpson's rule. */
double student_t_upper_shifted(double t, double df, double shift, double from, double to)
{
	enum { PARTS = 240 };

	if (isnan(t) || isnan(shift) || !(df >= 1))
		return NAN;
	if (df > SERIES_DF)
		return from <= 1 && 1 < to ? 0.5 * erfc((t - shift) / sqrt(2)) : 0;
	double low = fmax(fmax(1 - 10 / sqrt(df), 0), from), sum = 0;
	double high = fmax(low, fmin(1 + 10 / sqrt(df), to)), width = (high - low) / PARTS;
	for (int i = 0; i <= PARTS; i++) {
		double u = low + i * width, weight = i == 0 || i == PARTS ? 1 : i % 2 ? 4 : 2;
		sum += weight * deviation_density(u, df) * 0.5 * erfc((t * u - shift) / sqrt(2));
	}
	return sum * width / 3;
}

static double density(double t, double df)
{
	return exp(log_gamma((df + 1) / 2) - log_gamma(df / 2) - 0.5 * log(df * PI) -
		   (df + 1) / 2 * log1p(t * t / df));
}

/* Normal quantile of the upper tail q in (0, 1/2]: Abramowitz and Stegun 26.2.23, error
 * below 4.5e-4. */
static double normal_start(double q)
{
	double t = sqrt(-2 * log(q));

	return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

static double normal_quantile(double q)
{
	double z = normal_start(q);

	for (int i = 0; i < 8; i++) {
		double step = (0.5 * erfc(z / sqrt(2)) - q) * sqrt(2 * PI) * exp(z * z / 2);
		z += step;
		if (fabs(step) < 1e-14)
			break;
	}
	return z;
}

/* Cornish and Fisher's expansion in 1 / df (Abramowitz and Stegun 26.7.5). */
static double expand(double z, double df)
{
	double z2 = z * z;

	return z + z * (z2 + 1) / (4 * df) + z * ((5 * z2 + 16) * z2 + 3) / (96 * df * df);
}

/* Newton steps from the expansion, kept within shrinking bounds, so that they always converge. */
static double refine(double q, double df)
{
	double low = 0, high = INFINITY, t = expand(normal_start(q), df);

	if (!(t > 0) || isinf(t))
		t = 1;
	for (int i = 0; i < 200; i++) {
		double excess = upper_tail(t, df) - q;
		if (excess > 0)
			low = t;
		else
			high = t;
		double next = t + excess / density(t, df);
		if (!(next > low && next < high))
			next = isinf(high) ? 2 * t : low + (high - low) / 2;
		bool done = fabs(next - t) <= 1e-15 * t;
		t = next;
		if (done)
			break;
	}
	return t;
}

double student_t_quantile(double p, double df)
{
	if (!(p > 0 && p < 1) || !(df > 0))
		return NAN;
	if (p == 0.5)
		return 0;
	double q = p < 0.5 ? p : 1 - p, t;
	if (df > SERIES_DF)
		t = expand(normal_quantile(q), df);
	else
		t = refine(q, df);
	return p < 0.5 ? -t : t;
}
