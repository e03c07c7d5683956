#include "datasets/tfrecord.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/crc32c.h"
#include "datasets/entries.h"
#include "datasets/image.h"
#include "datasets/writer.h"

enum { HEAD_BYTES = 12, SUM_BYTES = 4 };

static uint32_t number_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

static bool head_is_right(const uint8_t *head)
{
	return crc32c_masked(head, 8) == number_at(head + 8);
}

static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	(void)path;
	return length >= HEAD_BYTES && head_is_right(head);
}

static enum prony_status index_file(struct file_source *source, struct error *err)
{
	int64_t at = 0;

	while (at < source->file.bytes) {
		uint8_t head[HEAD_BYTES];
		uint64_t length;
		enum prony_status status = plain_file_read(&source->file, at, head, sizeof(head),
							   "the header of a record", err);

		if (status != PRONY_OK)
			return status;
		if (!head_is_right(head))
			return plain_file_broken(
				&source->file, at,
				"corrupt: wrong checksum of the length of a record", err);
		memcpy(&length, head, sizeof(length));
		length = le64toh(length);
		int64_t left = source->file.bytes - at - HEAD_BYTES - SUM_BYTES;
		if (left < 0 || length > (uint64_t)left)
			return plain_file_broken(&source->file, at,
						 "truncated: the record is longer than the file",
						 err);
		struct file_entry entry = {.offset = at + HEAD_BYTES,
					   .length = (int64_t)length + SUM_BYTES};
		file_source_add(source, &entry);
		at += HEAD_BYTES + (int64_t)length + SUM_BYTES;
	}
	return PRONY_OK;
}

static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	return file_source_open(shard, index_file, out, err);
}

/* The first value of a list, of bytes or of numbers (packed or not); out->number is the list's. */
static bool first_value(const struct protobuf_field *feature, struct protobuf_field *out)
{
	struct protobuf_reader reader = {feature->bytes, feature->bytes + feature->length};
	struct protobuf_field list, value;
	bool broken = false;

	if (!protobuf_next(&reader, &list, &broken) || !list.is_bytes)
		return false;
	reader = (struct protobuf_reader){list.bytes, list.bytes + list.length};
	if (!protobuf_next(&reader, &value, &broken) || value.number != TF_LIST_VALUE)
		return false;
	*out = value;
	out->number = list.number;
	if (list.number == TF_BYTES_LIST)
		return value.is_bytes;
	if (list.number != TF_INT64_LIST || !value.is_bytes)
		return list.number == TF_INT64_LIST;
	/* Packed: numbers without tags. The first one is read as that of a field. */
	out->value = 0;
	for (size_t i = 0; i < value.length && i < 9; i++) {
		out->value |= (uint64_t)(value.bytes[i] & 0x7f) << 7 * i;
		if (!(value.bytes[i] & 0x80))
			return true;
	}
	return false;
}

static bool is_named(const struct protobuf_field *key, const char *name)
{
	return key->length == strlen(name) && memcmp(key->bytes, name, key->length) == 0;
}

static void take_feature(const struct protobuf_field *entry, struct data_record *out)
{
	struct protobuf_reader reader = {entry->bytes, entry->bytes + entry->length};
	struct protobuf_field field, key = {0}, feature = {0}, value;
	bool broken = false;

	while (protobuf_next(&reader, &field, &broken)) {
		if (field.number == TF_MAP_KEY && field.is_bytes)
			key = field;
		else if (field.number == TF_MAP_VALUE && field.is_bytes)
			feature = field;
	}
	if (broken || !key.bytes || !feature.bytes || !first_value(&feature, &value))
		return;
	if (is_named(&key, TF_NAME_LABEL) && value.number == TF_INT64_LIST &&
	    value.value <= INT32_MAX) {
		out->label = (int64_t)value.value;
	} else if (is_named(&key, TF_NAME_ENCODED) && value.number == TF_BYTES_LIST) {
		data_record_reserve(out, value.length);
		if (value.length > 0)
			memcpy(out->bytes, value.bytes, value.length);
		out->length = value.length;
	} else if (is_named(&key, TF_NAME_FILE) && value.number == TF_BYTES_LIST) {
		size_t length = value.length < DATA_NAME_BYTES ? value.length : DATA_NAME_BYTES - 1;

		memcpy(out->name, value.bytes, length);
		out->name[length] = '\0';
	}
}

/* Of Example { Features { map } }: whether it has a label and a picture. */
static bool take_example(const uint8_t *bytes, size_t length, struct data_record *out)
{
	struct protobuf_reader reader = {bytes, bytes + length};
	struct protobuf_field features, entry;
	bool broken = false;

	out->label = -1;
	out->length = 0;
	out->name[0] = '\0';
	out->encoded = true;
	if (!protobuf_next(&reader, &features, &broken) || !features.is_bytes ||
	    features.number != TF_EXAMPLE_FEATURES)
		return false;
	reader = (struct protobuf_reader){features.bytes, features.bytes + features.length};
	while (protobuf_next(&reader, &entry, &broken))
		if (entry.is_bytes && entry.number == TF_FEATURES_MAP)
			take_feature(&entry, out);
	return !broken && out->label >= 0 && image_kind_of(out->bytes, out->length) != IMAGE_NONE;
}

static enum prony_status record(const struct data_source *base, int64_t at, struct data_record *out,
				struct error *err)
{
	const struct file_source *source = (const struct file_source *)base;
	const struct file_entry *entry = &source->entries[at];
	size_t length = (size_t)entry->length - SUM_BYTES;
	uint8_t *bytes;
	enum prony_status status = file_source_read(source, at, &bytes, err);

	if (status != PRONY_OK)
		return status;
	if (crc32c_masked(bytes, length) != number_at(bytes + length))
		status = plain_file_broken(&source->file, entry->offset,
					   "corrupt: wrong checksum of a record", err);
	else if (!take_example(bytes, length, out))
		status = plain_file_broken(&source->file, entry->offset,
					   "not an Example with " TF_NAME_LABEL
					   " and a JPEG or PNG file in " TF_NAME_ENCODED,
					   err);
	else
		status = file_source_finish(source, at, out, err);
	free(bytes);
	return status;
}

extern const struct data_writer tfrecord_writer;

const struct data_format tfrecord_format = {
	.name = "tfrecord",
	.summary = "TensorFlow's NAME.tfrecord, a file of Example messages",
	.shard_files = 1,
	.recognises = recognises,
	.open = open_source,
	.record = record,
	.close = file_source_close,
	.writer = &tfrecord_writer,
};
