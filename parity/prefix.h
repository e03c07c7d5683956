/* Ties a decode step to the forward pass of the whole prefix, which computes the same numbers
 * without caches. */
#ifndef PRONY_PARITY_PREFIX_H
#define PRONY_PARITY_PREFIX_H

#include "parity/reference.h"

/* `whole` has run the forward pass of prefixes of the prompt's tokens and more. Copies its keys and
 * values of the first `prompt` tokens into the caches among `weights` (F32 or F64) of the graph
 * `step`; the caches' other rows stay as they are. PRONY_INTERNAL if `whole` does not compute
 * them. */
enum prony_status prefix_fill_caches(const struct reference *whole, const struct graph *step,
				     int64_t prompt, struct tensor_set *weights, struct error *err);

/* The logits of `whole` behind the token at `position`, for each sample: F64, batch x classes. */
enum prony_status prefix_logits(const struct reference *whole, int64_t position,
				struct arena *arena, struct tensor *out, struct error *err);

/* The largest difference of two F64 tensors of one shape, relative to the RMS of the first. */
double prefix_distance(const struct tensor *expected, const struct tensor *found);

#endif
