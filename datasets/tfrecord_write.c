/* TFRecord files of TensorFlow's Example messages, with the names of features that its scripts for
 * ImageNet use; a new file begins when one has 256 MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "datasets/append_file.h"
#include "datasets/crc32c.h"
#include "datasets/image.h"
#include "datasets/tfrecord.h"
#include "datasets/writer.h"

#define FILE_BYTES (INT64_C(256) << 20)

struct tfrecord_sink {
	struct data_sink base;
	struct append_file file;
	int64_t number; /* of the file */
	struct byte_buffer example, features, feature, value;
};

static void name_of(int64_t number, char name[64])
{
	snprintf(name, 64, "data-%05d.tfrecord", (int)number);
}

static enum prony_status open_file(struct tfrecord_sink *sink, int64_t kept, struct error *err)
{
	char name[64];

	name_of(sink->number, name);
	return append_file_open(sink->base.folder, name, kept, &sink->file, err);
}

static void close_sink(struct data_sink *base)
{
	struct tfrecord_sink *sink = (struct tfrecord_sink *)base;

	append_file_close(&sink->file);
	byte_buffer_release(&sink->example);
	byte_buffer_release(&sink->features);
	byte_buffer_release(&sink->feature);
	byte_buffer_release(&sink->value);
}

static enum prony_status open_sink(struct data_sink *base, const struct byte_buffer *state,
				   struct error *err)
{
	struct tfrecord_sink *sink = (struct tfrecord_sink *)base;
	int64_t kept[2] = {0};

	if (state && state->length == sizeof(kept))
		memcpy(kept, state->bytes, sizeof(kept));
	sink->number = kept[0];
	return open_file(sink, kept[1], err);
}

/* The feature whose value stands in `value`: an entry of the map, whose kind is the list's field.
 */
static void end_feature(struct tfrecord_sink *sink, const char *name, int kind)
{
	sink->feature.length = 0;
	protobuf_add_bytes(&sink->feature, kind, sink->value.bytes, sink->value.length);
	/* The value's own tag comes after its key: the list is moved into an entry. */
	sink->value.length = 0;
	protobuf_add_bytes(&sink->value, TF_MAP_KEY, name, strlen(name));
	protobuf_add_bytes(&sink->value, TF_MAP_VALUE, sink->feature.bytes, sink->feature.length);
	protobuf_add_bytes(&sink->features, TF_FEATURES_MAP, sink->value.bytes, sink->value.length);
	sink->value.length = 0;
}

static void add_bytes(struct tfrecord_sink *sink, const char *name, const void *bytes,
		      size_t length)
{
	protobuf_add_bytes(&sink->value, TF_LIST_VALUE, bytes, length);
	end_feature(sink, name, TF_BYTES_LIST);
}

static void add_number(struct tfrecord_sink *sink, const char *name, int64_t value)
{
	protobuf_add_number(&sink->value, TF_LIST_VALUE, (uint64_t)value);
	end_feature(sink, name, TF_INT64_LIST);
}

static void make_example(struct tfrecord_sink *sink, const struct data_record *record)
{
	bool jpeg = image_kind_of(record->bytes, record->length) == IMAGE_JPEG;
	const char *format = jpeg ? "JPEG" : "PNG";

	sink->features.length = sink->example.length = 0;
	add_number(sink, TF_NAME_CHANNELS, record->dims[0]);
	add_number(sink, TF_NAME_LABEL, record->label);
	add_bytes(sink, TF_NAME_ENCODED, record->bytes, record->length);
	add_bytes(sink, TF_NAME_FILE, record->name, strlen(record->name));
	add_bytes(sink, TF_NAME_FORMAT, format, strlen(format));
	add_number(sink, TF_NAME_HEIGHT, record->dims[1]);
	add_number(sink, TF_NAME_WIDTH, record->dims[2]);
	protobuf_add_bytes(&sink->example, TF_EXAMPLE_FEATURES, sink->features.bytes,
			   sink->features.length);
}

static enum prony_status next_file(struct tfrecord_sink *sink, struct error *err)
{
	enum prony_status status = append_file_sync(&sink->file, err);

	append_file_close(&sink->file);
	sink->number++;
	return status == PRONY_OK ? open_file(sink, 0, err) : status;
}

static enum prony_status put(struct data_sink *base, const struct data_record *record,
			     struct error *err)
{
	struct tfrecord_sink *sink = (struct tfrecord_sink *)base;
	enum prony_status status = PRONY_OK;

	if (sink->file.bytes >= FILE_BYTES)
		status = next_file(sink, err);
	if (status != PRONY_OK)
		return status;
	make_example(sink, record);
	sink->value.length = 0;
	byte_buffer_u64(&sink->value, sink->example.length);
	byte_buffer_u32(&sink->value, crc32c_masked(sink->value.bytes, 8));
	status = append_file_write(&sink->file, sink->value.bytes, 12, err);
	if (status == PRONY_OK)
		status = append_file_write(&sink->file, sink->example.bytes, sink->example.length,
					   err);
	sink->value.length = 0;
	byte_buffer_u32(&sink->value, crc32c_masked(sink->example.bytes, sink->example.length));
	if (status == PRONY_OK)
		status = append_file_write(&sink->file, sink->value.bytes, 4, err);
	sink->value.length = 0;
	return status;
}

static enum prony_status commit(struct data_sink *base, struct byte_buffer *state,
				struct error *err)
{
	struct tfrecord_sink *sink = (struct tfrecord_sink *)base;

	byte_buffer_add(state, &sink->number, sizeof(int64_t));
	byte_buffer_add(state, &sink->file.bytes, sizeof(int64_t));
	return append_file_sync(&sink->file, err);
}

static enum prony_status finish(struct data_sink *base, struct error *err)
{
	struct tfrecord_sink *sink = (struct tfrecord_sink *)base;
	size_t count = (size_t)sink->number + 1;
	char(*names)[64] = memory_alloc(count * sizeof(*names));
	const char **list = memory_alloc(count * sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		name_of((int64_t)i, names[i]);
		list[i] = names[i];
	}
	enum prony_status status = writer_write_sums(base->folder, list, count, err);
	free(list);
	free(names);
	return status;
}

const struct data_writer tfrecord_writer = {
	.sink_bytes = sizeof(struct tfrecord_sink),
	.open = open_sink,
	.put = put,
	.commit = commit,
	.finish = finish,
	.close = close_sink,
};
