/*
 * The case bundle: a folder with everything that a worker needs to do its work.
 *   case.json             schema, recipe, graph, file names, expected parameters and MACs
 *   weights.safetensors   parameters and states by name, F32
 *   input.safetensors     the batches, in the types and shapes of the graph's inputs and labels:
 *                         "input.K" and "label.K", or where the graph has several of a kind
 *                         "input.K.I", "label.K.I" (input I of batch K)
 * Same weights, same batches, bit for bit, for every framework. Where no graph expresses a user's
 * ONNX file, the file itself takes the place of graph and weights:
 *   case.json             schema, recipe, inputs and outputs of the model, file names
 *   model.onnx            the file as it is
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
/* Batches are named by what they are for, whatever the graph calls it. */
#define BUNDLE_INPUT_ROLE "input"
#define BUNDLE_LABEL_ROLE "label"
/* Where a worker without shared memory puts step records and what it was asked to read. */
#define BUNDLE_RECORDS_FILE "records.bin"
#define BUNDLE_READ_FILE "read.safetensors"
/* Where a worker puts what it was asked to profile. */
#define BUNDLE_PROFILE_FILE "profile.json"

struct bundle {
	struct arena arena;
	struct recipe recipe;
	struct graph graph;
	struct tensor_set weights;
	struct tensor_set inputs, labels; /* those of batch 0, of batch 1...: graph/batch.h */
	bool has_data;			  /* what the framework's own loader reads */
	struct loader_data data;
	/* Instead of graph, weights and labels; the inputs are those of the model. */
	bool is_model;
	struct model_file model;
	char *model_bytes;
	struct mapped_file weights_map, input_map;
};

/* Paths of tensor files that several bundles have in common. One that is not there yet is written,
 * read-only; the bundle's own is a hard link to it (a copy where the file system has none). What is
 * NULL is not shared. */
struct bundle_shared {
	const char *weights, *input;
	json_t *data; /* where the framework's own loader finds its samples; NULL: batches are ours
		       */
};

/*
 * Writes a bundle into an existing folder. `shared` may be NULL: then the tensor files are the
 * bundle's own. `cell` (may be NULL; borrowed) is stored under "cell" for people who open the file;
 * workers ignore it.
 */
enum prony_status bundle_write(const char *folder, const struct recipe *recipe,
			       const struct graph *graph, const struct tensor_set *weights,
			       const struct tensor_set *inputs, const struct tensor_set *labels,
			       const struct bundle_shared *shared, json_t *cell, struct error *err);

/* The same of a user's file as it is; `batches` has the tensors of input.safetensors, and of
 * `shared` weights is the file's path. */
enum prony_status bundle_write_model(const char *folder, const struct recipe *recipe,
				     const struct model_file *model,
				     const struct tensor_set *batches,
				     const struct bundle_shared *shared, json_t *cell,
				     struct error *err);

/* Reads and checks one: shapes of weights and batches agree with the graph. bundle_release it also
 * after an error. */
enum prony_status bundle_open(const char *folder, struct bundle *out, struct error *err);
void bundle_release(struct bundle *bundle);

#endif
