/* Where networks come from: the zoo, or an ONNX file. */
#ifndef PRONY_ZOO_SOURCE_H
#define PRONY_ZOO_SOURCE_H

#include "graph/input_fill.h"
#include "graph/model_file.h"
#include "zoo/zoo.h"

#define NETWORK_NAME_BYTES 64

struct onnx_model;
struct onnx_ports;

struct network_file {
	/* Its name, "resnet18.onnx@1a2b3c4d", has the start of the file's SHA-256: another content
	 * is another network. */
	struct network network;
	struct onnx_model *model; /* owns graph and weights; NULL if the file cannot be read */
	int64_t file_parameters;  /* as the file's author counts them */
	char *reason;		  /* why no graph can be built; NULL when one can */
	char *remark; /* one line on differences from the file; NULL if there are none */
	/* PyTorch exported it with convolutions and without normalisation: the exporter may have
	 * merged BatchNorm into the convolutions, and then training differs from the model's. */
	bool no_normalisation;
	bool softmax_left_out; /* its output is a softmax, and the graph's are the logits */
	/* If no graph can be built: the file itself, for engines that read such files. */
	struct arena arena;
	void *bytes; /* NULL: engines cannot be given the file either; `unreadable` tells why */
	size_t length;
	struct onnx_ports *ports; /* in `arena`; NULL without `bytes` */
	enum precision precision; /* of the file, where it is run unchanged */
	struct network_fill {
		const char *name; /* of an input */
		struct input_fill fill;
	} * fills; /* that the user gave, in `arena` */
	size_t fill_count;
	char *unreadable;
	const char *title; /* what its name has in place of the file's; or NULL */
	char name[NETWORK_NAME_BYTES], summary[160];
};

/* Whether a word is a path: it ends in .onnx or has a slash. */
bool network_is_file(const char *word);

/* PRONY_BAD_INPUT if the word ends like another program's model or source, such as model.pt; the
 * message says how to get an ONNX file. */
enum prony_status network_check_ending(const char *word, struct error *err);

/* Texts "NAME=..." of the user about inputs of files. */
struct network_texts {
	const char *const *texts;
	size_t count;
	bool *used; /* set to true for those that belong to a file */
};

struct network_given {
	struct network_texts shapes; /* for one sample, "NAME=1x3x48x320": open dimensions */
	struct network_texts fills;  /* "NAME=ones": what an input is filled with */
};

/* Reads and imports an ONNX file. *out: the caller frees it with network_file_free after the last
 * use of its network or weights. A valid but unsupported file is opened, too, with the reason.
 * PRONY_BAD_INPUT if the file is missing or broken, PRONY_USAGE if `given` (may be NULL) does not
 * fit. */
enum prony_status network_file_open(const char *path, const struct network_given *given,
				    struct network_file **out, struct error *err);
/* The same, named "TITLE@1a2b3c4d"; the title may have a colon. */
enum prony_status network_file_open_as(const char *path, const char *title,
				       const struct network_given *given, struct network_file **out,
				       struct error *err);
void network_file_free(struct network_file *file);

/* Whether the network has no graph, and its file is run unchanged. */
bool network_is_as_it_is(const struct network *network);

/* Inputs and outputs of such a file for a batch; names are in `arena`. PRONY_UNSUPPORTED if shapes
 * are missing, or the file fixes another batch. */
enum prony_status network_model_ports(const struct network *network, int64_t batch,
				      struct arena *arena, struct model_file *out,
				      struct error *err);
/* The name in the file of input i of a network that was imported; the graph may have another. */
const char *network_input_name(const struct network *network, int i);

/* The bytes of such a file with its inputs' shapes set; the caller frees model->bytes. */
enum prony_status network_model_bytes(const struct network *network, struct model_file *model,
				      struct error *err);

/* What an input of such a file is filled with; *rows: of the table that its integers index, or 0.
 */
struct input_fill network_model_fill(const struct network *network, size_t input, int64_t *rows);
/* Replaces the inputs of batches that were drawn for a graph, batch `first` and those after it, by
 * what the user gave, or by what inputs of their names hold. Only for files. */
enum prony_status network_fill_inputs(const struct network *network, const struct graph *graph,
				      int64_t first, uint64_t seed, const struct tensor_set *inputs,
				      struct error *err);

/* The graph for `batch` samples, with loss; forward only. Initialises *out. */
enum prony_status network_build(const struct network *network, int64_t batch, struct graph *out,
				struct error *err);

/* The weights of a graph that network_build made, F32, in graph order. The zoo's are filled from
 * the seed, in `arena`. A file's belong to the network_file; do not write to them. */
enum prony_status network_weights(const struct network *network, const struct graph *graph,
				  uint64_t seed, struct arena *arena, struct tensor_set *out,
				  struct error *err);

#endif
