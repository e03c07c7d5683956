/* Batches that prony loads while a worker runs (input stream): the parent's end of the ring. */
#ifndef PRONY_RUN_STREAMING_H
#define PRONY_RUN_STREAMING_H

#include "datasets/prefetch.h"
#include "run/team.h"

/* Bytes of the ring of a cell's batches; 0 where they are resident. */
size_t streaming_ring_bytes(const struct launch *launch);

/* Opens the cell's data set, before the process starts; *out is NULL where batches are resident.
 * prefetch_close ends it, before client_end. */
enum prony_status streaming_open(const struct launch *launch, struct prefetch **out,
				 struct error *err);

/* Starts the loader on the ring of rank 0 and the worker's processors, at rest. */
enum prony_status streaming_start(const struct launch *launch, struct team *team,
				  struct prefetch *loader, struct error *err);

/*
 * team_run with the loader working meanwhile and at no other time, so that nothing is loaded
 * outside of what is measured. `done`: batches that earlier requests took; *figures: how far the
 * loader is. An error of the loader comes before that of the worker who waited for it;
 * PRONY_INVALID when the worker did not take a batch for each step. `loader` NULL: team_run.
 */
struct run_request {
	int64_t steps, every, slot, timeout_ns, done;
	enum sync_mode sync;
};
enum prony_status streaming_run(struct prefetch *loader, struct team *team,
				const struct run_request *request, struct client_window *window,
				struct prefetch_figures *figures, struct error *err);

/* What the window was like for the input, between two looks at the loader. */
void streaming_keep(struct process_record *record, const struct prefetch_figures *begin,
		    const struct prefetch_figures *end, int64_t steps, unsigned *flags);

#endif
