/* The parent's end of the ring: batches that prony loads while a worker runs (input stream). */
#ifndef PRONY_RUN_STREAMING_H
#define PRONY_RUN_STREAMING_H

#include "datasets/prefetch.h"
#include "run/team.h"

/* Returns the bytes of the ring of a cell's batches; 0 if they are resident. */
size_t streaming_ring_bytes(const struct launch *launch);

/* Opens the cell's data set before the process starts; *out is NULL if batches are resident. Call
 * prefetch_close before client_end. */
enum prony_status streaming_open(const struct launch *launch, struct prefetch **out,
				 struct error *err);

/* Starts the loader, paused, on the ring of rank 0 and the worker's processors. */
enum prony_status streaming_start(const struct launch *launch, struct team *team,
				  struct prefetch *loader, struct error *err);

/* Runs team_run with the loader active only meanwhile, so that nothing is loaded outside the
 * measurement. `done`: batches that earlier requests took; *figures: the loader's progress. An
 * error of the loader has priority over that of the worker that waited for it. PRONY_INVALID when
 * the worker did not take a batch for each step. If `loader` is NULL, it is team_run alone. */
struct run_request {
	int64_t steps, every, slot, timeout_ns, done;
	enum sync_mode sync;
};
enum prony_status streaming_run(struct prefetch *loader, struct team *team,
				const struct run_request *request, struct client_window *window,
				struct prefetch_figures *figures, struct error *err);

/* Keeps the input figures of the window: the difference between two readings of the loader. */
void streaming_keep(struct process_record *record, const struct prefetch_figures *begin,
		    const struct prefetch_figures *end, int64_t steps, unsigned *flags);

#endif
