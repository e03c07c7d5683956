/* Finds changes in a series with E-divisive (Matteson and James, "A Nonparametric Approach for
 * Multiple Change Point Analysis of Multivariate Data", JASA 109, 2014). The split with the largest
 * energy statistic is a change if few enough random permutations of the series have a larger one;
 * then both parts are split further. The method assumes no distribution, and the permutation test
 * controls the false alarm rate of the whole series. */
#ifndef PRONY_STATS_CHANGES_H
#define PRONY_STATS_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include "stats/contrast.h"

struct change_settings {
	size_t least;	  /* least number of values between two changes, at least 2 */
	int permutations; /* number per test */
	double level;	  /* the largest p of a test that counts as a change */
	double threshold; /* smaller changes are ignored: 0.01 = 1 % */
	uint64_t seed;	  /* seed of the permutations, so that results are reproducible */
};
extern const struct change_settings change_defaults;

struct change {
	size_t at;		/* index of the first value of the new level */
	double p;		/* p of the test that found it */
	struct contrast change; /* values up to the next change compared with those since the
				   previous one */
};

/* Finds changes in n positive finite values in order of time, on logarithms. *out is in order; the
 * caller frees it. Returns their number. */
size_t changes_find(const double *values, size_t n, const struct change_settings *settings,
		    struct change **out);

#endif
