/* Private to onnx/: facts about files that are run unchanged. */
#ifndef PRONY_ONNX_PORTS_INTERNAL_H
#define PRONY_ONNX_PORTS_INTERNAL_H

#include "onnx/onnx.pb-c.h"

/* The word of a precision (docs/models.md, "Files as they are"). Graphs inside nodes are not read.
 */
const char *onnx_file_precision(const Onnx__GraphProto *graph);

#endif
