/* A network as the user names it: a word of the zoo, or the path of an ONNX file. */
#ifndef PRONY_ZOO_SOURCE_H
#define PRONY_ZOO_SOURCE_H

#include "zoo/zoo.h"

#define NETWORK_NAME_BYTES 64

struct onnx_model;

struct network_file {
	/* What the rest of the program takes. Its name, "resnet18.onnx@1a2b3c4d", holds the start
	 * of the file's SHA-256: another content is another network. */
	struct network network;
	struct onnx_model *model; /* NULL when the file is of a kind that is not read */
	int64_t file_parameters;  /* what the file's author calls its parameters */
	char *reason;		  /* why no graph can be built; NULL when one can */
	char *remark; /* one line on what differs from the file; NULL when nothing does */
	char name[NETWORK_NAME_BYTES], summary[160];
};

/* Whether a word is a path: it ends in .onnx or holds a slash. */
bool network_is_file(const char *word);

/*
 * Reads an ONNX file and tries to build its graph. *out: the caller frees it with
 * network_file_free, after everything that holds its network. A model that is whole but unsupported
 * is opened, too, with the reason; PRONY_BAD_INPUT for a file that is not there or broken.
 */
enum prony_status network_file_open(const char *path, struct network_file **out, struct error *err);
void network_file_free(struct network_file *file);

/* The graph for `batch` samples, with loss; forward only. Initialises *out. */
enum prony_status network_build(const struct network *network, int64_t batch, struct graph *out,
				struct error *err);

/* The weights of a graph that network_build made, F32, in graph order, in `arena`: the file's own,
 * or filled from the seed. */
enum prony_status network_weights(const struct network *network, const struct graph *graph,
				  uint64_t seed, struct arena *arena, struct tensor_set *out,
				  struct error *err);

#endif
