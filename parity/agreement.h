/*
 * How far the outputs of two engines lie apart, where no reference computes the network: they may
 * agree and both be wrong, which is why this is no proof.
 */
#ifndef PRONY_PARITY_AGREEMENT_H
#define PRONY_PARITY_AGREEMENT_H

#include <stdbool.h>

#include "graph/tensor.h"

/* Of an output of floating point: the norm of the difference over the mean of the two norms. Two
 * engines that add up in float32 in another order were apart by 3e-5 at most in what agreed when
 * tried. */
#define AGREEMENT_BOUND 1e-4
/* Of one of integers: the share of elements that differ (a maximum of two that are nearly equal).
 */
#define AGREEMENT_BOUND_INTEGERS 1e-3

struct agreement {
	const char *output; /* that lies farthest apart, in its bounds; name borrowed from a set */
	double value, bound;
	bool agrees;
};

/* Two sets of outputs of the same batch; one that the other lacks, another type or shape, and what
 * is not finite agree with nothing (value INFINITY). */
struct agreement agreement_of(const struct tensor_set *a, const struct tensor_set *b);

/* Whether all numbers are finite. */
bool agreement_is_finite(const struct tensor_set *set);

#endif
