#include "client/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES UINT64_C(4096)

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

enum prony_status shared_init(struct shared *shared, size_t records, size_t tensors_bytes,
			      size_t ring_bytes, struct error *err)
{
	struct shared_header header = {
		.magic = SHARED_MAGIC,
		.version = PROTOCOL_VERSION,
		.records_offset = PAGE_BYTES,
		.records_bytes = pages(records * sizeof(struct step_record)),
		.tensors_bytes = pages(tensors_bytes),
		.ring_bytes = pages(ring_bytes),
	};
	header.tensors_offset = header.records_offset + header.records_bytes;
	header.ring_offset = header.tensors_offset + header.tensors_bytes;
	header.total_bytes = header.ring_offset + header.ring_bytes;
	shared->header = NULL;
	shared->bytes = (size_t)header.total_bytes;
	shared->fd = memfd_create("prony", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (shared->fd < 0 || ftruncate(shared->fd, (off_t)header.total_bytes))
		return error_errno(err, PRONY_INTERNAL, errno,
				   "cannot make %llu bytes of shared memory",
				   (unsigned long long)header.total_bytes);
	/* If a worker shrank the memory, SIGBUS would end the parent. On systems without seals that
	 * remains possible. */
	fcntl(shared->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	void *map = mmap(NULL, shared->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
	if (map == MAP_FAILED)
		return error_errno(err, PRONY_INTERNAL, errno,
				   "cannot map %zu bytes of shared memory", shared->bytes);
	shared->header = map;
	*shared->header = shared->layout = header;
	return PRONY_OK;
}

void shared_release(struct shared *shared)
{
	if (shared->header)
		munmap(shared->header, shared->bytes);
	/* A descriptor of 0 means a zeroed struct that was never initialised. */
	if (shared->fd > 0)
		close(shared->fd);
	shared->header = NULL;
	shared->fd = -1;
}

const struct step_record *shared_records(const struct shared *shared)
{
	return (const struct step_record *)(const void *)((const char *)shared->header +
							  shared->layout.records_offset);
}

const void *shared_tensors(const struct shared *shared)
{
	return (const char *)shared->header + shared->layout.tensors_offset;
}

void *shared_ring(const struct shared *shared)
{
	return (char *)shared->header + shared->layout.ring_offset;
}
