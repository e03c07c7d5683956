/* Appends operations to a TensorFlow graph. The emitter keeps the first error; later calls do
 * nothing. So the translation of an operator is a plain list of calls. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_EMIT_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_EMIT_H

#include "adapters/tensorflow/tf_api.h"
#include "graph/tensor.h"

struct tf_emit {
	const struct tf_api *api;
	struct tf_graph *graph;
	const char *scope;	    /* prefix of operation names: the current node */
	struct tf_operation *after; /* the next operations wait for it; NULL: for their inputs */
	int count;		    /* number of operations; makes names unique */
	int64_t macs;	 /* of the products so far, from TensorFlow's shapes; -1: unknown */
	int products[2]; /* products and their gradients by TensorFlow's type: fp32, bf16 */
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
	int count; /* number of ints */
};

/* Lists as arguments of tf_op, written in place. */
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

/* Returns the first error, or PRONY_OK. */
enum prony_status tf_emit_end(const struct tf_emit *e, struct error *err);

/* Appends an operation; returns its output 0. `attributes` NULL: none. */
struct tf_output tf_op(struct tf_emit *e, const char *type, const struct tf_output *inputs,
		       int count, const struct tf_attribute *attributes);
/* The same for operations with a list as first input (ConcatV2, AddN, Pack). */
struct tf_output tf_op_list(struct tf_emit *e, const char *type, const struct tf_output *list,
			    int list_count, const struct tf_output *inputs, int count,
			    const struct tf_attribute *attributes);
/* Appends an operation that only waits for others. */
struct tf_operation *tf_group(struct tf_emit *e, struct tf_operation *const *after, int count);
/* Returns another output of an operation. */
struct tf_output tf_nth(struct tf_output output, int index);

/* Append constants. A number has the type of `like`. */
struct tf_output tf_constant(struct tf_emit *e, enum tf_type type, const struct shape *shape,
			     const void *data);
struct tf_output tf_number(struct tf_emit *e, struct tf_output like, double value);
struct tf_output tf_numbers(struct tf_emit *e, struct tf_output like, const struct shape *shape,
			    const float *values);
struct tf_output tf_indices(struct tf_emit *e, const int64_t *values, int count);
struct tf_output tf_index(struct tf_emit *e, int64_t value); /* a scalar */
struct tf_output tf_dims(struct tf_emit *e, const struct shape *shape);

/* Common operations. tf_cast and tf_reshape return x if there is nothing to change. */
struct tf_output tf_cast(struct tf_emit *e, struct tf_output x, enum tf_type type);
struct tf_output tf_reshape(struct tf_emit *e, struct tf_output x, const struct shape *shape);
struct tf_output tf_transpose(struct tf_emit *e, struct tf_output x, const int64_t *axes, int rank);
struct tf_output tf_unary(struct tf_emit *e, const char *type, struct tf_output x);
struct tf_output tf_binary(struct tf_emit *e, const char *type, struct tf_output a,
			   struct tf_output b);
struct tf_output tf_scale(struct tf_emit *e, struct tf_output x, double factor);
struct tf_output tf_slice(struct tf_emit *e, struct tf_output x, const int64_t *begin,
			  const struct shape *size);

/* The type and the shape that TensorFlow infers; a rank of -1: unknown. */
enum tf_type tf_type_of(struct tf_emit *e, struct tf_output x);
struct shape tf_shape_of(struct tf_emit *e, struct tf_output x);

/* Creates a tensor with memory for the elements (not filled); NULL and an error on failure. */
struct tf_tensor *tf_tensor_new(const struct tf_api *api, enum tf_type type,
				const struct shape *shape, struct error *err);
size_t tf_type_bytes(enum tf_type type);

#endif
