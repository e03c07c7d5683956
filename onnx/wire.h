/* Private to onnx/: checks the bytes of a file before protobuf-c builds its messages. */
#ifndef PRONY_ONNX_WIRE_H
#define PRONY_ONNX_WIRE_H

#include <stddef.h>

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

#endif
