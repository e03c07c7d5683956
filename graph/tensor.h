/* Named arrays in host memory: weights, batches, and values that a worker reads back. */
#ifndef PRONY_GRAPH_TENSOR_H
#define PRONY_GRAPH_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define TENSOR_MAX_RANK 8

/* Names in JSON and safetensors: F32, F64, BF16, F16, I32, I64, U8, BOOL (one byte, 0 or 1). */
enum dtype {
	DTYPE_F32,
	DTYPE_F64,
	DTYPE_BF16,
	DTYPE_F16,
	DTYPE_I32,
	DTYPE_I64,
	DTYPE_U8,
	DTYPE_BOOL,
	DTYPE_COUNT
};

struct shape {
	int rank; /* 0 = a scalar */
	int64_t dims[TENSOR_MAX_RANK];
};

struct tensor {
	const char *name;
	enum dtype dtype;
	struct shape shape;
	void *data; /* contiguous, row-major, little-endian; at least 64-byte aligned if prony
		       allocates it */
};

/* An ordered set; the order matters (parameters are in graph order). */
struct tensor_set {
	struct tensor *tensors;
	size_t count;
};

const char *dtype_name(enum dtype dtype);
int dtype_parse(const char *name, enum dtype *out); /* 0 on success, -1 if unknown */
size_t dtype_bytes(enum dtype dtype);

struct shape shape_make(int rank, const int64_t *dims);
int shape_equal(const struct shape *a, const struct shape *b);
/* Writes the shape as text: "64x1x28x28", "scalar". */
void shape_text(const struct shape *shape, char *out, size_t out_bytes);
/* Number of elements; -1 if a dimension is negative or the product overflows int64. */
int64_t shape_elements(const struct shape *shape);
/* Bytes of the data; -1 in the same cases. */
int64_t tensor_bytes(const struct tensor *tensor);

/* Makes a tensor with zeroed data in the arena; PRONY_BAD_INPUT if the size overflows. */
enum prony_status tensor_new(struct arena *arena, const char *name, enum dtype dtype,
			     const struct shape *shape, struct tensor *out, struct error *err);

/* The tensor of that name; NULL if there is none. */
struct tensor *tensor_find(const struct tensor_set *set, const char *name);

#endif
