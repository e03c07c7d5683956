/*
 * Batches made ahead of whoever uses them: a thread takes them out of a batch stream, decoded by as
 * many threads as there are cores, and puts them into the slots of a ring; two pipes say which
 * slots are full and which are free again. What is in a slot is the same bytes as batch_stream_next
 * gives.
 */
#ifndef PRONY_DATASETS_PREFETCH_H
#define PRONY_DATASETS_PREFETCH_H

#include "datasets/dataset.h"

struct prefetch;

/* Slot i begins at memory + i * stride with the samples; its labels lie `labels` bytes further. */
struct prefetch_ring {
	void *memory;
	int slots;
	size_t stride, labels;
	int ready_fd; /* to write: a byte for each batch that is in its slot; owned by the loader */
	int free_fd;  /* to read: a byte for each slot that may be filled again; likewise */
};

/*
 * Opens the data set, before anybody waits; samples that are plain values are read into memory
 * (batch_stream_hold) if they take at most PREFETCH_HELD_BYTES. `dataset` and `folder` must live as
 * long. Errors as of batch_stream_open.
 */
#define PREFETCH_HELD_BYTES (INT64_C(1) << 31)
enum prony_status prefetch_open(const struct dataset *dataset, const char *folder,
				const struct batch_request *request, struct prefetch **out,
				struct error *err);

/* Starts its thread, bound to the processors (cpus NULL: to those of the caller), at rest. The ring
 * is the loader's from now on, also after an error. */
enum prony_status prefetch_start(struct prefetch *prefetch, const struct prefetch_ring *ring,
				 const int *cpus, int cpu_count, struct error *err);

/* Lets it fill slots. */
void prefetch_go(struct prefetch *prefetch);

/* What it has done since it was opened. */
struct prefetch_figures {
	int64_t filled, freed; /* batches */
	struct batch_times times;
};

/*
 * Makes it stop where it is, after the batches that it has begun, and says how far it came. What
 * went wrong meanwhile, a broken file or a user that gave more slots back than it was given, is the
 * error here; the user of the ring was told by the end of the pipe.
 */
enum prony_status prefetch_rest(struct prefetch *prefetch, struct prefetch_figures *out,
				struct error *err);

/* The labels of a batch that was filled, numbered from 0, while it rests; NULL when that is longer
 * ago than twice the slots. */
const int64_t *prefetch_labels(const struct prefetch *prefetch, int64_t batch);

/* Ends the thread, closes the pipes, frees. NULL is fine. */
void prefetch_close(struct prefetch *prefetch);

#endif
