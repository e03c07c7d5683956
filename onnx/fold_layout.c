/* Evaluates operators that move numbers of constants: exporters build shapes and weights with them.
 */
#include "onnx/fold_internal.h"

#include <math.h>
#include <string.h>

#define TYPE_FLOAT ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT

/* Like fold_output, for callers that write with fold_copy. */
static enum prony_status new_output(struct fold *fold, size_t index, const struct constant *like,
				    const struct shape *shape)
{
	int64_t *ints;
	float *floats;

	return fold_output(fold, index, like->type, shape, &ints, &floats);
}

enum prony_status fold_reshape(struct fold *fold)
{
	const struct constant *argument = fold->input_count > 1 ? fold->inputs[1] : NULL;
	struct shape shape;
	enum prony_status status =
		onnx_reshaped(fold->node, &fold->inputs[0]->shape, argument, &shape, fold->err);

	if (status != PRONY_OK)
		return status;
	fold->outputs[0] = *fold->inputs[0];
	fold->outputs[0].shape = shape;
	fold->outputs[0].transposed &= shape_equal(&shape, &fold->inputs[0]->shape) != 0;
	return PRONY_OK;
}

/* Product of the dimensions from `first` up to, but not including, `end`. */
static int64_t product(const struct shape *shape, int first, int end)
{
	int64_t n = 1;

	for (int i = first; i < end; i++)
		n *= shape->dims[i];
	return n;
}

enum prony_status fold_gather(struct fold *fold)
{
	const struct constant *from = fold->inputs[0], *which = fold->inputs[1];
	struct shape shape = {.rank = 0};
	int64_t before, behind, size;
	enum prony_status status;
	int axis = 0;

	status = onnx_axis(onnx_int(fold->node, "axis", 0), from->shape.rank, &axis, fold->err);
	if (status != PRONY_OK)
		return status;
	if (which->is_float || from->shape.rank + which->shape.rank - 1 > TENSOR_MAX_RANK)
		return error_set(
			fold->err, PRONY_BAD_INPUT,
			"its indices are not integers, or its result has too many dimensions");
	if (from->count == 0)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "the constant that it reads from is empty");
	for (int i = 0; i < axis; i++)
		shape.dims[shape.rank++] = from->shape.dims[i];
	for (int i = 0; i < which->shape.rank; i++)
		shape.dims[shape.rank++] = which->shape.dims[i];
	for (int i = axis + 1; i < from->shape.rank; i++)
		shape.dims[shape.rank++] = from->shape.dims[i];
	status = new_output(fold, 0, from, &shape);
	before = product(&from->shape, 0, axis);
	behind = product(&from->shape, axis + 1, from->shape.rank);
	size = from->shape.dims[axis];
	for (int64_t i = 0; status == PRONY_OK && i < which->count; i++) {
		int64_t index = which->ints[i] < 0 ? which->ints[i] + size : which->ints[i];

		if (index < 0 || index >= size)
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "index %lld is outside the axis, which has %lld elements",
					 (long long)which->ints[i], (long long)size);
		for (int64_t o = 0; o < before; o++) {
			for (int64_t k = 0; k < behind; k++)
				fold_copy(from, (o * size + index) * behind + k, &fold->outputs[0],
					  (o * which->count + i) * behind + k);
		}
	}
	return status;
}

/* The shape of the result: the inputs' sizes along the axis are added. */
static enum prony_status concat_shape(struct fold *fold, int axis, struct shape *out)
{
	*out = fold->inputs[0]->shape;
	for (size_t i = 1; i < fold->input_count; i++) {
		const struct constant *input = fold->inputs[i];
		struct shape like;

		if (input == NULL || input->is_float != fold->inputs[0]->is_float)
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "input %zu is missing or has another type than input 0",
					 i);
		like = input->shape;
		if (like.rank != out->rank)
			return error_set(
				fold->err, PRONY_BAD_INPUT,
				"input %zu and input 0 have different numbers of dimensions", i);
		if (__builtin_add_overflow(out->dims[axis], like.dims[axis], &out->dims[axis]))
			return error_set(fold->err, PRONY_BAD_INPUT, "its size overflows");
		like.dims[axis] = out->dims[axis];
		if (!shape_equal(&like, out))
			return error_set(
				fold->err, PRONY_BAD_INPUT,
				"input %zu differs from input 0 in a dimension other than axis %d",
				i, axis);
	}
	return PRONY_OK;
}

enum prony_status fold_concat(struct fold *fold)
{
	const struct constant *first = fold->inputs[0];
	int64_t before, behind, at = 0;
	struct shape shape;
	enum prony_status status;
	int axis = 0;

