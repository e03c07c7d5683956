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

/* A quantiser turns a rounding error of its input into a whole step, so two correct engines differ
 * on a quantised file by more than that. How far such a step carries is measured on the file: each
 * engine also runs batches whose numbers are changed by AGREEMENT_NOISE of themselves (deviation),
 * which is the bound 8 u sqrt(K) on the rounding of a sum of K = 1000 products (parity/bounds.c).
 * Engines may differ by this multiple of the change: both round (sqrt 2), at each of some layers,
 * where the noise is added only at the input; measured, engines that are right differ by 1 to 2
 * times the change, one that is wrong by 40 times (docs/parity.md). */
#define AGREEMENT_NOISE 0x1p-16
#define AGREEMENT_CHANGES 4.0
/* An engine that noise changes more proves nothing about the others. */
#define AGREEMENT_BOUND_MAX 0.1

struct agreement {
	const char *output; /* the farthest apart in units of its bound; borrowed from a set */
	double value, bound;
	bool agrees;
};

/* Compares two sets of outputs of the same batch. An output that is missing in one set, of another
 * type or shape, or not finite never agrees (value INFINITY). `changes` (may be NULL) has an F64
 * scalar for each output: its change by the noise above. */
struct agreement agreement_of(const struct tensor_set *a, const struct tensor_set *b,
			      const struct tensor_set *changes);

/* Raises `changes`, which has an F64 scalar for each output of `a`, in that order, to the distances
 * of the two sets. */
void agreement_note_changes(const struct tensor_set *a, const struct tensor_set *b,
			    struct tensor_set *changes);

/* Returns true if all numbers are finite. */
bool agreement_is_finite(const struct tensor_set *set);

#endif
