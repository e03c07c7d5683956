/* Code shared by engines that take a network as an ONNX file and return logits. */
#ifndef PRONY_ADAPTERS_ONNX_ENGINE_H
#define PRONY_ADAPTERS_ONNX_ENGINE_H

#include "adapters/adapter.h"
#include "base/strbuf.h"
#include "onnx/onnx.h"

/* A key-value cache, which lasts from step to step. */
struct onnx_cache {
	const struct node *scatter;
	const char *output_name;
	const struct tensor *state; /* its rows, among the states */
	struct tensor rows;	    /* what a step adds to it, for ONNX_CACHES_READ */
};

/* Inputs, logits and caches of a network; the graph is borrowed. */
struct onnx_ends {
	const struct graph *graph;
	const char *output_name;
	struct shape logits_shape;
	size_t logits_bytes;
	struct arena arena; /* the caller releases it */
	struct onnx_cache *caches;
	int cache_count;
	struct tensor_set states; /* of a graph with caches: all, so that they can be read */
};

/* Adds the reasons why a graph's forward pass cannot be written as ONNX in evaluation mode. */
void onnx_engine_refuse(const struct target *target, const struct graph *graph,
			struct strbuf *reasons);

/* onnx_export_form, with weights as external data in the session's file where the model exceeds
 * what a message can hold. *folder: of that file, which the caller frees; NULL if all are in the
 * model. */
enum prony_status onnx_engine_export(const struct session *s, const struct graph *graph,
				     const struct tensor_set *weights, struct onnx_form *form,
				     void **bytes, size_t *length, char **folder,
				     struct error *err);

/* Takes the values of caches from the weights. PRONY_BAD_INPUT when the logits' size overflows or a
 * cache is missing. */
enum prony_status onnx_engine_ends(const struct graph *graph, const struct tensor_set *weights,
				   enum onnx_caches caches, struct onnx_ends *out,
				   struct error *err);

/* With ONNX_CACHES_READ, after a step: writes its rows into the caches. `fed` has the data of each
 * input. */
void onnx_engine_write_rows(const struct onnx_ends *ends, const void *const *fed);

/* Zeroed memory for the logits of one slot, aligned to 64 bytes; the caller frees it. */
enum prony_status onnx_engine_logits(const struct onnx_ends *ends, float **out, struct error *err);

/* PRONY_INTERNAL when the slot does not exist, PRONY_BAD_INPUT when the batch does not fit. */
enum prony_status onnx_engine_check_feed(const struct onnx_ends *ends, int slot, int slots,
					 struct batch batch, struct error *err);

/* adapter.read for an engine that returns logits, and states of a graph with caches; `engine` is
 * its name in messages. */
enum prony_status onnx_engine_read(const struct onnx_ends *ends, const char *engine,
				   const float *logits, enum readout what, struct tensor_set *out,
				   struct error *err);

#endif
