/* Reads an ONNX file (opset 7 to 24): its graph for any batch, and its weights. A loss is attached
 * to its output. Format: https://onnx.ai/onnx/repo-docs/IR.html; the operators:
 * https://onnx.ai/onnx/operators/ */
#ifndef PRONY_ONNX_IMPORT_H
#define PRONY_ONNX_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"
#include "graph/input_fill.h"

struct onnx_model;

#define ONNX_MAX_INPUTS 4

struct onnx_input {
	const char *name;      /* in the graph */
	const char *file_name; /* in the file */
	enum dtype dtype;    /* of the graph: F32 for all real numbers; I64 for booleans, 0 or 1 */
	struct shape sample; /* without the batch */
	int batch_axis; /* the dimension that is the batch in the file; in the graph, the first */
	int32_t type;	/* ONNX's element type in the file */
	/* An integer input takes 0 to rows - 1: the rows of the smallest table that it indexes. 0:
	 * it indexes none. */
	int64_t rows;
	struct input_fill fill; /* by the user, or by its name */
};

/* What the user said of the inputs: shapes, "NAME=1x16", for dimensions that a file leaves open,
 * and what they are filled with, "NAME=0..99", which limits their integers. */
struct onnx_given {
	const char *const *shapes;
	size_t shape_count;
	const char *const *fills;
	size_t fill_count;
};

/* What is known of a file before it is imported. */
struct onnx_facts {
	int64_t batch; /* leading dimension of all inputs; 0 = left open by the file */
	struct onnx_input inputs[ONNX_MAX_INPUTS]; /* those that the output depends on */
	int input_count;
	int64_t opset;
	char digest[65]; /* SHA-256 of the file and its external data, hexadecimal */
};

/* Differences between the file and the graph, for reports. */
struct onnx_notes {
	/* Number of trained parameters as the file's author counts them: an initializer with
	 * several users counts once. */
	int64_t file_parameters;
	int shared_initializers; /* those that became several parameters */
	bool softmax_left_out;	 /* a Softmax computes the output and was left out */
	int outputs_left_out;	 /* outputs that are not computed: all but the first */
	bool by_pytorch;	 /* PyTorch exported the file */
	struct shape output;	 /* of one sample, as in the file */
	const char *fixed;	 /* names of inputs that became constants, or NULL */
	const char *precision;	 /* of the file: fp32, fp16, bf16, fp64 or mixed */
};

/* Reads the file and the external data beside it, and checks that its nodes are connected. *out:
 * the caller frees it with onnx_model_free. PRONY_BAD_INPUT if the file is broken; the message
 * names the file and the node. PRONY_UNSUPPORTED for an opset that is not read, or inputs that a
 * graph cannot have; then the message also names the operators that are not supported. `given` may
 * be NULL; PRONY_USAGE if it does not fit the file. */
enum prony_status onnx_model_open(const char *path, const struct onnx_given *given,
				  struct onnx_model **out, struct error *err);

/* The same from memory; the bytes may be freed when it returns. `path` is for messages. External
 * data is read from `folder`, and refused if that is NULL. */
enum prony_status onnx_model_parse(const void *bytes, size_t length, const char *path,
				   const char *folder, struct onnx_model **out, struct error *err);
void onnx_model_free(struct onnx_model *model);

const struct onnx_facts *onnx_model_facts(const struct onnx_model *model);

/*
 * Translates the file into a graph with a loss behind its output, and weights. Call it once, before
 * the functions below. PRONY_UNSUPPORTED names all nodes that cannot be translated.
 *
 * An initializer with several users is one parameter. If all its numbers are equal, each use is a
 * parameter of its own, because exporters merge such tensors. Constants that are not trained are
 * states.
 * If the file computes with an integer input in a way that a graph cannot express, and the input is
 * filled with ones, zeros or positions, the input becomes that constant; it is no longer among the
 * facts.
 * A Softmax or LogSoftmax that computes the output is left out, because the loss contains it.
 */
enum prony_status onnx_model_import(struct onnx_model *model, struct error *err);

/* Makes the forward graph for `batch` samples; the caller frees it with graph_release.
 * PRONY_UNSUPPORTED names the node that works only with the file's own batch. */
enum prony_status onnx_model_graph(const struct onnx_model *model, int64_t batch, struct graph *out,
				   struct error *err);

/* The weights of these graphs, F32, in graph order; they are the same for every batch. The model
 * owns them; do not write to them. */
const struct tensor_set *onnx_model_weights(const struct onnx_model *model);
const struct onnx_notes *onnx_model_notes(const struct onnx_model *model);

#endif
