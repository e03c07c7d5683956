/* Reads CIFAR-10's binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of a label
 * and 32 x 32 pixels, all red, then all green, then all blue. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "datasets/byte_stream.h"
#include "datasets/format.h"

enum { CLASSES = 10, PIXELS = 3 * 32 * 32, RECORD_BYTES = 1 + PIXELS };

struct cifar10_source {
	struct data_source base;
	struct byte_stream *bytes;
	int64_t classes;
};

/* The format has no magic number, so only the name identifies a file. */
static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	size_t name = strlen(path);

	return length > 0 && head[0] < CLASSES &&
	       ((name > 4 && strcmp(path + name - 4, ".bin") == 0) ||
		(name > 7 && strcmp(path + name - 7, ".bin.gz") == 0));
}

static enum prony_status count_records(struct byte_stream *bytes, int64_t *count, struct error *err)
{
	int64_t length;
	enum prony_status status = byte_stream_length(bytes, &length, err);

	if (status != PRONY_OK)
		return status;
	if (length == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: empty: no sample at offset 0; " DATA_REMEDY,
				 byte_stream_path(bytes));
	if (length % RECORD_BYTES != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset %" PRId64 ": truncated, or trailing bytes: %" PRId64
				 " bytes where a sample has %d; " DATA_REMEDY,
				 byte_stream_path(bytes), length - length % RECORD_BYTES,
				 length % RECORD_BYTES, RECORD_BYTES);
	*count = length / RECORD_BYTES;
	return PRONY_OK;
}

static void close_source(struct data_source *base)
{
	struct cifar10_source *source = (struct cifar10_source *)base;

	byte_stream_close(source->bytes);
	free(source);
}

static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	struct cifar10_source *source = memory_alloc(sizeof(*source));

	*source = (struct cifar10_source){
		.base = {.rank = 3, .dims = {3, 32, 32}, .element = DATA_U8},
		.classes = shard->classes,
	};
	enum prony_status status = byte_stream_open(shard->paths[0], &source->bytes, err);
	if (status == PRONY_OK)
		status = count_records(source->bytes, &source->base.count, err);
	if (status == PRONY_OK)
		*out = &source->base;
	else
		close_source(&source->base);
	return status;
}

static enum prony_status next(struct data_source *base, void *values, int64_t *label,
			      struct error *err)
{
	struct cifar10_source *source = (struct cifar10_source *)base;
	int64_t offset = base->position * RECORD_BYTES;
	uint8_t record[RECORD_BYTES];
	enum prony_status status =
		byte_stream_read(source->bytes, offset, record, RECORD_BYTES, "a sample", err);

	if (status != PRONY_OK)
		return status;
	if (record[0] >= source->classes)
		return data_label_error(byte_stream_path(source->bytes), offset, record[0],
					source->classes, err);
	*label = record[0];
	memcpy(values, record + 1, PIXELS);
	base->position++;
	return PRONY_OK;
}

static enum prony_status verify(const char *path, int64_t *bytes, struct error *err)
{
	const struct data_shard shard = {.paths = &path, .classes = CLASSES};
	struct data_source *source;
	uint8_t pixels[PIXELS];
	int64_t label;
	enum prony_status status = open_source(&shard, &source, err);

	if (status != PRONY_OK)
		return status;
	while (status == PRONY_OK && source->position < source->count)
		status = next(source, pixels, &label, err);
	if (status == PRONY_OK)
		*bytes = source->count * RECORD_BYTES;
	close_source(source);
	return status;
}

const struct data_format cifar10_format = {
	.name = "cifar10",
	.summary = "files NAME.bin of records, each a label and 3 x 32 x 32 bytes",
	.shard_files = 1,
	.recognises = recognises,
	.verify = verify,
	.open = open_source,
	.next = next,
	.close = close_source,
};
