/* Checks of arguments that all adapters share, with the same messages. */
#ifndef PRONY_ADAPTERS_CHECKS_H
#define PRONY_ADAPTERS_CHECKS_H

#include "adapters/adapter.h"

/* PRONY_INTERNAL when the slot does not exist. */
enum prony_status check_slot(int slot, int slots, struct error *err);

/* PRONY_BAD_INPUT when the batch does not fit the graph (batch_check), or when `with_labels` is set
 * and labels are missing. */
enum prony_status check_batch(const struct graph *graph, struct batch batch, bool with_labels,
			      struct error *err);

/* PRONY_UNSUPPORTED when a label is ignored; for adapters whose loss cannot ignore labels. */
enum prony_status check_no_ignored(struct batch batch, struct error *err);

/* Whether the network's loss reads labels: half the sum of squares does not. */
bool check_takes_labels(const struct graph *graph);

/* A parameter or state among the weights, borrowed; PRONY_BAD_INPUT when it is missing or not F32
 * with the value's shape. */
enum prony_status check_weight(const struct tensor_set *weights, const struct value *value,
			       const struct tensor **out, struct error *err);

/* PRONY_INTERNAL when no step has produced it yet, when an unnamed readout has more than one
 * tensor, or when read does not handle it. */
enum prony_status check_readout(enum readout what, bool stepped, const struct tensor_set *out,
				struct error *err);

/* PRONY_INTERNAL when the tensor to fill is not F32 with that shape. */
enum prony_status check_read_shape(const struct tensor *out, const struct shape *shape,
				   struct error *err);

#endif
