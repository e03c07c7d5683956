/* The worker's results: where step records and tensors are written, in the shared memory of hello
 * or else in files. */
#ifndef PRONY_WORKER_RESULTS_H
#define PRONY_WORKER_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "graph/tensor.h"
#include "samples/protocol.h"

struct results {
	void *map; /* owned mapping; NULL = files serve */
	size_t map_bytes;
	struct step_record *records; /* in the map, else owned */
	int64_t record_capacity;
	void *tensors; /* in the map */
	size_t tensors_bytes;
	const void *ring; /* in the map; only read */
	size_t ring_bytes;
};

void results_init(struct results *results);
void results_release(struct results *results);

/* Maps the descriptor (borrowed). *mapped is false, with PRONY_OK, when the system refuses: then
 * files serve. PRONY_PROTOCOL: it was mapped, but its header contradicts itself or its size. */
enum prony_status results_map(struct results *results, int fd, int64_t bytes, bool *mapped,
			      struct error *err);

/* Makes room for `count` records and touches it, so that the timed loop causes no page faults. */
enum prony_status results_reserve(struct results *results, int64_t count, struct error *err);

/* Delivers the first `count` records: writes BUNDLE_RECORDS_FILE if no memory is shared. */
enum prony_status results_store_records(const struct results *results, const char *folder,
					int64_t count, struct error *err);

/* Lays out the safetensors image of a set where the parent reads it: in the shared memory, else in
 * the arena. The tensors, with names, types and shapes, get their data there, which are
 * uninitialised. PRONY_PROTOCOL: the image does not fit into the shared memory. */
enum prony_status results_lay_out(const struct results *results, struct arena *arena,
				  struct tensor_set *set, void **image, size_t *bytes,
				  struct error *err);

/* Delivers the filled image: writes BUNDLE_READ_FILE if no memory is shared. */
enum prony_status results_store_image(const struct results *results, const char *folder,
				      const void *image, size_t bytes, struct error *err);

#endif
