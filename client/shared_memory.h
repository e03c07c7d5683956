/* The shared memory between parent and worker, in the layout of samples/protocol.h. */
#ifndef PRONY_CLIENT_SHARED_MEMORY_H
#define PRONY_CLIENT_SHARED_MEMORY_H

#include <stddef.h>

#include "base/error.h"
#include "samples/protocol.h"

struct shared {
	int fd; /* memfd; -1 after release */
	size_t bytes;
	struct shared_header *header; /* start of the mapping */
	struct shared_header layout;  /* the parent's copy: a worker can write to the mapped one */
};

/* Makes and maps the memory. Pages take no memory until they are touched. */
enum prony_status shared_init(struct shared *shared, size_t records, size_t tensors_bytes,
			      size_t ring_bytes, struct error *err);
void shared_release(struct shared *shared);

const struct step_record *shared_records(const struct shared *shared);
const void *shared_tensors(const struct shared *shared);
void *shared_ring(const struct shared *shared);

#endif
