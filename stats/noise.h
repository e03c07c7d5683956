/* What a machine can tell apart, from two of the same that were measured in rounds. */
#ifndef PRONY_STATS_NOISE_H
#define PRONY_STATS_NOISE_H

#include <stddef.h>

/* What lies within is the same, however quiet a machine is. */
#define NOISE_MIN 0.01
/* Pairs of a comparison: as many as default effort has at least (stats/effort.h). */
#define NOISE_PAIRS 5
/* In so many of all comparisons a slowdown of twice the floor is called SLOWER. */
#define NOISE_FOUND 0.9

/* apart and floor as in 0.012, at least NOISE_MIN */
struct noise {
	double spread; /* standard deviation of a pair's ratio, of logarithms */
	double apart;  /* the mean ratio of NOISE_PAIRS of the same is nearer to 1 in 95 of 100 */
	double floor;  /* half of the slowdown that is found, with `apart` as the threshold */
};

/*
 * a[i] and b[i] of the same, of the same round; positive and finite, at least one. The true mean of
 * their ratios' logarithms is 0, so that the spread has as many degrees of freedom as there are
 * rounds, and Student's t of so many makes up for what is not known of it.
 */
void noise_of(const double *a, const double *b, size_t rounds, struct noise *out);

#endif
