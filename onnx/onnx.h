/*
 * Writes ONNX files (protobuf-c; opset 17, IR version 8). Reading is declared in onnx/import.h.
 *
 * The files of this folder, in the order in which a model file passes through them:
 *   onnx.proto           messages of ONNX that are used here
 *   wire.[ch]            checks the bytes, and takes raw data out before protobuf-c parses them
 *   import.h             public: open, import, graph for a batch, weights
 *   import_file.c        parses the file and reads its initializers and its input
 *   upgrade.c            turns older opsets into the form of opset 18
 *   import_names.c       resolves names: which node computes what
 *   import_tensor.c      reads the numbers of a tensor, also from other files
 *   import.c             the pass over the nodes; the table of operators
 *   import_layers.c      translates layers with weights, and functions of each element
 *   import_layout.c      translates reshapes, transposes, slices, means
 *   import_append.c      helpers of these two
 *   import_refusals.c    collects what cannot be translated
 *   import_internal.h    private declarations of the files above
 *   fold.c               evaluates operators on constants
 *   fold_layout.c        evaluates operators that move numbers of constants
 *   import_shape.c       shapes of Reshape, Squeeze, Slice and Split, for constants and others
 *   constant.c           makes constants
 *   attributes.c         finds attributes of a node
 *   fold_internal.h      private declarations of these five
 *   export.c, onnx.h     writes a graph as an ONNX file
 *   export_nodes.c       adds to its messages
 *   export_attention.c   attention as one node
 *   export_caches.c      key-value caches as its inputs and outputs
 *   ports.[ch]           inputs and outputs of a file that is run unchanged
 * Where the batch lies in a graph, and how it is changed: graph/rebatch.h.
 */
#ifndef PRONY_ONNX_ONNX_H
#define PRONY_ONNX_ONNX_H

#include <stddef.h>

#include "graph/graph.h"

/* How a file has the states that TensorScatter writes. */
enum onnx_caches {
	ONNX_CACHES_CONSTANT, /* as initializers: each run begins with them */
	/* Behind the graph's inputs an input for each cache, and behind the logits an output for
	 * each, in the order of their nodes; both may lie in the same memory. */
	ONNX_CACHES_IN_PLACE,
	/* The same inputs, but for caches that nothing reads; as outputs the new rows, which the
	 * caller writes into the caches. The operator itself is not used. */
	ONNX_CACHES_READ
};

struct onnx_form {
	enum onnx_caches caches;
	bool fuse; /* attention (graph/attention.h) as one node, Attention of opset 23 */
	int attentions, fused; /* set: found, and written so */
	/* A file in memory, by its name beside the model's. If the model needs more than `most`
	 * bytes (0: what protobuf can hold), weights that lie in it become external data. */
	struct {
		const char *name, *bytes;
		size_t length;
	} data_file;
	size_t most;
	bool external; /* set: the model needs the file */
};

/* Serialises the forward graph up to its logits, without loss and dropout, for evaluation.
 * `weights` (parameters and states by name) become initializers. *bytes: caller frees.
 * PRONY_UNSUPPORTED names an operator that ONNX lacks, or a cache that cannot be only read. */
enum prony_status onnx_export_form(const struct graph *graph, const struct tensor_set *weights,
				   struct onnx_form *form, void **bytes, size_t *length,
				   struct error *err);
/* With ONNX_CACHES_CONSTANT and separate operators. */
enum prony_status onnx_export(const struct graph *graph, const struct tensor_set *weights,
			      void **bytes, size_t *length, struct error *err);
/* The value that is the output for a TensorScatter's cache. */
int onnx_cache_output(const struct node *scatter, enum onnx_caches caches);
/* Why the cache of a TensorScatter cannot be only read; NULL if it can. */
const char *onnx_cache_refusal(const struct graph *graph, const struct node *scatter);

#endif
