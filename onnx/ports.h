/* Inputs and outputs of an ONNX file that engines run unchanged, whatever its nodes are. */
#ifndef PRONY_ONNX_PORTS_H
#define PRONY_ONNX_PORTS_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "graph/model_file.h"

#define ONNX_DIM_OPEN (-1)

struct onnx_ports {
	/* Without data. Dimensions that the file leaves open are ONNX_DIM_OPEN. Shapes of outputs
	 * are not read. */
	struct tensor_set inputs, outputs;
	/* For each input, the dimensions that grow with the batch, as bits: an open one that is the
	 * batch, and those with the same name in the file. `inputs` has their size for one sample.
	 */
	unsigned *batched;
	/* The file's names of open dimensions, TENSOR_MAX_RANK for each input; NULL: no name. */
	const char **symbols;
	/* For each input, the dimension that is the batch. Usually the first. The second where a
	 * recurrent node with layout 0 reads the input; N in a given shape names another. */
	int *batch;
	int64_t *rows;	/* for each input, of the smallest table that it indexes; 0: it indexes none
			 */
	bool left_open; /* the file left a dimension open that is not the batch */
	bool marked;	/* a given shape has N */
	const char *precision;	 /* of its weights: fp32, fp16, bf16, fp64, int8, mixed */
	struct model_data *data; /* other files with weights */
	size_t data_count;
};

/* Reads them from a whole file in memory; names are in `arena`. `path` is that of the file, beside
 * which external data are looked for; NULL: it has none. A bool is U8. PRONY_BAD_INPUT if it is no
 * ONNX file. PRONY_UNSUPPORTED if an input or output is no tensor or has a type that prony lacks.
 */
enum prony_status onnx_ports_read(const void *bytes, size_t length, const char *path,
				  struct arena *arena, struct onnx_ports *out, struct error *err);

/* Sets open dimensions from texts "NAME=1x3x48x320", the shape of one sample; N instead of a number
 * is the batch. Dimensions of other inputs that have the same name in the file are set with it. A
 * text that names no input of this file is skipped (used[i] stays false). PRONY_USAGE if a text is
 * malformed or does not fit the file. */
enum prony_status onnx_ports_fix(struct onnx_ports *ports, const char *const *given, size_t count,
				 bool *used, struct error *err);

/* Appends options that would set all open dimensions, such as " --shape ids=1x128"; nothing if none
 * is open. */
void onnx_ports_hint(const struct onnx_ports *ports, struct strbuf *out);

/* The inputs for a batch, in `arena`. PRONY_UNSUPPORTED names an input with open dimensions and the
 * option that sets them, or the batch that the file fixes. */
enum prony_status onnx_ports_inputs(const struct onnx_ports *ports, int64_t batch,
				    struct arena *arena, struct tensor_set *out, struct error *err);

/* Writes the file with the inputs' open dimensions set; nothing else is changed. *bytes: the caller
 * frees it. */
enum prony_status onnx_ports_write(const void *file, size_t file_length,
				   const struct tensor_set *inputs, void **bytes, size_t *length,
				   struct error *err);

#endif
