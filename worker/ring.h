/* The worker's end of the ring (samples/protocol.h): batches that arrive while the network runs. */
#ifndef PRONY_WORKER_RING_H
#define PRONY_WORKER_RING_H

#include <stdbool.h>

#include "adapters/adapter.h"
#include "bundle/bundle.h"

struct ring {
	int ready_fd, free_fd; /* -1: hello offered none */
	struct arena arena;
	struct batch *batches;	  /* of each slot, in the shared memory */
	bool only_load;		  /* the stage load: a step only takes its batch */
	int64_t wait_ns, copy_ns; /* since ring_begin */
};

void ring_init(struct ring *ring);
void ring_release(struct ring *ring);

/* Places the bundle's batches in the memory; PRONY_PROTOCOL if it is too small. */
enum prony_status ring_lay_out(struct ring *ring, const struct bundle *bundle, const void *memory,
			       size_t bytes, struct error *err);

void ring_begin(struct ring *ring);

/* Waits for the batch of a slot, feeds it to the adapter, issues the step and releases the slot.
 * The adapter either has copied the batch when feed returns, or no longer needs it when step
 * returns. Adds two system calls and three readings of the clock. */
enum prony_status ring_step(struct ring *ring, const struct adapter *adapter,
			    struct session *session, int slot, struct error *err);

#endif
