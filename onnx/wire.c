/* Checks the bytes of an ONNX file before protobuf-c builds its messages, and parses them. */
#include "onnx/wire.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "onnx/onnx.pb-c.h"

/* The bytes that protobuf-c allocates for each field (40 while it reads a message, more for an
 * unknown field) and for each text. A file of 65536 nodes, the most that prony reads, takes about
 * 200 MiB with thirty fields in each. */
#define FIELD_BYTES 64
#define TEXT_BYTES 32
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define STRUCTURE_MAX_BYTES ((size_t)16 << 20)
#else
#define STRUCTURE_MAX_BYTES ((size_t)256 << 20)
#endif
#define VARINT_MAX_BYTES 10
/* The schema has six levels, and no message has more fields than `seen` has bits. */
#define DEPTH_MAX 16
#define SEEN_MAX 64

enum wire_type { WIRE_VARINT = 0, WIRE_64_BIT = 1, WIRE_LENGTH = 2, WIRE_32_BIT = 5 };

struct walk {
	const uint8_t *at, *end; /* of the message at hand */
	size_t structure_bytes;
	struct error *err;
};

static enum prony_status damaged(struct walk *walk)
{
	return error_set(walk->err, PRONY_BAD_INPUT,
			 "it is not an ONNX model, or it is truncated or damaged");
}

