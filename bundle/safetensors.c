/* Reads and writes safetensors files and images. */
#include "bundle/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"

#define LENGTH_BYTES 8 /* the length of the header, stored before it */
#define DATA_ALIGN 64
#define METADATA_KEY "__metadata__"
/* The largest known network needs 200 KiB; jansson uses several times the size of the text. */
#define HEADER_MAX_BYTES ((size_t)16 * 1024 * 1024)

/* The position of a tensor in the data, before tensors are sorted. */
struct extent {
	struct tensor tensor;
	size_t begin, end; /* bytes from the start of the data */
	size_t position;   /* in the header: keeps empty tensors in its order */
};

static uint64_t load_little_endian(const unsigned char *bytes)
{
	uint64_t value = 0;

	for (int i = LENGTH_BYTES - 1; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

static void store_little_endian(unsigned char *bytes, uint64_t value)
{
	for (int i = 0; i < LENGTH_BYTES; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
}

static json_t *header_row(const struct tensor *tensor, size_t begin, size_t end)
{
	json_t *dims = json_array();

	for (int i = 0; i < tensor->shape.rank; i++)
		json_array_append_new(dims, json_integer(tensor->shape.dims[i]));
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(tensor->dtype), "shape", dims,
			 "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/* Returns the header's text, padded with spaces so that the data after it are aligned, and sets the
 * size of the data in bytes. NULL if sizes overflow, or if a name is not UTF-8 or occurs twice. The
 * caller frees the text. */
static char *header_text(const struct tensor_set *set, size_t *header_bytes, size_t *data_bytes)
{
	json_t *header = json_object();
	char *text = NULL, *padded = NULL;
	size_t offset = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct tensor *tensor = &set->tensors[i];
		int64_t bytes = tensor_bytes(tensor);

		if (bytes < 0 || (uint64_t)bytes > (uint64_t)(INT64_MAX / 2) - offset ||
		    json_object_get(header, tensor->name) ||
		    strcmp(tensor->name, METADATA_KEY) == 0)
			goto out;
		size_t end = offset + (size_t)bytes;
		if (json_object_set_new(header, tensor->name, header_row(tensor, offset, end)))
			goto out;
		offset = end;
	}
	text = json_dumps(header, JSON_COMPACT);
	if (!text)
		goto out;

	size_t length = strlen(text);
	size_t total = (LENGTH_BYTES + length + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
	padded = memory_alloc(total - LENGTH_BYTES);
	memcpy(padded, text, length);
	memset(padded + length, ' ', total - LENGTH_BYTES - length);
	*header_bytes = total - LENGTH_BYTES;
	*data_bytes = offset;
out:
	free(text);
	json_decref(header);
	return padded;
}

size_t safetensors_image_bytes(const struct tensor_set *set)
{
	size_t header_bytes, data_bytes;
	char *header = header_text(set, &header_bytes, &data_bytes);

	if (!header)
		return 0;
	free(header);
	return LENGTH_BYTES + header_bytes + data_bytes;
}

static enum prony_status refuse_set(const struct tensor_set *set, struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT,
			 "cannot write %zu tensors as safetensors: a size overflows, or a name is "
			 "a duplicate or not UTF-8",
			 set->count);
}

/* Writes the header; *data is the position after it. */
static enum prony_status write_header(const struct tensor_set *set, unsigned char *image,
				      size_t bytes, unsigned char **data, struct error *err)
{
	size_t header_bytes, data_bytes;
	char *header = header_text(set, &header_bytes, &data_bytes);

	if (!header)
		return refuse_set(set, err);
	if (bytes < LENGTH_BYTES + header_bytes + data_bytes) {
		free(header);
		return error_set(err, PRONY_INTERNAL,
				 "the tensors need %zu bytes, but the buffer has %zu",
				 LENGTH_BYTES + header_bytes + data_bytes, bytes);
	}
	store_little_endian(image, header_bytes);
	memcpy(image + LENGTH_BYTES, header, header_bytes);
	*data = image + LENGTH_BYTES + header_bytes;
	free(header);
	return PRONY_OK;
}

enum prony_status safetensors_lay_out(struct tensor_set *set, void *image, size_t bytes,
				      struct error *err)
{
	unsigned char *at;
	enum prony_status status = write_header(set, image, bytes, &at, err);

	for (size_t i = 0; status == PRONY_OK && i < set->count; i++) {
		set->tensors[i].data = at;
		at += tensor_bytes(&set->tensors[i]);
	}
	return status;
}

enum prony_status safetensors_write_image(const struct tensor_set *set, void *image, size_t bytes,
					  struct error *err)
{
	unsigned char *at;
	enum prony_status status = write_header(set, image, bytes, &at, err);

	for (size_t i = 0; status == PRONY_OK && i < set->count; i++) {
		size_t length = (size_t)tensor_bytes(&set->tensors[i]);

		if (length > 0)
			memcpy(at, set->tensors[i].data, length);
		at += length;
	}
	return status;
}

enum prony_status safetensors_write_file(const struct tensor_set *set, const char *path,
					 struct error *err)
{
	unsigned char length[LENGTH_BYTES];
	size_t header_bytes, data_bytes;
	char *header = header_text(set, &header_bytes, &data_bytes);
	struct file_writer *writer = NULL;
	enum prony_status status;

	if (!header) {
		status = refuse_set(set, err);
		error_prefix(err, "%s", path);
		return status;
	}
	store_little_endian(length, header_bytes);
	status = file_writer_open(path, &writer, err);
	if (status == PRONY_OK)
		status = file_writer_add(writer, length, sizeof(length), err);
	if (status == PRONY_OK)
		status = file_writer_add(writer, header, header_bytes, err);
	for (size_t i = 0; status == PRONY_OK && i < set->count; i++)
		status = file_writer_add(writer, set->tensors[i].data,
					 (size_t)tensor_bytes(&set->tensors[i]), err);
	if (status == PRONY_OK)
		status = file_writer_finish(writer, err);
	free(header);
	return status;
}

static enum prony_status read_shape(const json_t *row, struct shape *out, struct error *err)
{
	struct shape shape = {0};
	json_t *dims;
	enum prony_status status = json_get_array(row, "shape", &dims, err);

	if (status != PRONY_OK)
		return status;
	if (json_array_size(dims) > TENSOR_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT,
				 "shape has %zu dimensions; at most %d are supported",
				 json_array_size(dims), TENSOR_MAX_RANK);
	shape.rank = (int)json_array_size(dims);
	for (int i = 0; i < shape.rank; i++) {
		const json_t *dim = json_array_get(dims, (size_t)i);

		if (!json_is_integer(dim) || json_integer_value(dim) < 0)
			return error_set(err, PRONY_BAD_INPUT,
					 "shape[%d] must be an integer, 0 or more", i);
		shape.dims[i] = json_integer_value(dim);
	}
	*out = shape;
	return PRONY_OK;
}

static enum prony_status read_offsets(const json_t *row, size_t data_bytes, struct extent *extent,
				      struct error *err)
{
	json_t *offsets;
	json_int_t pair[2];
	enum prony_status status = json_get_array(row, "data_offsets", &offsets, err);

	if (status != PRONY_OK)
		return status;
	for (size_t i = 0; i < 2; i++) {
		const json_t *offset = json_array_get(offsets, i);

		if (json_array_size(offsets) != 2 || !json_is_integer(offset) ||
		    json_integer_value(offset) < 0)
			return error_set(err, PRONY_BAD_INPUT,
					 "data_offsets must be two integers, 0 or more");
		pair[i] = json_integer_value(offset);
	}
	if (pair[0] > pair[1] || (uint64_t)pair[1] > data_bytes)
		return error_set(err, PRONY_BAD_INPUT,
				 "data_offsets [%lld, %lld] are outside the data (%zu bytes)",
				 (long long)pair[0], (long long)pair[1], data_bytes);
	extent->begin = (size_t)pair[0];
	extent->end = (size_t)pair[1];
	return PRONY_OK;
}

static enum prony_status read_row(const json_t *row, size_t data_bytes, struct extent *extent,
				  struct error *err)
{
	const char *dtype;
	char text[128];
	enum prony_status status;

	if (!json_is_object(row))
		return error_set(err, PRONY_BAD_INPUT, "must be an object");
	status = json_get_string(row, "dtype", &dtype, err);
	if (status != PRONY_OK)
		return status;
	if (dtype_parse(dtype, &extent->tensor.dtype) != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "unknown dtype %.20s; known are F32 F64 BF16 F16 I32 I64 U8",
				 dtype);
	status = read_shape(row, &extent->tensor.shape, err);
	if (status == PRONY_OK)
		status = read_offsets(row, data_bytes, extent, err);
	if (status != PRONY_OK)
		return status;

	int64_t bytes = tensor_bytes(&extent->tensor);
	if (bytes < 0 || (uint64_t)bytes != extent->end - extent->begin) {
		shape_text(&extent->tensor.shape, text, sizeof(text));
		return error_set(
			err, PRONY_BAD_INPUT,
			"it has %zu bytes of data, which do not match shape %s and dtype %s",
			extent->end - extent->begin, text, dtype);
	}
	return PRONY_OK;
}

static int compare_extents(const void *left, const void *right)
{
	const struct extent *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->position < b->position ? -1 : a->position > b->position;
}

/* The format allows no overlaps and no holes: bytes without a tensor could hide anything. */
static enum prony_status check_layout(struct extent *extents, size_t count, size_t data_bytes,
				      struct error *err)
{
	size_t end = 0;

	qsort(extents, count, sizeof(extents[0]), compare_extents);
	for (size_t i = 0; i < count; i++) {
		if (extents[i].begin != end)
			return error_set(err, PRONY_BAD_INPUT, "tensor %.80s: data_offsets %s",
					 extents[i].tensor.name,
					 extents[i].begin < end ? "overlap another tensor's"
								: "leave a gap before them");
		end = extents[i].end;
	}
	if (end != data_bytes)
		return error_set(err, PRONY_BAD_INPUT,
				 "it has %zu bytes of data, but the tensors end at %zu", data_bytes,
				 end);
	return PRONY_OK;
}

/* Points a tensor at its data, or copies data that cannot be read in place because of their
 * alignment. */
static enum prony_status place_tensor(struct tensor *tensor, unsigned char *at, size_t bytes,
				      struct arena *arena, struct error *err)
{
	size_t name_bytes = strlen(tensor->name) + 1;
	char *name = arena_try_array(arena, name_bytes, 1, err);

	if (!name)
		return PRONY_NOMEM;
	memcpy(name, tensor->name, name_bytes);
	tensor->name = name;
	tensor->data = at;
	if ((uintptr_t)at % dtype_bytes(tensor->dtype) == 0)
		return PRONY_OK;
	tensor->data = arena_try_array(arena, bytes > 0 ? bytes : 1, 1, err);
	if (!tensor->data)
		return PRONY_NOMEM;
	memcpy(tensor->data, at, bytes);
	return PRONY_OK;
}

static enum prony_status read_tensors(json_t *header, unsigned char *data, size_t data_bytes,
				      struct arena *arena, struct tensor_set *out,
				      struct error *err)
{
	size_t count = 0, room = json_object_size(header);
	struct extent *extents = calloc(room + 1, sizeof(*extents));
	struct tensor *tensors = arena_try_array(arena, room + 1, sizeof(*tensors), err);
	enum prony_status status = PRONY_OK;
	const char *name;
	json_t *row;

	if (!extents || !tensors) {
		status = error_set(err, PRONY_NOMEM, "not enough memory for %zu tensors", room);
		goto out;
	}
	json_object_foreach(header, name, row)
	{
		if (strcmp(name, METADATA_KEY) == 0)
			continue;
		extents[count] = (struct extent){.tensor = {.name = name}, .position = count};
		status = read_row(row, data_bytes, &extents[count], err);
		if (status != PRONY_OK) {
			error_prefix(err, "tensor %.80s", name);
			goto out;
		}
		count++;
	}
	status = check_layout(extents, count, data_bytes, err);
	for (size_t i = 0; status == PRONY_OK && i < count; i++) {
		tensors[i] = extents[i].tensor;
		status = place_tensor(&tensors[i], data + extents[i].begin,
				      extents[i].end - extents[i].begin, arena, err);
	}
	if (status == PRONY_OK)
		*out = (struct tensor_set){.tensors = tensors, .count = count};
out:
	free(extents);
	return status;
}

/* Reads an image. `image` is not const because tensors of a mapping are writable; callers with a
 * constant image do not write through the result. */
static enum prony_status read_image(unsigned char *image, size_t bytes, const char *where,
				    struct arena *arena, struct tensor_set *out, struct error *err)
{
	json_t *header;
	enum prony_status status;

	if (bytes < LENGTH_BYTES)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: only %zu bytes, too short for a safetensors file", where,
				 bytes);
	uint64_t header_bytes = load_little_endian(image);
	if (header_bytes > bytes - LENGTH_BYTES)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: the header should have %llu bytes, but the file has %zu: it "
				 "is truncated or not safetensors",
				 where, (unsigned long long)header_bytes, bytes);
	if (header_bytes > HEADER_MAX_BYTES)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: the header has %llu bytes; at most %zu are supported", where,
				 (unsigned long long)header_bytes, HEADER_MAX_BYTES);

	/* A worker may write to its image during the read; a copy stays as checked. */
	char *text = memcpy(memory_alloc((size_t)header_bytes), image + LENGTH_BYTES,
			    (size_t)header_bytes);
	status = json_parse(text, (size_t)header_bytes, where, &header, err);
	free(text);
	if (status != PRONY_OK)
		return status;
	if (json_is_object(header)) {
		size_t start = LENGTH_BYTES + (size_t)header_bytes;

		status = read_tensors(header, image + start, bytes - start, arena, out, err);
		if (status != PRONY_OK)
			error_prefix(err, "%s", where);
	} else {
		status = error_set(err, PRONY_BAD_INPUT, "%s: the header must be an object", where);
	}
	json_decref(header);
	return status;
}

