/*
 * A user's network as the file it came in, for engines that read such files: what it takes and
 * gives, and nothing of what is in between. Stands where no graph can express it.
 */
#ifndef PRONY_GRAPH_MODEL_FILE_H
#define PRONY_GRAPH_MODEL_FILE_H

#include "graph/tensor.h"

#define MODEL_FILE_PORTS_MAX 64

struct model_file {
	const void *bytes; /* an ONNX file, whole: no external data */
	size_t length;
	struct tensor_set inputs, outputs; /* no data; of outputs neither the shapes */
};

#endif
