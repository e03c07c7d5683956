/*
 * Appending operations to a TensorFlow graph. The first error stays in the emitter, and after it
 * nothing happens, so that what an operator becomes reads as a list of operations.
 */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_EMIT_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_EMIT_H

#include "adapters/tensorflow/tf_api.h"
#include "graph/tensor.h"

struct tf_emit {
	const struct tf_api *api;
	struct tf_graph *graph;
	const char *scope; /* what operations are named after: the node that they are of */
	int count;	   /* of operations, which makes their names unique */
	int64_t macs;	   /* of the products so far, counted on TensorFlow's shapes; -1: unknown */
	int products[2];   /* and their gradients, by the type TensorFlow says: fp32, bf16 */
	struct error error;
};

enum tf_attribute_kind {
	TF_ATTRIBUTE_END,
	TF_ATTRIBUTE_INT,
	TF_ATTRIBUTE_FLOAT,
	TF_ATTRIBUTE_BOOL,
	TF_ATTRIBUTE_TYPE,
	TF_ATTRIBUTE_TEXT,
	TF_ATTRIBUTE_INTS,
	TF_ATTRIBUTE_SHAPE
};

#define TF_ATTRIBUTE_INTS_MAX 8

struct tf_attribute {
	const char *name;
	enum tf_attribute_kind kind;
	double number;
	const char *text;
	int64_t ints[TF_ATTRIBUTE_INTS_MAX];
	int count; /* of ints */
};

/* Arguments of tf_op: lists that are written where they are used. */
#define TF_IN(...)                                                                                 \
	(const struct tf_output[]){__VA_ARGS__},                                                   \
		(int)(sizeof((const struct tf_output[]){__VA_ARGS__}) / sizeof(struct tf_output))
#define TF_WITH(...)                                                                               \
	(const struct tf_attribute[])                                                              \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			.kind = TF_ATTRIBUTE_END                                                   \
		}                                                                                  \
	}
#define TF_INT(key, value)                                                                         \
	{                                                                                          \
		.name = (key), .kind = TF_ATTRIBUTE_INT, .ints = { value }                         \
	}
#define TF_FLOAT(key, value)                                                                       \
	{                                                                                          \
		.name = (key), .kind = TF_ATTRIBUTE_FLOAT, .number = (value)                       \
	}
#define TF_BOOL(key, value)                                                                        \
	{                                                                                          \
		.name = (key), .kind = TF_ATTRIBUTE_BOOL, .count = (value)                         \
	}
#define TF_TYPE(key, value)                                                                        \
	{                                                                                          \
		.name = (key), .kind = TF_ATTRIBUTE_TYPE, .count = (int)(value)                    \
	}
#define TF_TEXT(key, value)                                                                        \
	{                                                                                          \
		.name = (key), .kind = TF_ATTRIBUTE_TEXT, .text = (value)                          \
	}
struct tf_attribute tf_ints(const char *name, const int64_t *values, int count);
struct tf_attribute tf_shape(const char *name, const struct shape *shape);

/* The first error, or PRONY_OK. */
enum prony_status tf_emit_end(const struct tf_emit *e, struct error *err);

/* Appends an operation; returns its output 0. `attributes` NULL: none. */
struct tf_output tf_op(struct tf_emit *e, const char *type, const struct tf_output *inputs,
		       int count, const struct tf_attribute *attributes);
/* The same for operations whose first input is a list (ConcatV2, AddN, Pack). */
struct tf_output tf_op_list(struct tf_emit *e, const char *type, const struct tf_output *list,
			    int list_count, const struct tf_output *inputs, int count,
			    const struct tf_attribute *attributes);
/* One that does nothing but wait for others. */
struct tf_operation *tf_group(struct tf_emit *e, struct tf_operation *const *after, int count);
/* Another output of an operation. */
struct tf_output tf_nth(struct tf_output output, int index);

/* Constants. A number has the type of `like`. */
struct tf_output tf_constant(struct tf_emit *e, enum tf_type type, const struct shape *shape,
			     const void *data);
struct tf_output tf_number(struct tf_emit *e, struct tf_output like, double value);
struct tf_output tf_numbers(struct tf_emit *e, struct tf_output like, const struct shape *shape,
			    const float *values);
struct tf_output tf_indices(struct tf_emit *e, const int64_t *values, int count);
struct tf_output tf_index(struct tf_emit *e, int64_t value); /* a scalar */
struct tf_output tf_dims(struct tf_emit *e, const struct shape *shape);

/* Often needed ones. tf_cast and tf_reshape return x itself where nothing would change. */
struct tf_output tf_cast(struct tf_emit *e, struct tf_output x, enum tf_type type);
struct tf_output tf_reshape(struct tf_emit *e, struct tf_output x, const struct shape *shape);
struct tf_output tf_transpose(struct tf_emit *e, struct tf_output x, const int64_t *axes, int rank);
struct tf_output tf_unary(struct tf_emit *e, const char *type, struct tf_output x);
struct tf_output tf_binary(struct tf_emit *e, const char *type, struct tf_output a,
			   struct tf_output b);
struct tf_output tf_scale(struct tf_emit *e, struct tf_output x, double factor);
struct tf_output tf_slice(struct tf_emit *e, struct tf_output x, const int64_t *begin,
			  const struct shape *size);

/* The type and the shape that TensorFlow infers; a rank of -1: not known. */
enum tf_type tf_type_of(struct tf_emit *e, struct tf_output x);
struct shape tf_shape_of(struct tf_emit *e, struct tf_output x);

/* A tensor with room for the elements (not filled), or NULL and an error. */
struct tf_tensor *tf_tensor_new(const struct tf_api *api, enum tf_type type,
				const struct shape *shape, struct error *err);
size_t tf_type_bytes(enum tf_type type);

#endif
