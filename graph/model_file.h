/* A user's network as the original file, for engines that read such files: its inputs and outputs,
 * but nothing between them. Used if no graph can express the network. */
#ifndef PRONY_GRAPH_MODEL_FILE_H
#define PRONY_GRAPH_MODEL_FILE_H

#include "graph/tensor.h"

#define MODEL_FILE_PORTS_MAX 64

struct model_file {
	const void *bytes; /* a whole ONNX file without external data */
	size_t length;
	struct tensor_set inputs, outputs; /* without data; outputs without shapes, too */
};

#endif
