/* Code shared by engines that take a network as an ONNX file and return logits. */
#ifndef PRONY_ADAPTERS_ONNX_ENGINE_H
#define PRONY_ADAPTERS_ONNX_ENGINE_H

#include "adapters/adapter.h"
#include "base/strbuf.h"

/* Inputs and logits of a network; the graph is borrowed. */
struct onnx_ends {
	const struct graph *graph;
	const char *output_name;
	struct shape logits_shape;
	size_t logits_bytes;
};

/* Adds the reasons why a graph's forward pass cannot be written as ONNX in evaluation mode. */
void onnx_engine_refuse(const struct graph *graph, struct strbuf *reasons);

/* PRONY_BAD_INPUT when the logits' size overflows. */
enum prony_status onnx_engine_ends(const struct graph *graph, struct onnx_ends *out,
				   struct error *err);

/* Zeroed memory for the logits of one slot, aligned to 64 bytes; the caller frees it. */
enum prony_status onnx_engine_logits(const struct onnx_ends *ends, float **out, struct error *err);

/* PRONY_INTERNAL when the slot does not exist, PRONY_BAD_INPUT when the batch does not fit. */
enum prony_status onnx_engine_check_feed(const struct onnx_ends *ends, int slot, int slots,
					 struct batch batch, struct error *err);

/* adapter.read for an engine that only returns logits; `engine` is its name in messages. */
enum prony_status onnx_engine_read(const struct onnx_ends *ends, const char *engine,
				   const float *logits, enum readout what, struct tensor_set *out,
				   struct error *err);

#endif
