/* The smallest difference that a machine can detect, from two identical contenders measured in
 * rounds. */
#ifndef PRONY_STATS_NOISE_H
#define PRONY_STATS_NOISE_H

#include <stddef.h>

/* Smaller differences count as the same even on a quiet machine. */
#define NOISE_MIN 0.01
/* Pairs per comparison: the minimum of default effort (stats/effort.h). */
#define NOISE_PAIRS 5
/* The share of comparisons that call a slowdown of twice the floor SLOWER. */
#define NOISE_FOUND 0.9

/* apart and floor are fractions (0.012), at least NOISE_MIN */
struct noise {
	double spread; /* standard deviation of a pair's ratio, on logarithms */
	double apart;  /* 95 of 100 mean ratios of NOISE_PAIRS identical pairs are closer to 1 */
	double floor;  /* half of the slowdown that is detected with `apart` as the threshold */
};

/* a[i] and b[i] are identical contenders in the same round; positive and finite, at least one
 * round. The true mean of their ratios' logarithms is 0, so the spread has as many degrees of
 * freedom as there are rounds; Student's t accounts for its uncertainty. */
void noise_of(const double *a, const double *b, size_t rounds, struct noise *out);

#endif
