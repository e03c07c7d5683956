/* Private to onnx/: the bytes of a file, looked through before protobuf-c builds anything of them.
 */
#ifndef PRONY_ONNX_WIRE_H
#define PRONY_ONNX_WIRE_H

#include <stddef.h>

#include "base/error.h"

/*
 * Walks the messages of a serialised ModelProto as the schema nests them
 * (https://protobuf.dev/programming-guides/encoding), in time that grows with the length alone and
 * without memory. PRONY_BAD_INPUT, without the file's name, where
 *  - a message that stands once in its parent stands there again: protobuf merges the two, and
 *    protobuf-c copies all of the first for each;
 *  - what protobuf-c would build, beside the numbers and texts themselves, takes over 256 MiB;
 *  - the bytes are no messages.
 */
enum prony_status onnx_check_wire(const void *bytes, size_t length, struct error *err);

#endif
