/* Writes MXNet's RecordIO with its index, as im2rec.py does: an IRHeader and a picture in each
 * record. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "datasets/append_file.h"
#include "datasets/recordio.h"
#include "datasets/writer.h"

#define REC_FILE "data.rec"
#define INDEX_FILE "data.idx"

struct recordio_sink {
	struct data_sink base;
	struct append_file records, index;
	struct byte_buffer record;
};

static void close_sink(struct data_sink *base)
{
	struct recordio_sink *sink = (struct recordio_sink *)base;

	append_file_close(&sink->records);
	append_file_close(&sink->index);
	byte_buffer_release(&sink->record);
}

static enum prony_status open_sink(struct data_sink *base, const struct byte_buffer *state,
				   struct error *err)
{
	struct recordio_sink *sink = (struct recordio_sink *)base;
	int64_t kept[2] = {0};

	if (state && state->length == sizeof(kept))
		memcpy(kept, state->bytes, sizeof(kept));
	enum prony_status status =
		append_file_open(base->folder, REC_FILE, kept[0], &sink->records, err);
	if (status == PRONY_OK)
		status = append_file_open(base->folder, INDEX_FILE, kept[1], &sink->index, err);
	return status;
}

/* Writes a part of a record with its header, padded with zeros to a multiple of four. */
static enum prony_status write_part(struct recordio_sink *sink, uint32_t flag, const uint8_t *bytes,
				    size_t length, struct error *err)
{
	const uint32_t head[2] = {htole32(RECORDIO_MAGIC),
				  htole32(flag << RECORDIO_LENGTH_BITS | (uint32_t)length)};
	static const uint8_t zeros[3] = {0};
	enum prony_status status = append_file_write(&sink->records, head, sizeof(head), err);

	if (status == PRONY_OK)
		status = append_file_write(&sink->records, bytes, length, err);
	if (status == PRONY_OK && length % 4 != 0)
		status = append_file_write(&sink->records, zeros, 4 - length % 4, err);
	return status;
}

/* A record is split where its data contains the magic number at a multiple of four; that number is
 * left out (dmlc-core, src/recordio.cc). */
static enum prony_status write_record(struct recordio_sink *sink, struct error *err)
{
	const uint8_t *bytes = sink->record.bytes;
	size_t length = sink->record.length, from = 0;
	const uint32_t magic = htole32(RECORDIO_MAGIC);
	enum prony_status status = PRONY_OK;

	for (size_t at = 0; at + 4 <= length && status == PRONY_OK; at += 4)
		if (memcmp(bytes + at, &magic, 4) == 0) {
			status = write_part(sink, from == 0 ? RECORDIO_FIRST : RECORDIO_MIDDLE,
					    bytes + from, at - from, err);
			from = at + 4;
		}
	if (status != PRONY_OK)
		return status;
	return write_part(sink, from == 0 ? RECORDIO_WHOLE : RECORDIO_LAST, bytes + from,
			  length - from, err);
}

static enum prony_status put(struct data_sink *base, const struct data_record *record,
			     struct error *err)
{
	struct recordio_sink *sink = (struct recordio_sink *)base;
	float label = (float)record->label;
	uint32_t label_bits;
	char line[64];

	if (record->length > RECORDIO_LENGTH_MAX - RECORDIO_HEADER_BYTES)
		return error_set(err, PRONY_UNSUPPORTED,
				 "%s: longer than 512 MiB, the limit of a RecordIO record",
				 record->where);
	int length = snprintf(line, sizeof(line), "%" PRId64 "\t%" PRId64 "\n", base->written,
			      sink->records.bytes);
	memcpy(&label_bits, &label, sizeof(label));
	sink->record.length = 0;
	byte_buffer_u32(&sink->record, 0); /* flag 0: a single label, here */
	byte_buffer_u32(&sink->record, label_bits);
	byte_buffer_u64(&sink->record, (uint64_t)base->written);
	byte_buffer_u64(&sink->record, 0);
	byte_buffer_add(&sink->record, record->bytes, record->length);
	enum prony_status status = append_file_write(&sink->index, line, (size_t)length, err);
	return status == PRONY_OK ? write_record(sink, err) : status;
}

static enum prony_status commit(struct data_sink *base, struct byte_buffer *state,
				struct error *err)
{
	struct recordio_sink *sink = (struct recordio_sink *)base;
	enum prony_status status = append_file_sync(&sink->records, err);

	if (status == PRONY_OK)
		status = append_file_sync(&sink->index, err);
	byte_buffer_add(state, &sink->records.bytes, sizeof(int64_t));
	byte_buffer_add(state, &sink->index.bytes, sizeof(int64_t));
	return status;
}

static enum prony_status finish(struct data_sink *base, struct error *err)
{
	static const char *const names[] = {REC_FILE, INDEX_FILE};

	return writer_write_sums(base->folder, names, 2, err);
}

const struct data_writer recordio_writer = {
	.sink_bytes = sizeof(struct recordio_sink),
	.open = open_sink,
	.put = put,
	.commit = commit,
	.finish = finish,
	.close = close_sink,
};
