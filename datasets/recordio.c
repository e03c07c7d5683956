#include "datasets/recordio.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/entries.h"
#include "datasets/image.h"
#include "datasets/writer.h"

enum { HEAD_BYTES = 8 };

static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	uint32_t magic;

	(void)path;
	if (length < HEAD_BYTES)
		return false;
	memcpy(&magic, head, sizeof(magic));
	return le32toh(magic) == RECORDIO_MAGIC;
}

/* Reads flag and length of the part at an offset. */
static enum prony_status read_head(const struct file_source *source, int64_t offset, uint32_t *flag,
				   int64_t *length, struct error *err)
{
	uint32_t head[2];
	enum prony_status status = plain_file_read(&source->file, offset, head, sizeof(head),
						   "the header of a record", err);

	if (status != PRONY_OK)
		return status;
	if (le32toh(head[0]) != RECORDIO_MAGIC)
		return plain_file_broken(&source->file, offset,
					 "there is no record here (no ce d7 23 0a)", err);
	*flag = le32toh(head[1]) >> RECORDIO_LENGTH_BITS;
	*length = le32toh(head[1]) & RECORDIO_LENGTH_MAX;
	if (*length > source->file.bytes - offset - HEAD_BYTES)
		return plain_file_broken(&source->file, offset,
					 "truncated: the record is longer than the file", err);
	return PRONY_OK;
}

static int64_t padded(int64_t length)
{
	return (length + 3) / 4 * 4;
}

/* An entry covers all parts of a record with their headers. */
static enum prony_status index_file(struct file_source *source, struct error *err)
{
	struct file_entry entry = {0};
	bool inside = false;
	int64_t at = 0, length = 0;
	uint32_t flag = 0;

	while (at < source->file.bytes) {
		enum prony_status status = read_head(source, at, &flag, &length, err);

		if (status != PRONY_OK)
			return status;
		bool begins = flag == RECORDIO_WHOLE || flag == RECORDIO_FIRST;
		if (flag > RECORDIO_LAST || begins == inside)
			return plain_file_broken(&source->file, at, "unexpected part of a record",
						 err);
		if (begins)
			entry.offset = at;
		at += HEAD_BYTES + padded(length);
		if (at > source->file.bytes)
			return plain_file_broken(&source->file, source->file.bytes,
						 "truncated: the last record is incomplete", err);
		inside = flag == RECORDIO_FIRST || flag == RECORDIO_MIDDLE;
		entry.length = at - entry.offset;
		if (!inside)
			file_source_add(source, &entry);
	}
	return inside ? plain_file_broken(&source->file, at,
					  "truncated: the last part of a record is missing", err)
		      : PRONY_OK;
}

static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	return file_source_open(shard, index_file, out, err);
}

/* Joins the parts and restores the magic numbers that were left out between them. */
static size_t join(uint8_t *bytes, int64_t length)
{
	const uint32_t magic = htole32(RECORDIO_MAGIC);
	size_t out = 0;

	for (int64_t at = 0; at < length;) {
		uint32_t word;

		memcpy(&word, bytes + at + 4, sizeof(word));
		int64_t part = le32toh(word) & RECORDIO_LENGTH_MAX;
		if (at > 0) {
			memcpy(bytes + out, &magic, sizeof(magic));
			out += sizeof(magic);
		}
		memmove(bytes + out, bytes + at + HEAD_BYTES, (size_t)part);
		out += (size_t)part;
		at += HEAD_BYTES + padded(part);
	}
	return out;
}

static enum prony_status take_record(const struct file_source *source, int64_t at,
				     const uint8_t *bytes, size_t length, struct data_record *out,
				     struct error *err)
{
	uint32_t flag = 0, bits = 0;
	float label = -1;
	uint64_t id = 0;

	if (length > RECORDIO_HEADER_BYTES) {
		memcpy(&flag, bytes, 4);
		memcpy(&bits, bytes + 4, 4);
		memcpy(&id, bytes + 8, 8);
		bits = le32toh(bits);
		memcpy(&label, &bits, 4);
	}
	if (length <= RECORDIO_HEADER_BYTES || flag != 0 || !(label >= 0 && label < 1e9f) ||
	    label != (float)(int64_t)label ||
	    image_kind_of(bytes + RECORDIO_HEADER_BYTES, length - RECORDIO_HEADER_BYTES) ==
		    IMAGE_NONE)
		return plain_file_broken(&source->file, source->entries[at].offset,
					 "the record is not an IRHeader with one label, followed "
					 "by a JPEG or PNG file",
					 err);
	out->length = length - RECORDIO_HEADER_BYTES;
	data_record_reserve(out, out->length);
	memcpy(out->bytes, bytes + RECORDIO_HEADER_BYTES, out->length);
	out->encoded = true;
	out->label = (int64_t)label;
	snprintf(out->name, sizeof(out->name), "%llu", (unsigned long long)le64toh(id));
	return file_source_finish(source, at, out, err);
}

static enum prony_status record(const struct data_source *base, int64_t at, struct data_record *out,
				struct error *err)
{
	const struct file_source *source = (const struct file_source *)base;
	uint8_t *bytes;
	enum prony_status status = file_source_read(source, at, &bytes, err);

	if (status != PRONY_OK)
		return status;
	size_t length = join(bytes, source->entries[at].length);
	status = take_record(source, at, bytes, length, out, err);
	free(bytes);
	return status;
}

extern const struct data_writer recordio_writer;

const struct data_format recordio_format = {
	.name = "recordio",
	.summary = "MXNet's NAME.rec of images with one label each",
	.shard_files = 1,
	.recognises = recognises,
	.open = open_source,
	.record = record,
	.close = file_source_close,
	.writer = &recordio_writer,
};
