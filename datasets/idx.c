#include "datasets/idx.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "datasets/format.h"

enum { MAGIC_BYTES = 4, DIM_BYTES = 4 };

size_t idx_value_bytes(enum idx_type type)
{
	return type == IDX_U8 ? 1 : 4;
}

int64_t idx_offset(const struct idx *idx, int64_t at)
{
	return MAGIC_BYTES + DIM_BYTES * idx->rank +
	       at * idx->row * (int64_t)idx_value_bytes(idx->type);
}

static enum prony_status read_magic(struct idx *idx, struct error *err)
{
	const char *path = byte_stream_path(idx->bytes);
	uint8_t magic[MAGIC_BYTES];
	enum prony_status status =
		byte_stream_read(idx->bytes, 0, magic, sizeof(magic), "the magic number", err);

	if (status != PRONY_OK)
		return status;
	if (magic[0] != 0 || magic[1] != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: not an IDX file: it begins with %02x %02x %02x %02x instead "
				 "of 00 00, a type and the number of dimensions; " DATA_REMEDY,
				 path, magic[0], magic[1], magic[2], magic[3]);
	if (magic[2] != IDX_U8 && magic[2] != IDX_I32 && magic[2] != IDX_F32)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: offset 2: element type 0x%02x; supported are unsigned bytes (0x08), "
			"32-bit integers (0x0c) and floats (0x0d); convert the file",
			path, magic[2]);
	if (magic[3] < 1 || magic[3] > IDX_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset 3: %d dimensions; 1 to %d are supported; " DATA_REMEDY,
				 path, magic[3], IDX_MAX_RANK);
	idx->type = (enum idx_type)magic[2];
	idx->rank = magic[3];
	return PRONY_OK;
}

static enum prony_status read_dims(struct idx *idx, struct error *err)
{
	uint8_t raw[DIM_BYTES * IDX_MAX_RANK];
	int64_t bytes = (int64_t)idx_value_bytes(idx->type);
	enum prony_status status = byte_stream_read(
		idx->bytes, MAGIC_BYTES, raw, DIM_BYTES * (size_t)idx->rank, "the dimensions", err);

	if (status != PRONY_OK)
		return status;
	idx->row = 1;
	for (int i = 0; i < idx->rank; i++) {
		uint32_t dim;

		memcpy(&dim, raw + DIM_BYTES * i, sizeof(dim));
		idx->dims[i] = be32toh(dim);
		/* With this bound on the file size nothing computed from it overflows. */
		if (idx->dims[i] == 0 || bytes > (INT64_C(1) << 48) / idx->dims[i])
			return error_set(err, PRONY_BAD_INPUT,
					 "%s: dimension %d at offset %d is %" PRId64
					 ", which is not possible; " DATA_REMEDY,
					 byte_stream_path(idx->bytes), i,
					 MAGIC_BYTES + DIM_BYTES * i, idx->dims[i]);
		bytes *= idx->dims[i];
		if (i > 0)
			idx->row *= idx->dims[i];
	}
	return PRONY_OK;
}

enum prony_status idx_open(const char *path, struct idx *out, struct error *err)
{
	struct idx idx = {0};
	enum prony_status status = byte_stream_open(path, &idx.bytes, err);

	if (status == PRONY_OK)
		status = read_magic(&idx, err);
	if (status == PRONY_OK)
		status = read_dims(&idx, err);
	if (status == PRONY_OK)
		status = byte_stream_expect(idx.bytes, idx_offset(&idx, idx.dims[0]), err);
	if (status == PRONY_OK)
		*out = idx;
	else
		idx_close(&idx);
	return status;
}

void idx_close(struct idx *idx)
{
	byte_stream_close(idx->bytes);
	*idx = (struct idx){0};
}

enum prony_status idx_read_row(const struct idx *idx, int64_t at, void *out, struct error *err)
{
	size_t width = idx_value_bytes(idx->type), values = (size_t)idx->row;
	enum prony_status status = byte_stream_read(idx->bytes, idx_offset(idx, at), out,
						    values * width, "a sample's values", err);

