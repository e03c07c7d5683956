/* A network as the user names it: a word of the zoo, or the path of an ONNX file. */
#ifndef PRONY_ZOO_SOURCE_H
#define PRONY_ZOO_SOURCE_H

#include "graph/model_file.h"
#include "zoo/zoo.h"

#define NETWORK_NAME_BYTES 64

struct onnx_model;
struct onnx_ports;

struct network_file {
	/* What the rest of the program takes. Its name, "resnet18.onnx@1a2b3c4d", holds the start
	 * of the file's SHA-256: another content is another network. */
	struct network network;
	struct onnx_model *model; /* NULL when the file is of a kind that is not read */
	int64_t file_parameters;  /* what the file's author calls its parameters */
	char *reason;		  /* why no graph can be built; NULL when one can */
	char *remark; /* one line on what differs from the file; NULL when nothing does */
	/* Where no graph can be built: the file as it is, for engines that read such files. */
	struct arena arena;
	void *bytes; /* NULL: not even that, see `unreadable` */
	size_t length;
	struct onnx_ports *ports; /* in `arena`; NULL without `bytes` */
	char *unreadable;
	char name[NETWORK_NAME_BYTES], summary[160];
};

/* Whether a word is a path: it ends in .onnx or holds a slash. */
bool network_is_file(const char *word);

/* Shapes of inputs that files leave open, "NAME=1x3x48x320", for one sample. */
struct network_shapes {
	const char *const *texts;
	size_t count;
	bool *used; /* set to true for those that belong to a file */
};

/*
 * Reads an ONNX file and tries to build its graph. *out: the caller frees it with
 * network_file_free, after everything that holds its network. A model that is whole but unsupported
 * is opened, too, with the reason; PRONY_BAD_INPUT for a file that is not there or broken,
 * PRONY_USAGE for shapes that do not fit it. `shapes` may be NULL.
 */
enum prony_status network_file_open(const char *path, const struct network_shapes *shapes,
				    struct network_file **out, struct error *err);
void network_file_free(struct network_file *file);

/* Whether no graph expresses the network, and engines that read its file can be given that. */
bool network_is_as_it_is(const struct network *network);

/* Inputs and outputs of such a file for a batch; names are in `arena`. PRONY_UNSUPPORTED for shapes
 * that nobody said, and another batch than the file's. */
enum prony_status network_model_ports(const struct network *network, int64_t batch,
				      struct arena *arena, struct model_file *out,
				      struct error *err);
/* The bytes of such a file with its inputs' shapes; the caller frees model->bytes. */
enum prony_status network_model_bytes(const struct network *network, struct model_file *model,
				      struct error *err);

/* The graph for `batch` samples, with loss; forward only. Initialises *out. */
enum prony_status network_build(const struct network *network, int64_t batch, struct graph *out,
				struct error *err);

/* The weights of a graph that network_build made, F32, in graph order: the file's own, which belong
 * to the file and are not to be written, or filled from the seed, in `arena`. */
enum prony_status network_weights(const struct network *network, const struct graph *graph,
				  uint64_t seed, struct arena *arena, struct tensor_set *out,
				  struct error *err);

#endif
