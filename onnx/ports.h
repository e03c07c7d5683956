/* What an ONNX file takes and gives, whatever its nodes are: for engines that are given the file.
 */
#ifndef PRONY_ONNX_PORTS_H
#define PRONY_ONNX_PORTS_H

#include <stdbool.h>

#include "graph/model_file.h"

#define ONNX_DIM_OPEN (-1)

struct onnx_ports {
	/* No data. Dimensions that the file leaves open are ONNX_DIM_OPEN; those of outputs are not
	 * read. */
	struct tensor_set inputs, outputs;
	/* Of each input the dimensions that grow with the batch (bits): an open first one, and
	 * those that have its name in the file. Theirs is the size for one sample. */
	unsigned *batched;
};

/*
 * Reads them from a whole file in memory; names are in `arena`. An input of the type bool is U8.
 * PRONY_BAD_INPUT for what is no ONNX file, PRONY_UNSUPPORTED for inputs and outputs that are no
 * tensors of a type that prony has, and for weights in other files.
 */
enum prony_status onnx_ports_read(const void *bytes, size_t length, struct arena *arena,
				  struct onnx_ports *out, struct error *err);

/*
 * Fills open dimensions from texts "NAME=1x3x48x320", which say them for one sample; a text whose
 * input is not here is left (*used[i] stays false). PRONY_USAGE for one that is no such text, or
 * does not fit the file.
 */
enum prony_status onnx_ports_fix(struct onnx_ports *ports, const char *const *given, size_t count,
				 bool *used, struct error *err);

/*
 * The inputs for a batch, in `arena`. PRONY_UNSUPPORTED names the input whose dimensions are still
 * open and what to say, or the batch that the file fixes.
 */
enum prony_status onnx_ports_inputs(const struct onnx_ports *ports, int64_t batch,
				    struct arena *arena, struct tensor_set *out, struct error *err);

/* The file with the inputs' shapes in place of what it leaves open; nothing else is touched.
 * *bytes: the caller frees it. */
enum prony_status onnx_ports_write(const void *file, size_t file_length,
				   const struct tensor_set *inputs, void **bytes, size_t *length,
				   struct error *err);

#endif
