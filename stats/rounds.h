/* Process means with their rounds, and the comparison of two cells of one run. */
#ifndef PRONY_STATS_ROUNDS_H
#define PRONY_STATS_ROUNDS_H

#include <stdint.h>

#include "stats/contrast.h"

/* The least number of common rounds for a paired comparison. */
#define ROUNDS_PAIRED_MIN 3

/* Positive finite process means of a cell, in order of its processes. Borrowed. */
struct round_means {
	const double *means;
	const int64_t *rounds; /* round of the run's schedule, from 0 */
	size_t count;
};

/* B against A of the same run, paired by common rounds, so that changes of the machine cancel, if
 * there are at least ROUNDS_PAIRED_MIN and at least half of the smaller set; otherwise Welch over
 * all processes. Rounds must increase: resumed runs counted from 0 again until version 0.1.0, and
 * such rounds are not paired. */
void contrast_of_rounds(const struct round_means *a, const struct round_means *b,
			struct contrast *out);

#endif
