/*
 * The case bundle: a folder with all data that a worker needs.
 *   case.json             schema, recipe, graph, file names, expected parameters and MACs
 *   weights.safetensors   parameters and states by name, F32
 *   input.safetensors     the batches, in the types and shapes of the graph's inputs and labels:
 *                         "input.K" and "label.K", or if the graph has several of a kind
 *                         "input.K.I", "label.K.I" (input I of batch K)
 * Every framework gets the same weights and batches, bit for bit. If no graph can express a user's
 * ONNX file, the file itself replaces graph and weights:
 *   case.json             schema, recipe, inputs and outputs of the model, file names
 *   model.onnx            the model file, unchanged
 *   input.safetensors     "input.K.I": input I of batch K, in the types and order of the model
 */
#ifndef PRONY_BUNDLE_BUNDLE_H
#define PRONY_BUNDLE_BUNDLE_H

#include "bundle/loader_data.h"
#include "bundle/recipe.h"
#include "bundle/safetensors.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/model_file.h"

#define BUNDLE_SCHEMA 2
#define BUNDLE_CASE_FILE "case.json"
#define BUNDLE_WEIGHTS_FILE "weights.safetensors"
#define BUNDLE_MODEL_FILE "model.onnx"
#define BUNDLE_INPUT_FILE "input.safetensors"
/* Tensors of batches are named by role, independent of their names in the graph. */
#define BUNDLE_INPUT_ROLE "input"
#define BUNDLE_LABEL_ROLE "label"
/* Files of a worker without shared memory: step records and requested readouts. */
#define BUNDLE_RECORDS_FILE "records.bin"
#define BUNDLE_READ_FILE "read.safetensors"
/* The file of a worker's profile. */
#define BUNDLE_PROFILE_FILE "profile.json"

struct bundle {
	struct arena arena;
	struct recipe recipe;
	struct graph graph;
	struct tensor_set weights;
	struct tensor_set inputs, labels; /* of batch 0, then of batch 1...: graph/batch.h */
	bool has_data;			  /* has samples for the framework's own loader */
	struct loader_data data;
	/* If set, a model file replaces graph, weights and labels; the inputs are those of the
	 * model. */
	bool is_model;
	struct model_file model;
	char *model_bytes;
	struct mapped_file weights_map, input_map;
};

/* Paths of tensor files that several bundles share. A missing file is written, read-only. The
 * bundle's own file is a hard link to it (a copy if the file system has no hard links). A path that
 * is NULL is not shared. */
struct bundle_shared {
	const char *weights, *input;
	json_t *data; /* samples of the framework's own loader; NULL: prony's batches */
};

/* Writes a bundle into an existing folder. `shared` may be NULL: then the tensor files are the
 * bundle's own. `cell` (may be NULL; borrowed) is stored under "cell" for human readers; workers
 * ignore it. */
enum prony_status bundle_write(const char *folder, const struct recipe *recipe,
			       const struct graph *graph, const struct tensor_set *weights,
			       const struct tensor_set *inputs, const struct tensor_set *labels,
			       const struct bundle_shared *shared, json_t *cell, struct error *err);

/* Writes the bundle of a user's model file run unchanged. `batches` has the tensors of
 * input.safetensors. The path `weights` of `shared` is that of the model file. */
enum prony_status bundle_write_model(const char *folder, const struct recipe *recipe,
				     const struct model_file *model,
				     const struct tensor_set *batches,
				     const struct bundle_shared *shared, json_t *cell,
				     struct error *err);

/* Reads and checks a bundle: shapes of weights and batches agree with the graph. Call
 * bundle_release also after an error. */
enum prony_status bundle_open(const char *folder, struct bundle *out, struct error *err);
void bundle_release(struct bundle *bundle);

#endif
