/* Averages gradients of the adapter fake over its ranks, through a file that they map. */
#ifndef PRONY_ADAPTERS_FAKE_REDUCE_H
#define PRONY_ADAPTERS_FAKE_REDUCE_H

#include "adapters/fake/executor.h"
#include "bundle/target.h"

struct reduce {
	struct reduce_file *file; /* mapped; NULL: one rank */
	size_t bytes;
	int64_t elements; /* of all gradients */
	int rank, ranks;
	uint64_t waits; /* barriers so far */
	int mistake;	/* options_internal.h: REDUCE_SUM...; 0: correct */
	struct executor *executor;
};

/* Maps the file of target->rendezvous; does nothing for one rank. */
enum prony_status reduce_open(struct reduce *reduce, const struct target *target,
			      struct executor *executor, int mistake, struct error *err);
/* For executor.reduce: the context is a struct reduce. */
void reduce_gradients(void *context);
void reduce_close(struct reduce *reduce);

#endif
