/* Private to onnx/: checks the bytes of a file before protobuf-c builds its messages. */
#ifndef PRONY_ONNX_WIRE_H
#define PRONY_ONNX_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Walks through the messages of a serialised ModelProto
 * (https://protobuf.dev/programming-guides/encoding), in linear time and without memory.
 * PRONY_BAD_INPUT (without the file's name) if
 *  - a message that may occur once in its parent occurs again: protobuf merges the two, and
 *    protobuf-c copies all of the first each time;
 *  - protobuf-c would allocate over 256 MiB, beside numbers and texts;
 *  - the bytes are no messages.
 */
enum prony_status onnx_check_wire(const void *bytes, size_t length, struct error *err);

/* The raw data of an initializer, in the bytes of the file. */
struct raw {
	size_t initializer; /* its index in the graph */
	uint8_t *bytes;	    /* aligned for float */
	size_t length;
};

struct raw_list {
	struct raw *items;
	size_t count;
	size_t initializers; /* for the walk: how many were passed */
};

/* Copies bytes that onnx_check_wire has accepted, without the larger raw data of initializers, so
 * that protobuf-c does not copy these. The caller frees the copy, and keeps `bytes` as long as the
 * list, which is in `arena`. Raw data is moved within `bytes` by up to three bytes to be aligned,
 * so `bytes` is no valid file afterwards. NULL if there is no such data. */
uint8_t *onnx_detach_raw(uint8_t *bytes, size_t length, struct arena *arena, struct raw_list *raws,
			 size_t *thin_length);

#endif