enum prony_status safetensors_read_image(const void *image, size_t bytes, const char *where,
					 struct arena *arena, struct tensor_set *out,
					 struct error *err)
{
	return read_image((unsigned char *)(uintptr_t)image, bytes, where, arena, out, err);
}

enum prony_status safetensors_map_file(const char *path, struct arena *arena,
				       struct mapped_file *map, struct tensor_set *out,
				       struct error *err)
{
	struct mapped_file mapped = {0};
	struct stat info;
	enum prony_status status = PRONY_BAD_INPUT;
	/* Without O_NONBLOCK, open would block on a pipe of that name. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &info) != 0) {
		status = error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", path);
		goto out;
	}
	if (!S_ISREG(info.st_mode) || info.st_size < LENGTH_BYTES) {
		error_set(err, PRONY_BAD_INPUT, "%s: %s", path,
			  S_ISREG(info.st_mode) ? "too short for a safetensors file"
						: "not a regular file");
		goto out;
	}
	mapped.length = (size_t)info.st_size;
	mapped.bytes = mmap(NULL, mapped.length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (mapped.bytes == MAP_FAILED) {
		mapped = (struct mapped_file){0};
		status = error_errno(err, PRONY_IO, errno, "cannot map %s", path);
		goto out;
	}
	status = read_image(mapped.bytes, mapped.length, path, arena, out, err);
	mapped.path = arena_strdup(arena, path);
	if (status == PRONY_OK)
		*map = mapped;
	else
		safetensors_unmap(&mapped);
out:
	if (fd >= 0)
		close(fd);
	return status;
}

void safetensors_unmap(struct mapped_file *map)
{
	if (!map || !map->bytes)
		return;
	munmap(map->bytes, map->length);
	*map = (struct mapped_file){0};
}
