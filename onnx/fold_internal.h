/* Private to onnx/: constants of an ONNX file, and operators evaluated on them. Exporters compute
 * shapes with chains of Shape, Gather, Concat and the like. The importer evaluates these chains, so
 * that the graph has none of them. */
#ifndef PRONY_ONNX_FOLD_INTERNAL_H
#define PRONY_ONNX_FOLD_INTERNAL_H

#include <stdbool.h>

#include "base/arena.h"
#include "graph/model_file.h"
#include "graph/tensor.h"
#include "onnx/onnx.pb-c.h"

/* The most integers that an operator may create: masks of 13 samples by 1024 x 1024 tokens. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define FOLD_MAX_INTS (INT64_C(1) << 20)
#else
#define FOLD_MAX_INTS (INT64_C(1) << 24)
#endif

/* An array of numbers. Whole numbers and booleans are held as int64, real numbers as float. */
struct constant {
	bool is_float;
	int32_t type; /* ONNX's element type */
	struct shape shape;
	int64_t count;	     /* elements */
	const int64_t *ints; /* one of the two */
	const float *floats;
	/* Index of the initializer that it is, or was rearranged from; -1 if it was computed or
	 * comes from a Constant node. */
	int initializer;
	bool transposed; /* it is that initializer, a matrix, with its axes swapped */
};

/* One operator on constants. */
struct fold {
	const Onnx__NodeProto *node;
	const struct constant *const *inputs; /* NULL = left out */
	size_t input_count, output_count;
	struct constant *outputs; /* output_count of them, zeroed */
	struct arena *arena;	  /* of the outputs; its limit bounds them */
	struct error *err;
};

/* Whether the operator can be evaluated at all. */
bool onnx_can_fold(const char *op);

/* PRONY_BAD_INPUT if inputs or attributes are wrong; the message has the reason, but not the node's
 * name. */
enum prony_status onnx_fold(struct fold *fold);

/* fold_layout.c: operators that move numbers without computing any. */
enum prony_status fold_gather(struct fold *fold);
enum prony_status fold_concat(struct fold *fold);
enum prony_status fold_slice(struct fold *fold);
enum prony_status fold_split(struct fold *fold);
enum prony_status fold_transpose(struct fold *fold);
enum prony_status fold_expand(struct fold *fold);
enum prony_status fold_reshape(struct fold *fold);
enum prony_status fold_range(struct fold *fold);
enum prony_status fold_fill(struct fold *fold);

/* fold_index.c: operators that read at computed places. */
enum prony_status fold_gather_elements(struct fold *fold);
enum prony_status fold_gather_nd(struct fold *fold);
enum prony_status fold_cumulate(struct fold *fold);
enum prony_status fold_tile(struct fold *fold);
enum prony_status fold_triangle(struct fold *fold);

/* constant.c: shared helpers. */

/* Makes an output of that type and shape, filled with zeros. The caller writes its numbers through
 * *ints or *floats. */
enum prony_status fold_output(struct fold *fold, size_t index, int32_t type,
			      const struct shape *shape, int64_t **ints, float **floats);
/* A list of whole numbers, in `arena`. */
struct constant constant_ints(struct arena *arena, const int64_t *values, int count);
bool constant_is_float_type(int32_t type);
/* Copies element i of `from` to element k of `to`, which fold_output made; both hold the same kind
 * of numbers. */
void fold_copy(const struct constant *from, int64_t i, const struct constant *to, int64_t k);

/* import_shape.c: the shape that an operator gives, for constants and for activations. */

/* Turns an axis that may count from the end into one from the front: 0 to rank - 1. */
enum prony_status onnx_axis(int64_t axis, int rank, int *out, struct error *err);

/* Reshape, Flatten, Squeeze and Unsqueeze: the shape of the output. `in` is the shape of input 0.
 */
enum prony_status onnx_reshaped(const Onnx__NodeProto *node, const struct shape *in,
				const struct constant *argument, struct shape *out,
				struct error *err);

/* One axis of a Slice or Split: elements start, start + step ... before end. */
struct onnx_range {
	int axis;
	int64_t start, step, count;
};

/* The ranges of a Slice, from constant inputs 1 to 4 (starts, ends, axes, steps). */
enum prony_status onnx_slice_ranges(const struct shape *in, const struct constant *const *inputs,
				    size_t input_count, struct onnx_range *out, int *count,
				    struct error *err);
/* The ranges of a Split, one for each output. */
enum prony_status onnx_split_ranges(const Onnx__NodeProto *node, const struct shape *in,
				    const struct constant *sizes, struct onnx_range *out,
				    size_t output_count, struct error *err);

/* Where external data of a model may be. */
struct onnx_folders {
	const char *beside; /* of the model's path */
	const char
		*real; /* of the file that the path leads to, as in a Hugging Face cache; or NULL */
};

/* The folders of a model's path, in `arena`. */
struct onnx_folders onnx_folders_of(const char *path, struct arena *arena);

/* Finds the file that a tensor with external data lies in; *out is in `arena`. PRONY_UNSUPPORTED if
 * it lies in a folder below the model's. */
enum prony_status onnx_tensor_data_file(const Onnx__TensorProto *tensor, const char *name,
					const struct onnx_folders *folders, struct arena *arena,
					struct model_data *out, struct error *err);

/* import_tensor.c: reads the numbers of a tensor. They are borrowed from the message if they can be
 * used without conversion, otherwise they are in `arena`. `name` is for messages. A type without
 * numbers (strings) gives count -1. */
enum prony_status onnx_tensor_read(const Onnx__TensorProto *tensor, const char *name,
				   const struct onnx_folders *folders, struct arena *arena,
				   struct constant *out, struct error *err);

/* Bytes of a tensor that is stored in another file; 0 if it is not, or if its shape is wrong. */
int64_t onnx_tensor_outside_bytes(const Onnx__TensorProto *tensor);

/* Attributes by name. */
const Onnx__AttributeProto *onnx_attribute(const Onnx__NodeProto *node, const char *name);
int64_t onnx_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise);
double onnx_real(const Onnx__NodeProto *node, const char *name, double otherwise);
/* Writes a string attribute to `out`, or `otherwise` if it is absent. */
void onnx_text(const Onnx__NodeProto *node, const char *name, const char *otherwise, char *out,
	       size_t out_bytes);

#endif
