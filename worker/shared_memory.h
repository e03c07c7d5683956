/* Where step records and tensors leave the worker: the shared memory of hello, else bundle files.
 */
#ifndef PRONY_WORKER_SHARED_MEMORY_H
#define PRONY_WORKER_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "graph/tensor.h"
#include "samples/protocol.h"

struct shared_memory {
	void *map; /* owned mapping; NULL = files serve */
	size_t map_bytes;
	struct step_record *records; /* in the map, else owned */
	int64_t record_capacity;
	void *tensors; /* in the map */
	size_t tensors_bytes;
};

void shared_memory_init(struct shared_memory *bulk);
void shared_memory_release(struct shared_memory *bulk);

/*
 * Maps the descriptor (borrowed). *mapped is false, with PRONY_OK, when the system refuses: then
 * files serve. PRONY_PROTOCOL: it was mapped and its header contradicts itself or its size.
 */
enum prony_status shared_memory_map(struct shared_memory *bulk, int fd, int64_t bytes, bool *mapped,
				    struct error *err);

/* Makes room for `count` records and touches it, so that the timed loop meets no page fault. */
enum prony_status shared_memory_reserve(struct shared_memory *bulk, int64_t count,
					struct error *err);

/* Hands the first `count` records over: writes BUNDLE_RECORDS_FILE where no memory is shared. */
enum prony_status shared_memory_store_records(const struct shared_memory *bulk, const char *folder,
					      int64_t count, struct error *err);

/* Hands tensors over as a safetensors image; *bytes is its size. */
enum prony_status shared_memory_store_tensors(const struct shared_memory *bulk, const char *folder,
					      const struct tensor_set *set, size_t *bytes,
					      struct error *err);

#endif
