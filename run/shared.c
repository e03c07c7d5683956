#include "run/shared.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES UINT64_C(4096)

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

enum prony_status shared_init(struct shared *shared, size_t records, size_t tensors_bytes,
                              struct error *err)
{
	struct shared_header header = {
		.magic = SHARED_MAGIC,
		.version = PROTOCOL_VERSION,
		.records_offset = PAGE_BYTES,
		.records_bytes = pages(records * sizeof(struct step_record)),
		.tensors_bytes = pages(tensors_bytes),
	};
	header.tensors_offset = header.records_offset + header.records_bytes;
	header.ring_offset = header.tensors_offset + header.tensors_bytes;
	header.total_bytes = header.ring_offset + header.ring_bytes;
	shared->header = NULL;
	shared->bytes = (size_t)header.total_bytes;
	shared->fd = memfd_create("prony", MFD_CLOEXEC);
	if (shared->fd < 0 || ftruncate(shared->fd, (off_t)header.total_bytes))
		return error_errno(err, PRONY_INTERNAL, errno, "cannot make %llu bytes of shared memory",
		                   (unsigned long long)header.total_bytes);
	void *map = mmap(NULL, shared->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
	if (map == MAP_FAILED)
		return error_errno(err, PRONY_INTERNAL, errno, "cannot map %zu bytes of shared memory",
		                   shared->bytes);
	shared->header = map;
	*shared->header = header;
	return PRONY_OK;
}

void shared_release(struct shared *shared)
{
	if (shared->header)
		munmap(shared->header, shared->bytes);
	/* A descriptor of 0 is a zeroed struct that was never made. */
	if (shared->fd > 0)
		close(shared->fd);
	shared->header = NULL;
	shared->fd = -1;
}

const struct step_record *shared_records(const struct shared *shared)
{
	return (const struct step_record *)(const void *)((const char *)shared->header +
	                                                  shared->header->records_offset);
}

const void *shared_tensors(const struct shared *shared)
{
	return (const char *)shared->header + shared->header->tensors_offset;
}
