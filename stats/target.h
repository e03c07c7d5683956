/* Steps of trainings until a target, and whether two frameworks train alike (docs/accuracy.md). */
#ifndef PRONY_STATS_TARGET_H
#define PRONY_STATS_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "stats/estimate.h"
#include "stats/median.h"

/* Time to the target: steps x step, in ns. Steps: INFINITY for a training that ended at the
 * common limit. Its ends are the products of the ends of both intervals.
 * (Sums of squares of their widths would cover too little: steps are a multiple of the steps
 * between evaluations, so their interval may have no width on a side.) NaN where one of them is
 * unknown, INFINITY where that of the steps is. */
struct target_time {
	double ns, low, high;
};
void target_time_of(const struct median_interval *steps, const struct estimate *step,
		    struct target_time *out);

/* Trainings of a framework; borrowed. */
struct trainings {
	const double *steps; /* as above */
	const int64_t *seeds;
	const double *const *curves; /* of each training: the value of each evaluation */
	size_t count, evaluations;   /* evaluations: those that every training has */
};

struct sameness {
	/* Of both tests together. NaN with so few trainings that none could differ at 5 %, such as
	 * 4 and 4, or 3 and 5. */
	double p;
	double p_steps, p_curve;
	size_t at;   /* the evaluation, from 0, at which the curves lie furthest apart */
	double a, b; /* mean values there */
	/* How far curves of the same seed lie apart, over how far those of different seeds do: near
	 * 0 if both compute the same but for rounding, 1 if they have nothing in common. NaN
	 * without a common seed, or a difference. */
	double apart;
};

/* Tests that two frameworks' trainings have one distribution, by random permutations of all
 * trainings: the rank sum of the steps (Wilcoxon 1945, with mid-ranks), and the largest difference
 * of the mean curves over their evaluations, in standard deviations of all trainings at each
 * (Westfall and Young 1993: max T). p is twice the smaller one. Common seeds only make the tests
 * more cautious. */
void trainings_compare(const struct trainings *a, const struct trainings *b, uint64_t seed,
		       struct sameness *out);

#endif
