/* Types, shapes and tensors. */
#include "graph/tensor.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	size_t bytes;
} dtypes[DTYPE_COUNT] = {
	[DTYPE_F32] = {"F32", 4}, [DTYPE_F64] = {"F64", 8},   [DTYPE_BF16] = {"BF16", 2},
	[DTYPE_F16] = {"F16", 2}, [DTYPE_I32] = {"I32", 4},   [DTYPE_I64] = {"I64", 8},
	[DTYPE_U8] = {"U8", 1},	  [DTYPE_BOOL] = {"BOOL", 1},
};

const char *dtype_name(enum dtype dtype)
{
	return (unsigned)dtype < DTYPE_COUNT ? dtypes[dtype].name : "?";
}

int dtype_parse(const char *name, enum dtype *out)
{
	for (int i = 0; i < DTYPE_COUNT; i++) {
		if (strcmp(name, dtypes[i].name) == 0) {
			*out = (enum dtype)i;
			return 0;
		}
	}
	return -1;
}

size_t dtype_bytes(enum dtype dtype)
{
	assert((unsigned)dtype < DTYPE_COUNT);
	return dtypes[dtype].bytes;
}

struct shape shape_make(int rank, const int64_t *dims)
{
	struct shape shape = {.rank = rank};

	assert(rank >= 0 && rank <= TENSOR_MAX_RANK);
	for (int i = 0; i < rank; i++)
		shape.dims[i] = dims[i];
	return shape;
}

int shape_equal(const struct shape *a, const struct shape *b)
{
	if (a->rank != b->rank)
		return 0;
	for (int i = 0; i < a->rank; i++) {
		if (a->dims[i] != b->dims[i])
			return 0;
	}
	return 1;
}

void shape_text(const struct shape *shape, char *out, size_t out_bytes)
{
	size_t used = 0;

	if (out_bytes == 0)
		return;
	if (shape->rank == 0) {
		snprintf(out, out_bytes, "scalar");
		return;
	}
	out[0] = '\0';
	for (int i = 0; i < shape->rank && used < out_bytes; i++) {
		int n = snprintf(out + used, out_bytes - used, "%s%lld", i > 0 ? "x" : "",
				 (long long)shape->dims[i]);

		if (n < 0)
			return;
		used += (size_t)n;
	}
}

int64_t shape_elements(const struct shape *shape)
{
	int64_t count = 1;

	for (int i = 0; i < shape->rank; i++) {
		/* A later 0 would hide an earlier overflow of the product. */
		if (shape->dims[i] < 0 || __builtin_mul_overflow(count, shape->dims[i], &count))
			return -1;
	}
	return count;
}

int64_t tensor_bytes(const struct tensor *tensor)
{
	int64_t bytes;
	int64_t count = shape_elements(&tensor->shape);

	if (count < 0 || __builtin_mul_overflow(count, (int64_t)dtype_bytes(tensor->dtype), &bytes))
		return -1;
	return bytes;
}

enum prony_status tensor_new(struct arena *arena, const char *name, enum dtype dtype,
			     const struct shape *shape, struct tensor *out, struct error *err)
{
	struct tensor tensor = {.dtype = dtype, .shape = *shape};

	if (tensor_bytes(&tensor) < 0) {
		char text[128];

		shape_text(shape, text, sizeof(text));
		return error_set(err, PRONY_BAD_INPUT, "tensor '%s': invalid shape %s", name, text);
	}
	tensor.data =
		arena_try_array(arena, (size_t)shape_elements(shape), dtype_bytes(dtype), err);
	if (tensor.data == NULL)
		return PRONY_NOMEM;
	tensor.name = arena_strdup(arena, name);
	*out = tensor;
	return PRONY_OK;
}

struct tensor *tensor_find(const struct tensor_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++) {
		if (strcmp(set->tensors[i].name, name) == 0)
			return &set->tensors[i];
	}
	return NULL;
}
