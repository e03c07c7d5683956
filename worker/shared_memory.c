#include "worker/shared_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/files.h"
#include "bundle/bundle.h"

#define REGION_ALIGNMENT 4096u

void shared_memory_init(struct shared_memory *bulk)
{
	*bulk = (struct shared_memory){.map = NULL};
}

void shared_memory_release(struct shared_memory *bulk)
{
	if (!bulk)
		return;
	if (bulk->map)
		munmap(bulk->map, bulk->map_bytes);
	else
		free(bulk->records);
	shared_memory_init(bulk);
}

static bool region_fits(uint64_t offset, uint64_t bytes, uint64_t total)
{
	return offset % REGION_ALIGNMENT == 0 && offset >= sizeof(struct shared_header) &&
	       offset <= total && bytes <= total - offset;
}

/* Two empty or separate regions. */
static bool regions_apart(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a_bytes == 0 || b_bytes == 0 || a + a_bytes <= b || b + b_bytes <= a;
}

static enum prony_status check_header(const struct shared_header *h, size_t bytes,
				      struct error *err)
{
	if (h->magic != SHARED_MAGIC || h->version != PROTOCOL_VERSION)
		return error_set(err, PRONY_PROTOCOL,
				 "shared memory: magic 0x%08x, version %u; expected 0x%08x, %d",
				 (unsigned)h->magic, (unsigned)h->version, SHARED_MAGIC,
				 PROTOCOL_VERSION);
	if (h->total_bytes > bytes)
		return error_set(err, PRONY_PROTOCOL,
				 "shared memory: the header claims %llu bytes of %zu",
				 (unsigned long long)h->total_bytes, bytes);
	if (!region_fits(h->records_offset, h->records_bytes, h->total_bytes) ||
	    !region_fits(h->tensors_offset, h->tensors_bytes, h->total_bytes) ||
	    !regions_apart(h->records_offset, h->records_bytes, h->tensors_offset,
			   h->tensors_bytes))
		return error_set(
			err, PRONY_PROTOCOL,
			"shared memory: records at %llu + %llu and tensors at %llu + %llu "
			"must be multiples of %u, apart and inside %llu bytes",
			(unsigned long long)h->records_offset, (unsigned long long)h->records_bytes,
			(unsigned long long)h->tensors_offset, (unsigned long long)h->tensors_bytes,
			REGION_ALIGNMENT, (unsigned long long)h->total_bytes);
	return PRONY_OK;
}

enum prony_status shared_memory_map(struct shared_memory *bulk, int fd, int64_t bytes, bool *mapped,
				    struct error *err)
{
	struct shared_header header;
	struct stat info;
	size_t length = (size_t)bytes;

	*mapped = false;
	if (bytes < (int64_t)sizeof header)
		return error_set(err, PRONY_PROTOCOL,
				 "shared memory of %lld bytes has no room for its header",
				 (long long)bytes);
	if (fd < 0 || fstat(fd, &info) != 0)
		return PRONY_OK;
	/* Touching a page beyond the end of the file would kill the worker. */
	if (info.st_size < bytes)
		return error_set(err, PRONY_PROTOCOL,
				 "shared memory: descriptor %d has %lld bytes, not %lld", fd,
				 (long long)info.st_size, (long long)bytes);
	void *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return PRONY_OK;
	memcpy(&header, map, sizeof header);
	enum prony_status status = check_header(&header, length, err);
	if (status != PRONY_OK) {
		munmap(map, length);
		return status;
	}
	*bulk = (struct shared_memory){
		.map = map,
		.map_bytes = length,
		.records = (struct step_record *)((char *)map + header.records_offset),
		.record_capacity = (int64_t)(header.records_bytes / sizeof(struct step_record)),
		.tensors = (char *)map + header.tensors_offset,
		.tensors_bytes = (size_t)header.tensors_bytes,
	};
	*mapped = true;
	return PRONY_OK;
}

enum prony_status shared_memory_reserve(struct shared_memory *bulk, int64_t count,
					struct error *err)
{
	if (bulk->map && count > bulk->record_capacity)
		return error_set(
			err, PRONY_PROTOCOL,
			"the shared memory holds %lld step records, the run needs %lld: use fewer "
			"steps or larger blocks",
			(long long)bulk->record_capacity, (long long)count);
	if (count > INT64_MAX / (int64_t)sizeof *bulk->records)
		return error_set(err, PRONY_NOMEM, "no memory for %lld step records",
				 (long long)count);
	if (count > bulk->record_capacity) {
		free(bulk->records);
		bulk->record_capacity = 0;
		bulk->records = malloc((size_t)count * sizeof *bulk->records);
		if (!bulk->records)
			return error_set(err, PRONY_NOMEM, "no memory for %lld step records",
					 (long long)count);
		bulk->record_capacity = count;
	}
	memset(bulk->records, 0, (size_t)count * sizeof *bulk->records);
	return PRONY_OK;
}

enum prony_status shared_memory_store_records(const struct shared_memory *bulk, const char *folder,
					      int64_t count, struct error *err)
{
	if (bulk->map)
		return PRONY_OK;
	char *path = path_join(folder, BUNDLE_RECORDS_FILE);
	enum prony_status status =
		file_write_atomic(path, bulk->records, (size_t)count * sizeof *bulk->records, err);

	free(path);
	return status;
}

enum prony_status shared_memory_store_tensors(const struct shared_memory *bulk, const char *folder,
					      const struct tensor_set *set, size_t *bytes,
					      struct error *err)
{
	size_t needed = safetensors_image_bytes(set);

	if (needed == 0)
		return error_set(err, PRONY_INTERNAL, "the sizes of the tensors to read overflow");
	*bytes = needed;
	if (!bulk->map) {
		char *path = path_join(folder, BUNDLE_READ_FILE);
		enum prony_status status = safetensors_write_file(set, path, err);

		free(path);
		return status;
	}
	if (needed > bulk->tensors_bytes)
		return error_set(err, PRONY_PROTOCOL,
				 "the shared memory holds %zu bytes of tensors, the read needs %zu",
				 bulk->tensors_bytes, needed);
	return safetensors_write_image(set, bulk->tensors, bulk->tensors_bytes, err);
}