	status = onnx_axis(onnx_int(fold->node, "axis", 0), first->shape.rank, &axis, fold->err);
	if (status == PRONY_OK)
		status = concat_shape(fold, axis, &shape);
	if (status == PRONY_OK)
		status = new_output(fold, 0, first, &shape);
	if (status != PRONY_OK || fold->outputs[0].count == 0)
		return status;
	before = product(&shape, 0, axis);
	behind = product(&shape, axis + 1, shape.rank);
	for (size_t i = 0; i < fold->input_count; i++) {
		int64_t row = fold->inputs[i]->shape.dims[axis] * behind;

		for (int64_t o = 0; o < before; o++) {
			for (int64_t k = 0; k < row; k++)
				fold_copy(fold->inputs[i], o * row + k, &fold->outputs[0],
					  (o * shape.dims[axis]) * behind + at + k);
		}
		at += row;
	}
	return PRONY_OK;
}

/* Makes output `index` from the elements in the range along its axis. */
static enum prony_status take(struct fold *fold, const struct constant *from,
			      const struct onnx_range *range, size_t index)
{
	struct shape shape = from->shape;
	int64_t before, behind, size = from->shape.dims[range->axis];
	enum prony_status status;

	shape.dims[range->axis] = range->count;
	status = new_output(fold, index, from, &shape);
	if (status != PRONY_OK || fold->outputs[index].count == 0)
		return status;
	before = product(&shape, 0, range->axis);
	behind = product(&shape, range->axis + 1, shape.rank);
	for (int64_t o = 0; o < before; o++) {
		for (int64_t i = 0; i < range->count; i++) {
			int64_t row = o * size + range->start + i * range->step;

			for (int64_t k = 0; k < behind; k++)
				fold_copy(from, row * behind + k, &fold->outputs[index],
					  (o * range->count + i) * behind + k);
		}
	}
	return PRONY_OK;
}

enum prony_status fold_slice(struct fold *fold)
{
	struct onnx_range ranges[TENSOR_MAX_RANK];
	struct constant all = *fold->inputs[0];
	enum prony_status status;
	int count = 0;

	status = onnx_slice_ranges(&all.shape, fold->inputs, fold->input_count, ranges, &count,
				   fold->err);
	fold->outputs[0] = all;
	for (int i = 0; status == PRONY_OK && i < count; i++) {
		all = fold->outputs[0];
		status = take(fold, &all, &ranges[i], 0);
	}
	return status;
}

enum prony_status fold_split(struct fold *fold)
{
	const struct constant *from = fold->inputs[0];
	const struct constant *sizes = fold->input_count > 1 ? fold->inputs[1] : NULL;
	struct onnx_range *ranges =
		arena_try_array(fold->arena, fold->output_count, sizeof(*ranges), fold->err);
	enum prony_status status = ranges ? PRONY_OK : PRONY_NOMEM;

	if (status == PRONY_OK)
		status = onnx_split_ranges(fold->node, &from->shape, sizes, ranges,
					   fold->output_count, fold->err);
	for (size_t i = 0; status == PRONY_OK && i < fold->output_count; i++)
		status = take(fold, from, &ranges[i], i);
	return status;
}

enum prony_status fold_transpose(struct fold *fold)
{
	const struct constant *from = fold->inputs[0];
	const Onnx__AttributeProto *perm = onnx_attribute(fold->node, "perm");
	int rank = from->shape.rank, order[TENSOR_MAX_RANK];
	bool used[TENSOR_MAX_RANK] = {false};
	int64_t steps[TENSOR_MAX_RANK];
	struct shape shape = {.rank = rank};
	enum prony_status status;

	if (perm != NULL && perm->n_ints != (size_t)rank)
		return error_set(fold->err, PRONY_BAD_INPUT, "perm must have %d axes", rank);
	for (int i = 0; i < rank; i++) {
		int64_t axis = perm ? perm->ints[i] : rank - 1 - i;

		if (axis < 0 || axis >= rank || used[axis])
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "perm must list each axis exactly once");
		used[axis] = true;
		order[i] = (int)axis;
		shape.dims[i] = from->shape.dims[axis];
	}
	status = new_output(fold, 0, from, &shape);
	if (status != PRONY_OK || from->count == 0)
		return status;
	fold->outputs[0].initializer = from->initializer;
	fold->outputs[0].transposed = rank == 2 && order[0] == 1 && !from->transposed;
	for (int i = 0; i < rank; i++)
		steps[i] = product(&from->shape, order[i] + 1, rank);
	for (int64_t i = 0; i < from->count; i++) {
		int64_t rest = i, index = 0;

		for (int d = rank; d-- > 0;) {
			index += rest % shape.dims[d] * steps[d];
			rest /= shape.dims[d];
		}
		fold_copy(from, index, &fold->outputs[0], i);
	}
	return PRONY_OK;
}

