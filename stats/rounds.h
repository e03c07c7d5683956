/* Process means with the rounds in which they were measured: two cells of one run, compared. */
#ifndef PRONY_STATS_ROUNDS_H
#define PRONY_STATS_ROUNDS_H

#include <stdint.h>

#include "stats/contrast.h"

/* Common rounds from which on two cells are paired. */
#define ROUNDS_PAIRED_MIN 3

/* Positive finite process means of a cell, in order of its processes. Borrowed. */
struct round_means {
	const double *means;
	const int64_t *rounds; /* of the run's schedule, from 0 */
	size_t count;
};

/*
 * B against A of the same run: paired by the rounds in which both ran, so that what the machine did
 * then cancels, where these are at least ROUNDS_PAIRED_MIN and at least half of the smaller set;
 * else Welch over all. Rounds that do not rise (those of a run that was resumed counted from 0
 * again until version 0.1.0) are none.
 */
void contrast_of_rounds(const struct round_means *a, const struct round_means *b,
			struct contrast *out);

#endif
