/* The distance between the outputs of two engines when no reference computes the network. Both may
 * agree and be wrong, so agreement is no proof of correctness. */
#ifndef PRONY_PARITY_AGREEMENT_H
#define PRONY_PARITY_AGREEMENT_H

#include <stdbool.h>

#include "graph/tensor.h"

/* Bound for a floating-point output: the norm of the difference over the mean of the two norms. Two
 * engines that sum float32 in different orders differed by at most 3e-5 in the tests that agreed.
 */
#define AGREEMENT_BOUND 1e-4
/* Bound for an integer output: the share of elements that differ (for example the index of a
 * maximum when two values are nearly equal). */
#define AGREEMENT_BOUND_INTEGERS 1e-3

struct agreement {
	const char *output; /* the farthest apart in units of its bound; borrowed from a set */
	double value, bound;
	bool agrees;
};

/* Compares two sets of outputs of the same batch. An output that is missing in one set, of another
 * type or shape, or not finite never agrees (value INFINITY). */
struct agreement agreement_of(const struct tensor_set *a, const struct tensor_set *b);

/* Returns true if all numbers are finite. */
bool agreement_is_finite(const struct tensor_set *set);

#endif
