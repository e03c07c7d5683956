/* Reads and writes the fields of protobuf messages. */
#include "datasets/protobuf.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { WIRE_NUMBER = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

void byte_buffer_add(struct byte_buffer *buffer, const void *bytes, size_t length)
{
	if (buffer->capacity - buffer->length < length) {
		buffer->capacity = 2 * buffer->capacity + length + 64;
		buffer->bytes = memory_realloc(buffer->bytes, buffer->capacity);
	}
	if (length > 0)
		memcpy(buffer->bytes + buffer->length, bytes, length);
	buffer->length += length;
}

void byte_buffer_release(struct byte_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct byte_buffer){0};
}

void byte_buffer_u32(struct byte_buffer *buffer, uint32_t value)
{
	value = htole32(value);
	byte_buffer_add(buffer, &value, sizeof(value));
}

void byte_buffer_u64(struct byte_buffer *buffer, uint64_t value)
{
	value = htole64(value);
	byte_buffer_add(buffer, &value, sizeof(value));
}

static void add_varint(struct byte_buffer *out, uint64_t value)
{
	uint8_t bytes[10];
	size_t length = 0;

	do {
		bytes[length] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		length++;
		value >>= 7;
	} while (value > 0);
	byte_buffer_add(out, bytes, length);
}

void protobuf_add_number(struct byte_buffer *out, int field, uint64_t value)
{
	add_varint(out, (uint64_t)field << 3 | WIRE_NUMBER);
	add_varint(out, value);
}

void protobuf_add_bytes(struct byte_buffer *out, int field, const void *bytes, size_t length)
{
	add_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
	add_varint(out, length);
	byte_buffer_add(out, bytes, length);
}

static bool read_varint(struct protobuf_reader *reader, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
		uint8_t byte = *reader->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool take(struct protobuf_reader *reader, uint64_t length, struct protobuf_field *out)
{
	if (length > (uint64_t)(reader->end - reader->at))
		return false;
	out->bytes = reader->at;
	out->length = (size_t)length;
	reader->at += length;
	return true;
}

bool protobuf_next(struct protobuf_reader *reader, struct protobuf_field *out, bool *broken)
{
	uint64_t tag, length;
	bool good = true;

	*out = (struct protobuf_field){0};
	if (*broken || reader->at == reader->end)
		return false;
	good = read_varint(reader, &tag) && tag >> 3 > 0 && tag >> 3 < 1 << 29;
	if (good) {
		out->number = (int)(tag >> 3);
		switch (tag & 7) {
		case WIRE_NUMBER:
			good = read_varint(reader, &out->value);
			break;
		case WIRE_BYTES:
			out->is_bytes = true;
			good = read_varint(reader, &length) && take(reader, length, out);
			break;
		case WIRE_64:
			good = take(reader, 8, out);
			break;
		case WIRE_32:
			good = take(reader, 4, out);
			break;
		default:
			good = false;
		}
	}
	*broken = !good;
	return good;
}
