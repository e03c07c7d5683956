/*
 * Private to onnx/: constants of an ONNX file, and operators evaluated on them. Exporters write
 * shapes as chains of Shape, Gather, Concat and the like; none of that is left when the graph is
 * built for one batch.
 */
#ifndef PRONY_ONNX_FOLD_INTERNAL_H
#define PRONY_ONNX_FOLD_INTERNAL_H

#include <stdbool.h>

#include "base/arena.h"
#include "graph/tensor.h"
#include "onnx/onnx.pb-c.h"

/* More elements than any shape has; it bounds what Range, Expand and ConstantOfShape make. */
#define FOLD_MAX_INTS (INT64_C(1) << 20)

/* Numbers of a file. Whole numbers and booleans are int64, floating-point ones are float. */
struct constant {
	bool is_float;
	int32_t type; /* ONNX's element type */
	struct shape shape;
	int64_t count;	     /* elements */
	const int64_t *ints; /* one of the two */
	const float *floats;
	/* Index of the initializer that it is, or is an exact rearrangement of; -1: it was computed
	 * or comes from a Constant node. */
	int initializer;
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

/* Whether there is a rule for the operator at all. */
bool onnx_can_fold(const char *op);

/* PRONY_BAD_INPUT with the reason, without the node's name, when inputs or attributes are wrong. */
enum prony_status onnx_fold(struct fold *fold);

/* fold_layout.c: numbers are moved, not computed. */
enum prony_status fold_gather(struct fold *fold);
enum prony_status fold_concat(struct fold *fold);
enum prony_status fold_slice(struct fold *fold);
enum prony_status fold_split(struct fold *fold);
enum prony_status fold_transpose(struct fold *fold);
enum prony_status fold_expand(struct fold *fold);
enum prony_status fold_reshape(struct fold *fold);
enum prony_status fold_range(struct fold *fold);
enum prony_status fold_fill(struct fold *fold);

/* constant.c: what the others share. */

/* An output of that type and shape with zeroed numbers in it, which the caller writes through *ints
 * or *floats. */
enum prony_status fold_output(struct fold *fold, size_t index, int32_t type,
			      const struct shape *shape, int64_t **ints, float **floats);
/* A constant of whole numbers in `arena`, rank 1. */
struct constant constant_ints(struct arena *arena, const int64_t *values, int count);
bool constant_is_float_type(int32_t type);
/* Element i of constant `from` into element k of output `index` (same kind of numbers). */
void fold_copy(const struct constant *from, int64_t i, const struct constant *to, int64_t k);

/* import_shape.c: what an operator does to a shape, for constants and for activations. */

/* An axis that may count from the end, as one from the front: 0 to rank - 1. */
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

/* import_tensor.c: the numbers of a tensor, in `arena` or borrowed from the message. `name` is
 * for messages. A type that has no numbers (strings) gives count -1. */
enum prony_status onnx_tensor_read(const Onnx__TensorProto *tensor, const char *name,
				   const char *folder, struct arena *arena, struct constant *out,
				   struct error *err);

/* Bytes of a tensor that lies outside of the file; 0 for one that does not, or is wrong. */
int64_t onnx_tensor_outside_bytes(const Onnx__TensorProto *tensor);

/* Attributes by name. */
const Onnx__AttributeProto *onnx_attribute(const Onnx__NodeProto *node, const char *name);
int64_t onnx_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise);
double onnx_real(const Onnx__NodeProto *node, const char *name, double otherwise);
/* The text of a string attribute in `out`; `otherwise` when it is absent. */
void onnx_text(const Onnx__NodeProto *node, const char *name, const char *otherwise, char *out,
	       size_t out_bytes);

#endif
