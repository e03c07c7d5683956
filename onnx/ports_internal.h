/* Private to onnx/: facts about the inputs of a file. */
#ifndef PRONY_ONNX_PORTS_INTERNAL_H
#define PRONY_ONNX_PORTS_INTERNAL_H

#include "onnx/onnx.pb-c.h"
#include "onnx/ports.h"

/* The word of a precision (docs/models.md, "Files as they are"). Graphs inside nodes are not read.
 */
const char *onnx_file_precision(const Onnx__GraphProto *graph);

/* onnx_ports_read of a parsed file. */
enum prony_status onnx_ports_of(const Onnx__GraphProto *graph, struct arena *arena,
				struct onnx_ports *out, struct error *err);

/* Writes the dimensions that `ports` has set to the file's inputs; the batch stays open. */
void onnx_ports_apply(const struct onnx_ports *ports, const Onnx__GraphProto *graph);

/* "int64"; the types after bfloat16 (float8, int4 and others) have no names here. */
const char *onnx_type_name(int32_t type);

/* The rows of the smallest table that the integers of an input index; 0 if there is none. */
int64_t onnx_table_rows(const Onnx__GraphProto *graph, const char *input);
/* Whether an input of that name holds 0 and 1. */
bool onnx_named_mask(const char *name);

#endif
