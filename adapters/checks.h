/* What every adapter checks of what it is given, in the same words. */
#ifndef PRONY_ADAPTERS_CHECKS_H
#define PRONY_ADAPTERS_CHECKS_H

#include "adapters/adapter.h"

/* PRONY_INTERNAL where there is no such slot. */
enum prony_status check_slot(int slot, int slots, struct error *err);

/* PRONY_BAD_INPUT for a batch that does not fit the graph (batch_check), or that lacks the labels
 * that `with_labels` says are read. */
enum prony_status check_batch(const struct graph *graph, struct batch batch, bool with_labels,
			      struct error *err);

/* PRONY_UNSUPPORTED where a label is ignored: of adapters whose loss does not leave any out. */
enum prony_status check_no_ignored(struct batch batch, struct error *err);

/* Whether the network's loss is taken of labels: half the sum of squares has none. */
bool check_takes_labels(const struct graph *graph);

/* A parameter or state among the weights, borrowed; PRONY_BAD_INPUT where it is not there as F32 in
 * the value's shape. */
enum prony_status check_weight(const struct tensor_set *weights, const struct value *value,
			       const struct tensor **out, struct error *err);

/* PRONY_INTERNAL for what no step has made yet, for more than one tensor of what has no names, and
 * for what read is not asked. */
enum prony_status check_readout(enum readout what, bool stepped, const struct tensor_set *out,
				struct error *err);

/* PRONY_INTERNAL for a tensor to read a value into that is not F32 in that shape. */
enum prony_status check_read_shape(const struct tensor *out, const struct shape *shape,
				   struct error *err);

#endif
