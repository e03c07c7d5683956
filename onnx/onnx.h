/* ONNX files out of the IR (protobuf-c); opset 17, IR version 8. */
#ifndef PRONY_ONNX_ONNX_H
#define PRONY_ONNX_ONNX_H

#include <stddef.h>

#include "graph/graph.h"

/*
 * Serialises the forward graph to its logits (no loss, dropout left out: evaluation) with `weights`
 * (parameters and states by name) as initializers. *bytes: caller frees. PRONY_UNSUPPORTED names an
 * operator that ONNX lacks.
 */
enum prony_status onnx_export(const struct graph *graph, const struct tensor_set *weights,
			      void **bytes, size_t *length, struct error *err);

#endif