static bool take_varint(struct walk *walk, uint64_t *out)
{
	uint64_t value = 0;

	for (int i = 0; i < VARINT_MAX_BYTES && walk->at < walk->end; i++) {
		uint8_t byte = *walk->at++;

		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

static bool skip(struct walk *walk, uint64_t bytes)
{
	if (bytes > (uint64_t)(walk->end - walk->at))
		return false;
	walk->at += bytes;
	return true;
}

/* -1 if the schema lacks the field; it is skipped. */
static int find_field(const ProtobufCMessageDescriptor *message, uint64_t id)
{
	for (unsigned i = 0; i < message->n_fields; i++)
		if (message->fields[i].id == id)
			return (int)i;
	return -1;
}

static enum prony_status charge(struct walk *walk, size_t bytes)
{
	walk->structure_bytes += bytes;
	if (walk->structure_bytes <= STRUCTURE_MAX_BYTES)
		return PRONY_OK;
	return error_set(walk->err, PRONY_BAD_INPUT,
			 "reading its messages and fields needs more than %zu MiB, not counting "
			 "weights; it is too complex",
			 STRUCTURE_MAX_BYTES >> 20);
}

static enum prony_status walk_message(struct walk *walk, const ProtobufCMessageDescriptor *message,
				      int depth);

/* Skips the bytes of one field, from walk->at; walks through them if they are a message. */
static enum prony_status walk_bytes(struct walk *walk, const ProtobufCMessageDescriptor *parent,
				    int index, uint64_t bytes, uint64_t *seen, int depth)
{
	const ProtobufCFieldDescriptor *field = index < 0 ? NULL : &parent->fields[index];
	struct walk inner = *walk;
	enum prony_status status;

	if (!skip(walk, bytes))
		return damaged(walk);
	if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE)
		return charge(walk, TEXT_BYTES);
	if (field->label != PROTOBUF_C_LABEL_REPEATED && (*seen & UINT64_C(1) << index))
		return error_set(
			walk->err, PRONY_BAD_INPUT,
			"the field '%s' occurs more than once in a %s; export the model again",
			field->name, parent->short_name);
	*seen |= UINT64_C(1) << index;
	inner.end = inner.at + bytes;
	status = walk_message(&inner, field->descriptor, depth + 1);
	walk->structure_bytes = inner.structure_bytes;
	return status;
}

static enum prony_status walk_message(struct walk *walk, const ProtobufCMessageDescriptor *message,
				      int depth)
{
	enum prony_status status = charge(walk, message->sizeof_message);
	uint64_t seen = 0, tag, value;

	if (depth > DEPTH_MAX || message->n_fields > SEEN_MAX)
		return damaged(walk);
	while (status == PRONY_OK && walk->at < walk->end) {
		if (!take_varint(walk, &tag))
			return damaged(walk);
		status = charge(walk, FIELD_BYTES);
		if (status != PRONY_OK)
			return status;
		switch (tag & 7) {
		case WIRE_VARINT:
			if (!take_varint(walk, &value))
				return damaged(walk);
			break;
		case WIRE_64_BIT:
			if (!skip(walk, 8))
				return damaged(walk);
			break;
		case WIRE_32_BIT:
			if (!skip(walk, 4))
				return damaged(walk);
			break;
		case WIRE_LENGTH:
			if (!take_varint(walk, &value))
				return damaged(walk);
			status = walk_bytes(walk, message, find_field(message, tag >> 3), value,
					    &seen, depth);
			break;
		default:
			return damaged(walk);
		}
	}
	return status;
}

enum prony_status onnx_check_wire(const void *bytes, size_t length, struct error *err)
{
	static const char pointer[] = "version https://git-lfs.";
	struct walk walk = {.at = bytes, .err = err};

	if (length > sizeof(pointer) && memcmp(bytes, pointer, sizeof(pointer) - 1) == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "it is not the model but a pointer of Git LFS to it: get the file "
				 "with git lfs pull");
	walk.end = walk.at + length;
	return walk_message(&walk, &onnx__model_proto__descriptor, 0);
}

/* Raw data of at least this many bytes is detached. Its tag and length take three bytes or more;
 * the data can be moved over them to be aligned. */
#define RAW_MIN_BYTES 128

/* ModelProto.graph, GraphProto.initializer, TensorProto.raw_data. */
static const uint64_t raw_path[] = {7, 5, 9};
#define RAW_DEPTH 2

/* Writes a tag of one byte and a length of five, which protobuf allows for any length. */
static void put_header(uint8_t *to, uint64_t id, size_t length)
{
	*to++ = (uint8_t)(id << 3 | WIRE_LENGTH);
	for (int i = 0; i < 5; i++)
		to[i] = (uint8_t)((length >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
}
#define HEADER_BYTES 6

/* Copies a message that onnx_check_wire has accepted, without the raw data of its initializers, to
 * `to` if that is not NULL; returns the length of the copy. */
static size_t copy_thin(struct walk walk, int depth, uint8_t *to, struct raw_list *raws)
{
	size_t length = 0;

	while (walk.at < walk.end) {
		const uint8_t *start = walk.at;
		uint64_t tag = 0, value = 0;

		take_varint(&walk, &tag);
		if ((tag & 7) == WIRE_VARINT || (tag & 7) == WIRE_LENGTH)
			take_varint(&walk, &value);
		struct walk inner = {.at = walk.at, .end = walk.at + value};
		skip(&walk, (tag & 7) == WIRE_LENGTH   ? value
			    : (tag & 7) == WIRE_64_BIT ? 8
			    : (tag & 7) == WIRE_32_BIT ? 4
						       : 0);
		if ((tag & 7) == WIRE_LENGTH && tag >> 3 == raw_path[depth] && depth < RAW_DEPTH) {
			size_t body;

			raws->initializers += depth == 1;
			body = copy_thin(inner, depth + 1, to ? to + length + HEADER_BYTES : NULL,
					 raws);
			if (to)
				put_header(to + length, tag >> 3, body);
			length += HEADER_BYTES + body;
		} else if ((tag & 7) == WIRE_LENGTH && tag >> 3 == raw_path[depth] &&
			   value >= RAW_MIN_BYTES) {
			if (to)
				raws->items[raws->count] =
					(struct raw){raws->initializers - 1,
						     (uint8_t *)(uintptr_t)inner.at, (size_t)value};
			raws->count++;
		} else {
			if (to)
				memcpy(to + length, start, (size_t)(walk.at - start));
			length += (size_t)(walk.at - start);
		}
	}
	return length;
}

uint8_t *onnx_detach_raw(uint8_t *bytes, size_t length, struct arena *arena, struct raw_list *raws,
			 size_t *thin_length)
{
	struct walk walk = {.at = bytes, .end = bytes + length};
	uint8_t *thin;

	*raws = (struct raw_list){0};
	*thin_length = copy_thin(walk, 0, NULL, raws);
	if (raws->count == 0)
		return NULL;
	thin = memory_alloc(*thin_length);
	*raws = (struct raw_list){.items = arena_array(arena, raws->count, sizeof(*raws->items))};
	copy_thin(walk, 0, thin, raws);
	for (size_t i = 0; i < raws->count; i++) {
		struct raw *raw = &raws->items[i];
		uint8_t *from = raw->bytes;

		raw->bytes -= (uintptr_t)from % _Alignof(float);
		memmove(raw->bytes, from, raw->length);
	}
	return thin;
}
