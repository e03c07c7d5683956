/* Batches that arrive while the network runs: the worker's end of the ring (samples/protocol.h). */
#ifndef PRONY_WORKER_RING_H
#define PRONY_WORKER_RING_H

#include <stdbool.h>

#include "adapters/adapter.h"
#include "bundle/bundle.h"

struct ring {
	int ready_fd, free_fd; /* -1: hello offered none */
	struct arena arena;
	struct batch *batches;	  /* of each slot, in the shared memory */
	bool only_load;		  /* the stage load: a step takes its batch and no more */
	int64_t wait_ns, copy_ns; /* since ring_begin */
};

void ring_init(struct ring *ring);
void ring_release(struct ring *ring);

/* Lays the bundle's batches over the memory; PRONY_PROTOCOL where it is too small. */
enum prony_status ring_lay_out(struct ring *ring, const struct bundle *bundle, const void *memory,
			       size_t bytes, struct error *err);

void ring_begin(struct ring *ring);

/*
 * Waits for the batch of a slot, feeds it to the adapter, issues the step and gives the slot back:
 * an adapter has copied the batch when feed returns, or is done with it when step returns. Two
 * system calls and three readings of the clock besides.
 */
enum prony_status ring_step(struct ring *ring, const struct adapter *adapter,
			    struct session *session, int slot, struct error *err);

#endif
