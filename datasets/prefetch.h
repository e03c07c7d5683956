/* Prepares batches ahead of their use. A thread reads them from a batch stream, decoded by one
 * thread per core, and puts them into the slots of a ring. Two pipes signal full slots and free
 * slots. A slot has the same bytes as batch_stream_next gives. */
#ifndef PRONY_DATASETS_PREFETCH_H
#define PRONY_DATASETS_PREFETCH_H

#include "datasets/dataset.h"

struct prefetch;

/* Slot i begins at memory + i * stride with the samples; its labels follow after `labels` bytes. */
struct prefetch_ring {
	void *memory;
	int slots;
	size_t stride, labels;
	int ready_fd; /* written by the loader: a byte for each filled slot; owned by the loader */
	int free_fd;  /* read by the loader: a byte for each slot that may be refilled; owned by the
			 loader */
};

/* Opens the data set. Samples that are plain values are read into memory (batch_stream_hold) if
 * they take at most PREFETCH_HELD_BYTES. `dataset` and `folder` must outlive it. Errors as in
 * batch_stream_open. */
#define PREFETCH_HELD_BYTES (INT64_C(1) << 31)
enum prony_status prefetch_open(const struct dataset *dataset, const char *folder,
				const struct batch_request *request, struct prefetch **out,
				struct error *err);

/* Starts the thread, paused, bound to these processors (cpus NULL: those of the caller). The loader
 * owns the ring from now on, even after an error. */
enum prony_status prefetch_start(struct prefetch *prefetch, const struct prefetch_ring *ring,
				 const int *cpus, int cpu_count, struct error *err);

/* Starts filling slots. */
void prefetch_go(struct prefetch *prefetch);

/* What it has done since it was opened. */
struct prefetch_figures {
	int64_t filled, freed; /* batches */
	struct batch_times times;
};

/* Pauses after the batches in progress and reports how far it came. Returns the error that occurred
 * meanwhile, such as a broken file or a user that returned too many slots; the user of the ring saw
 * the pipe close. */
enum prony_status prefetch_rest(struct prefetch *prefetch, struct prefetch_figures *out,
				struct error *err);

/* The labels of a filled batch, numbered from 0, while it is paused; NULL when the batch is older
 * than twice the number of slots. */
const int64_t *prefetch_labels(const struct prefetch *prefetch, int64_t batch);

/* Ends the thread, closes the pipes, frees everything. NULL is fine. */
void prefetch_close(struct prefetch *prefetch);

#endif