	for (size_t i = 0; status == PRONY_OK && width > 1 && i < values; i++) {
		uint32_t value;

		memcpy(&value, (char *)out + i * width, sizeof(value));
		value = be32toh(value);
		memcpy((char *)out + i * width, &value, sizeof(value));
	}
	return status;
}

/* The format's row: images and labels in two files. */

struct idx_source {
	struct data_source base;
	struct idx images, labels;
	int64_t classes;
};

static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	(void)path;
	/* Check the element type (0x08 to 0x0e) too; otherwise any file of zeros would match. */
	return length >= 4 && head[0] == 0 && head[1] == 0 && head[2] >= 0x08 && head[2] <= 0x0e &&
	       head[3] <= IDX_MAX_RANK;
}

static enum prony_status verify(const char *path, int64_t *bytes, struct error *err)
{
	struct idx idx;
	enum prony_status status = idx_open(path, &idx, err);

	if (status != PRONY_OK)
		return status;
	*bytes = idx_offset(&idx, idx.dims[0]);
	idx_close(&idx);
	return PRONY_OK;
}

static void close_source(struct data_source *base)
{
	struct idx_source *source = (struct idx_source *)base;

	idx_close(&source->images);
	idx_close(&source->labels);
	free(source);
}

static enum prony_status check_pair(const struct idx_source *source, struct error *err)
{
	const struct idx *images = &source->images, *labels = &source->labels;
	const char *images_path = byte_stream_path(images->bytes);
	const char *labels_path = byte_stream_path(labels->bytes);

	if (images->type == IDX_I32)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset 2: the element type is integer; pixels must be bytes "
				 "or floats; convert the file",
				 images_path);
	if (labels->type == IDX_F32 || labels->rank != 1)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset 2: type 0x%02x with %d dimensions; labels must be "
				 "bytes or integers with one dimension; " DATA_REMEDY,
				 labels_path, (unsigned)labels->type, labels->rank);
	if (labels->dims[0] != images->dims[0])
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset 4: %" PRId64 " labels, but %s contains %" PRId64
				 " samples; " DATA_REMEDY,
				 labels_path, labels->dims[0], images_path, images->dims[0]);
	return PRONY_OK;
}

static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	struct idx_source *source = memory_alloc(sizeof(*source));
	const struct idx *images = &source->images;

	*source = (struct idx_source){.classes = shard->classes};
	enum prony_status status = idx_open(shard->paths[0], &source->images, err);
	if (status == PRONY_OK)
		status = idx_open(shard->paths[1], &source->labels, err);
	if (status == PRONY_OK)
		status = check_pair(source, err);
	if (status != PRONY_OK) {
		close_source(&source->base);
		return status;
	}
	source->base = (struct data_source){
		.count = images->dims[0],
		.rank = images->rank - 1,
		.element = images->type == IDX_F32 ? DATA_F32 : DATA_U8,
	};
	memcpy(source->base.dims, images->dims + 1, sizeof(int64_t) * (size_t)source->base.rank);
	*out = &source->base;
	return PRONY_OK;
}

static enum prony_status next(struct data_source *base, void *values, int64_t *label,
			      struct error *err)
{
	struct idx_source *source = (struct idx_source *)base;
	union {
		uint8_t byte;
		int32_t integer;
	} raw;
	enum prony_status status = idx_read_row(&source->images, base->position, values, err);

	if (status == PRONY_OK)
		status = idx_read_row(&source->labels, base->position, &raw, err);
	if (status != PRONY_OK)
		return status;
	int64_t class = source->labels.type == IDX_U8 ? raw.byte : raw.integer;
	if (class < 0 || class >= source->classes)
		return data_label_error(byte_stream_path(source->labels.bytes),
					idx_offset(&source->labels, base->position), class,
					source->classes, err);
	*label = class;
	base->position++;
	return PRONY_OK;
}

const struct data_format idx_format = {
	.name = "idx",
	.summary = "images and labels in two files, plain or gzip",
	.shard_files = 2,
	.recognises = recognises,
	.verify = verify,
	.open = open_source,
	.next = next,
	.close = close_source,
};
