#include "worker/results.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/files.h"
#include "bundle/bundle.h"

#define REGION_ALIGNMENT 4096u

void results_init(struct results *results)
{
	*results = (struct results){.map = NULL};
}

void results_release(struct results *results)
{
	if (!results)
		return;
	if (results->map)
		munmap(results->map, results->map_bytes);
	else
		free(results->records);
	results_init(results);
}

static bool region_fits(uint64_t offset, uint64_t bytes, uint64_t total)
{
	return offset % REGION_ALIGNMENT == 0 && offset >= sizeof(struct shared_header) &&
	       offset <= total && bytes <= total - offset;
}

/* Whether two regions are empty or do not overlap. */
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
				 "shared memory: the header says %llu bytes, but there are %zu",
				 (unsigned long long)h->total_bytes, bytes);
	if (!region_fits(h->records_offset, h->records_bytes, h->total_bytes) ||
	    !region_fits(h->tensors_offset, h->tensors_bytes, h->total_bytes) ||
	    !regions_apart(h->records_offset, h->records_bytes, h->tensors_offset,
			   h->tensors_bytes) ||
	    (h->ring_bytes > 0 &&
	     (!region_fits(h->ring_offset, h->ring_bytes, h->total_bytes) ||
	      !regions_apart(h->ring_offset, h->ring_bytes, h->records_offset, h->records_bytes) ||
	      !regions_apart(h->ring_offset, h->ring_bytes, h->tensors_offset, h->tensors_bytes))))
		return error_set(
			err, PRONY_PROTOCOL,
			"shared memory: records at %llu + %llu, tensors at %llu + %llu and the "
			"ring at %llu + %llu must be multiples of %u, not overlap and be within "
			"%llu bytes",
			(unsigned long long)h->records_offset, (unsigned long long)h->records_bytes,
			(unsigned long long)h->tensors_offset, (unsigned long long)h->tensors_bytes,
			(unsigned long long)h->ring_offset, (unsigned long long)h->ring_bytes,
			REGION_ALIGNMENT, (unsigned long long)h->total_bytes);
	return PRONY_OK;
}

enum prony_status results_map(struct results *results, int fd, int64_t bytes, bool *mapped,
			      struct error *err)
{
	struct shared_header header;
	struct stat info;
	size_t length = (size_t)bytes;

	*mapped = false;
	if (bytes < (int64_t)sizeof header)
		return error_set(err, PRONY_PROTOCOL,
				 "shared memory of %lld bytes is too small for its header",
				 (long long)bytes);
	if (fd < 0 || fstat(fd, &info) != 0)
		return PRONY_OK;
	/* Touching a page beyond the end of the file would kill the worker. */
	if (info.st_size < bytes)
		return error_set(err, PRONY_PROTOCOL,
				 "shared memory: descriptor %d has %lld bytes instead of %lld", fd,
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
	*results = (struct results){
		.map = map,
		.map_bytes = length,
		.records = (struct step_record *)((char *)map + header.records_offset),
		.record_capacity = (int64_t)(header.records_bytes / sizeof(struct step_record)),
		.tensors = (char *)map + header.tensors_offset,
		.tensors_bytes = (size_t)header.tensors_bytes,
		.ring = header.ring_bytes ? (char *)map + header.ring_offset : NULL,
		.ring_bytes = (size_t)header.ring_bytes,
	};
	*mapped = true;
	return PRONY_OK;
}

enum prony_status results_reserve(struct results *results, int64_t count, struct error *err)
{
	if (results->map && count > results->record_capacity)
		return error_set(err, PRONY_PROTOCOL,
				 "the shared memory has room for %lld step records, but the run "
				 "needs %lld; use fewer steps or larger blocks",
				 (long long)results->record_capacity, (long long)count);
	if (count > INT64_MAX / (int64_t)sizeof *results->records)
		return error_set(err, PRONY_NOMEM, "not enough memory for %lld step records",
				 (long long)count);
	if (count > results->record_capacity) {
		free(results->records);
		results->record_capacity = 0;
		results->records = malloc((size_t)count * sizeof *results->records);
		if (!results->records)
			return error_set(err, PRONY_NOMEM,
					 "not enough memory for %lld step records",
					 (long long)count);
		results->record_capacity = count;
	}
	memset(results->records, 0, (size_t)count * sizeof *results->records);
	return PRONY_OK;
}

enum prony_status results_store_records(const struct results *results, const char *folder,
					int64_t count, struct error *err)
{
	if (results->map)
		return PRONY_OK;
	char *path = path_join(folder, BUNDLE_RECORDS_FILE);
	enum prony_status status = file_write_atomic(path, results->records,
						     (size_t)count * sizeof *results->records, err);

	free(path);
	return status;
}

enum prony_status results_lay_out(const struct results *results, struct arena *arena,
				  struct tensor_set *set, void **image, size_t *bytes,
				  struct error *err)
{
	size_t needed = safetensors_image_bytes(set);

	if (needed == 0)
		return error_set(err, PRONY_INTERNAL, "the tensors to read are too large");
	if (results->map && needed > results->tensors_bytes)
		return error_set(err, PRONY_PROTOCOL,
				 "the shared memory has room for %zu bytes of tensors, but the "
				 "read needs %zu",
				 results->tensors_bytes, needed);
	void *room = results->map ? results->tensors : arena_try_array(arena, needed, 1, err);
	if (!room)
		return PRONY_NOMEM;
	*image = room;
	*bytes = needed;
	return safetensors_lay_out(set, room, needed, err);
}

enum prony_status results_store_image(const struct results *results, const char *folder,
				      const void *image, size_t bytes, struct error *err)
{
	if (results->map)
		return PRONY_OK;
	char *path = path_join(folder, BUNDLE_READ_FILE);
	enum prony_status status = file_write_atomic(path, image, bytes, err);

	free(path);
	return status;
}