/* Reads a constant list of whole numbers as a shape. */
static enum prony_status as_shape(const struct constant *list, struct shape *out, struct error *err)
{
	if (list->is_float || list->shape.rank > 1 || list->count > TENSOR_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT,
				 "its shape is not a list of at most %d integers", TENSOR_MAX_RANK);
	*out = shape_make((int)list->count, list->ints);
	if (shape_elements(out) < 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "its shape has a negative dimension or overflows");
	return PRONY_OK;
}

enum prony_status fold_expand(struct fold *fold)
{
	const struct constant *from = fold->inputs[0];
	struct shape target, shape;
	enum prony_status status = as_shape(fold->inputs[1], &target, fold->err);

	if (status != PRONY_OK)
		return status;
	shape.rank = target.rank > from->shape.rank ? target.rank : from->shape.rank;
	for (int i = 1; i <= shape.rank; i++) {
		int64_t a = i <= target.rank ? target.dims[target.rank - i] : 1;
		int64_t b = i <= from->shape.rank ? from->shape.dims[from->shape.rank - i] : 1;

		if (a != b && a != 1 && b != 1)
			return error_set(fold->err, PRONY_BAD_INPUT,
					 "its shapes cannot be broadcast to each other");
		shape.dims[shape.rank - i] = a == 1 ? b : a;
	}
	status = new_output(fold, 0, from, &shape);
	for (int64_t i = 0; status == PRONY_OK && i < fold->outputs[0].count; i++) {
		int64_t rest = i, index = 0, step = 1;

		for (int d = 1; d <= from->shape.rank; d++) {
			int64_t size = from->shape.dims[from->shape.rank - d];
			int64_t place = rest % shape.dims[shape.rank - d];

			rest /= shape.dims[shape.rank - d];
			index += size == 1 ? 0 : place * step;
			step *= size;
		}
		fold_copy(from, index, &fold->outputs[0], i);
	}
	return status;
}

/* Number of elements of a Range; -1 if it does not end. */
static int64_t range_count(double start, double limit, double delta)
{
	double count = ceil((limit - start) / delta);

	if (!(count <= (double)FOLD_MAX_INTS))
		return -1;
	return count > 0 ? (int64_t)count : 0;
}

enum prony_status fold_range(struct fold *fold)
{
	const struct constant *const *in = fold->inputs;
	struct shape shape = {.rank = 1};
	int64_t *ints = NULL;
	float *floats = NULL;
	enum prony_status status;

	for (int i = 0; i < 3; i++) {
		if (in[i]->count != 1 || in[i]->is_float != in[0]->is_float)
			return error_set(
				fold->err, PRONY_BAD_INPUT,
				"its three inputs must be single numbers of the same type");
	}
	if (in[0]->is_float)
		shape.dims[0] = range_count((double)in[0]->floats[0], (double)in[1]->floats[0],
					    (double)in[2]->floats[0]);
	else
		shape.dims[0] = range_count((double)in[0]->ints[0], (double)in[1]->ints[0],
					    (double)in[2]->ints[0]);
	if (shape.dims[0] < 0)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "its range has more than %lld elements", (long long)FOLD_MAX_INTS);
	status = fold_output(fold, 0, in[0]->type, &shape, &ints, &floats);
	for (int64_t i = 0; status == PRONY_OK && i < shape.dims[0]; i++) {
		int64_t step;

		if (floats)
			floats[i] = in[0]->floats[0] + (float)i * in[2]->floats[0];
		else if (__builtin_mul_overflow(i, in[2]->ints[0], &step) ||
			 __builtin_add_overflow(in[0]->ints[0], step, &ints[i]))
			return error_set(fold->err, PRONY_BAD_INPUT, "its result overflows");
	}
	return status;
}

/* ConstantOfShape. */
enum prony_status fold_fill(struct fold *fold)
{
	const Onnx__AttributeProto *value = onnx_attribute(fold->node, "value");
	const Onnx__TensorProto *tensor = value ? value->t : NULL;
	struct constant one = {.type = TYPE_FLOAT, .count = 1, .initializer = -1};
	static const float zero = 0;
	struct shape shape;
	enum prony_status status = as_shape(fold->inputs[0], &shape, fold->err);

	one.is_float = true;
	one.floats = &zero;
	if (status == PRONY_OK && tensor != NULL)
		status = onnx_tensor_read(tensor, "value", NULL, fold->arena, &one, fold->err);
	if (status == PRONY_OK && one.count != 1)
		status = error_set(fold->err, PRONY_BAD_INPUT, "its value must be a single number");
	if (status == PRONY_OK)
		status = new_output(fold, 0, &one, &shape);
	for (int64_t i = 0; status == PRONY_OK && i < fold->outputs[0].count; i++)
		fold_copy(&one, 0, &fold->outputs[0], i);
	return status;
}
