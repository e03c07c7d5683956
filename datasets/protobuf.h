/* The few bytes of protobuf's encoding (https://protobuf.dev/programming-guides/encoding) that
 * Caffe's Datum and TensorFlow's Example need. Fields are read in place: protobuf-c would copy each
 * picture, and allocate for a hostile record many times its size. */
#ifndef PRONY_DATASETS_PROTOBUF_H
#define PRONY_DATASETS_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. */
struct byte_buffer {
	uint8_t *bytes; /* of malloc */
	size_t length, capacity;
};
void byte_buffer_add(struct byte_buffer *buffer, const void *bytes, size_t length);
void byte_buffer_release(struct byte_buffer *buffer);
void byte_buffer_u32(struct byte_buffer *buffer, uint32_t value); /* little-endian */
void byte_buffer_u64(struct byte_buffer *buffer, uint64_t value);

void protobuf_add_number(struct byte_buffer *out, int field, uint64_t value);
void protobuf_add_bytes(struct byte_buffer *out, int field, const void *bytes, size_t length);

/* A field that was read. */
struct protobuf_field {
	int number;
	bool is_bytes;
	uint64_t value;
	const uint8_t *bytes;
	size_t length;
};

/* A message being read. */
struct protobuf_reader {
	const uint8_t *at, *end;
};

/* The next field; false at the end, or, with *broken set, where the bytes are no message. */
bool protobuf_next(struct protobuf_reader *reader, struct protobuf_field *out, bool *broken);

#endif
