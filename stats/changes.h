/*
 * Where a series changed: E-divisive (Matteson and James, "A Nonparametric Approach for Multiple
 * Change Point Analysis of Multivariate Data", JASA 109, 2014). The split with the largest energy
 * statistic is a change when few enough random orders of the series have a larger one; then the
 * parts are split further. It assumes no distribution, and a permutation test of the largest
 * statistic holds the rate of false alarms of the whole series.
 */
#ifndef PRONY_STATS_CHANGES_H
#define PRONY_STATS_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include "stats/contrast.h"

struct change_settings {
	size_t least;	  /* values between two changes, at least 2 */
	int permutations; /* of each test */
	double level;	  /* of each test: the largest p that is a change */
	double threshold; /* what changes by no more than this is none: 0.01 = 1 % */
	uint64_t seed;	  /* of the permutations: the same series gives the same changes */
};
extern const struct change_settings change_defaults;

struct change {
	size_t at;		/* the first value of the new level */
	double p;		/* of the test that found it */
	struct contrast change; /* the values from it to the next change over those before it */
};

/* Changes of n positive finite values in order of time, on logarithms; *out in order, the caller
 * frees. Returns how many. */
size_t changes_find(const double *values, size_t n, const struct change_settings *settings,
		    struct change **out);

#endif
