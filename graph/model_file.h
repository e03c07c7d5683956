/* A user's network as the original file, for engines that read such files: its inputs and outputs,
 * but nothing between them. Used if no graph can express the network. */
#ifndef PRONY_GRAPH_MODEL_FILE_H
#define PRONY_GRAPH_MODEL_FILE_H

#include "graph/tensor.h"

#define MODEL_FILE_PORTS_MAX 64

/* A file beside an ONNX file that weights of it lie in. */
struct model_data {
	const char *name; /* as the ONNX file has it, without folders */
	const char *path; /* where it really is */
};

struct model_file {
	const void *bytes; /* a whole ONNX file */
	size_t length;
	struct tensor_set inputs, outputs; /* without data; outputs without shapes, too */
	/* The files with its external data; of one read from a bundle, the folder that has them
	 * (NULL: there are none). */
	const struct model_data *data;
	size_t data_count;
	const char *data_folder;
};

#endif
