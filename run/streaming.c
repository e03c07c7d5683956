#include "run/streaming.h"

#include <inttypes.h>

#include "samples/protocol.h"

/* A window is too short if more than this part of its batches was loaded before it began. */
#define LOADED_BEFORE_MAX 0.1

static bool is_streamed(const struct launch *launch)
{
	return launch->cell->recipe.input == INPUT_STREAM;
}

static struct ring_layout layout_of(const struct launch *launch)
{
	const struct graph *graph = &launch->work->graph;
	const struct value *input = &graph->values[graph_input(graph, 0)];

	return ring_layout_of((uint64_t)shape_elements(&input->shape) * sizeof(float),
			      (uint64_t)launch->cell->recipe.batch * sizeof(int64_t));
}

size_t streaming_ring_bytes(const struct launch *launch)
{
	return is_streamed(launch)
		       ? (size_t)layout_of(launch).stride * (size_t)launch->cell->recipe.slots
		       : 0;
}

enum prony_status streaming_open(const struct launch *launch, struct prefetch **out,
				 struct error *err)
{
	struct batch_request request;

	*out = NULL;
	if (!is_streamed(launch))
		return PRONY_OK;
	workload_request(launch->cell, launch->cell->recipe.batch, launch->cell->recipe.seed,
			 &request);
	return prefetch_open(launch->cell->dataset, launch->cell->data_folder, &request, out, err);
}

enum prony_status streaming_start(const struct launch *launch, struct team *team,
				  struct prefetch *loader, struct error *err)
{
	struct ring_layout layout;
	struct client_ring ring;

	if (!loader)
		return PRONY_OK;
	layout = layout_of(launch);
	client_take_ring(team->clients[0], &ring);
	struct prefetch_ring to = {.memory = ring.memory,
				   .slots = launch->cell->recipe.slots,
				   .stride = (size_t)layout.stride,
				   .labels = (size_t)layout.labels,
				   .ready_fd = ring.ready_fd,
				   .free_fd = ring.free_fd};
	return prefetch_start(loader, &to, launch->cpus, launch->cpu_count, err);
}

enum prony_status streaming_run(struct prefetch *loader, struct team *team,
				const struct run_request *request, struct client_window *window,
				struct prefetch_figures *figures, struct error *err)
{
	struct error why = ERROR_INIT, of_worker = ERROR_INIT;

	if (loader)
		prefetch_go(loader);
	enum prony_status status =
		team_run(team, request->steps, request->sync, request->every, request->slot,
			 request->timeout_ns, window, loader ? &of_worker : err);
	if (!loader)
		return status;
	enum prony_status loaded = prefetch_rest(loader, figures, &why);
	/* A worker that ended also closed its pipe, so its own error comes first. */
	if (loaded != PRONY_OK && (status == PRONY_OK || loaded != PRONY_CRASHED))
		return error_set(err, loaded, "%s", why.text);
	if (status != PRONY_OK)
		return error_set(err, status, "%s", of_worker.text);
	if (figures->freed != request->done + request->steps)
		status = error_set(err, PRONY_INVALID,
				   "the worker used %" PRId64 " batches for %" PRId64 " steps",
				   figures->freed - request->done, request->steps);
	return status;
}

void streaming_keep(struct process_record *record, const struct prefetch_figures *begin,
		    const struct prefetch_figures *end, int64_t steps, unsigned *flags)
{
	int64_t loaded = end->filled - begin->filled;

	record->load_batches = loaded;
	if ((double)(steps - loaded) > LOADED_BEFORE_MAX * (double)steps)
		*flags |= CELL_FLAG_NOT_STEADY;
	if (loaded < 1)
		return;
	record->load_storage_ns =
		(double)(end->times.storage_ns - begin->times.storage_ns) / (double)loaded;
	record->load_decode_ns =
		(double)(end->times.decode_ns - begin->times.decode_ns) / (double)loaded;
}
