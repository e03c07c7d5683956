/* Makes constants and copies numbers between them. */
#include "onnx/fold_internal.h"

#include <string.h>

enum prony_status fold_output(struct fold *fold, size_t index, int32_t type,
			      const struct shape *shape, int64_t **ints, float **floats)
{
	struct constant *out = &fold->outputs[index];
	int64_t count = shape_elements(shape);

	if (count < 0)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "a dimension of its constant result is negative or too large");
	*out = (struct constant){.type = type, .shape = *shape, .count = count, .initializer = -1};
	out->is_float = constant_is_float_type(type);
	if (out->is_float) {
		*floats = arena_try_array(fold->arena, (size_t)count + 1, sizeof(**floats),
					  fold->err);
		out->floats = *floats;
		return *floats ? PRONY_OK : PRONY_NOMEM;
	}
	if (count > FOLD_MAX_INTS)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "its constant result has %lld elements, which is too large",
				 (long long)count);
	*ints = arena_try_array(fold->arena, (size_t)count + 1, sizeof(**ints), fold->err);
	out->ints = *ints;
	return *ints ? PRONY_OK : PRONY_NOMEM;
}

struct constant constant_ints(struct arena *arena, const int64_t *values, int count)
{
	int64_t *copy = arena_array(arena, (size_t)count + 1, sizeof(*copy));

	for (int i = 0; i < count; i++)
		copy[i] = values[i];
	return (struct constant){.type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
				 .shape = {.rank = 1, .dims = {count}},
				 .count = count,
				 .ints = copy,
				 .initializer = -1};
}

void fold_copy(const struct constant *from, int64_t i, const struct constant *to, int64_t k)
{
	/* The arrays of an output were made by fold_output, which may write them. */
	if (to->is_float)
		((float *)(uintptr_t)to->floats)[k] = from->floats[i];
	else
		((int64_t *)(uintptr_t)to->ints)[k] = from->ints[i];
}
