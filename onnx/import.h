/*
 * A user's own model out of an ONNX file (opset 7 to 24): its graph for any batch, its weights.
 * The loss is attached to its output. Format: https://onnx.ai/onnx/repo-docs/IR.html; the
 * operators: https://onnx.ai/onnx/operators/
 */
#ifndef PRONY_ONNX_IMPORT_H
#define PRONY_ONNX_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"

struct onnx_model;

/* What can be said of a file without building its graph. */
struct onnx_facts {
	int64_t batch;	     /* leading dimension of the input; 0 = left open by the file */
	struct shape sample; /* shape of one sample of the input, without the batch */
	int64_t opset;
	char digest[65]; /* SHA-256 of the file and its external data, hexadecimal */
};

/* What became of the file in a graph, for the reader of a report. */
struct onnx_notes {
	/* Elements of the initializers that are trained, each counted once however many users it
	 * has: what the file's author calls its parameters. */
	int64_t file_parameters;
	int shared_initializers; /* of them, those with several users */
	bool softmax_left_out;	 /* the one that computes the output */
	int outputs_left_out;	 /* all but the first */
};

/*
 * Reads the file and the external data beside it and checks how its nodes hang together. *out: the
 * caller frees it with onnx_model_free. PRONY_BAD_INPUT names the file and the node of what is
 * broken; PRONY_UNSUPPORTED for what this reader does not do (another opset, several inputs).
 */
enum prony_status onnx_model_open(const char *path, struct onnx_model **out, struct error *err);

/*
 * The same from memory. `path` is for messages; external data is looked for in `folder` and refused
 * where that is NULL. The bytes may go when it returns.
 */
enum prony_status onnx_model_parse(const void *bytes, size_t length, const char *path,
				   const char *folder, struct onnx_model **out, struct error *err);
void onnx_model_free(struct onnx_model *model);

const struct onnx_facts *onnx_model_facts(const struct onnx_model *model);

/*
 * Translates the file into a graph with the loss behind its output, and weights; once, before what
 * follows. PRONY_UNSUPPORTED names everything that cannot be translated, with its nodes.
 *
 * Each use of an initializer is a parameter of its own. Constants that are not trained are states.
 * A Softmax or LogSoftmax that computes the output is left out: the loss contains it.
 */
enum prony_status onnx_model_import(struct onnx_model *model, struct error *err);

/*
 * The graph for `batch` samples, forward only; graph_release it. PRONY_UNSUPPORTED names the node
 * that allows no other batch than the file's.
 */
enum prony_status onnx_model_graph(const struct onnx_model *model, int64_t batch, struct graph *out,
				   struct error *err);

/* The weights of those graphs, F32, in graph order: every batch has the same. They belong to the
 * model, go with it and are not to be written. */
const struct tensor_set *onnx_model_weights(const struct onnx_model *model);
const struct onnx_notes *onnx_model_notes(const struct onnx_model *model);

#endif
