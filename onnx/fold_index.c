/* Evaluates operators that read constants at computed places: exporters build positions and masks
 * with them. */
#include "onnx/fold_internal.h"

#include <string.h>

static enum prony_status output_like(struct fold *fold, const struct constant *like,
				     const struct shape *shape)
{
	int64_t *ints = NULL;
	float *floats = NULL;

	return fold_output(fold, 0, like->type, shape, &ints, &floats);
}

static enum prony_status wrong(struct fold *fold)
{
	return error_set(fold->err, PRONY_BAD_INPUT,
			 "the shapes of its constants do not fit, or an index is outside");
}

/* Places in a tensor, axis by axis; the last axis moves first. */
static void next_place(const struct shape *shape, int64_t place[TENSOR_MAX_RANK])
{
	for (int d = shape->rank; d-- > 0;) {
		if (++place[d] < shape->dims[d])
			return;
		place[d] = 0;
	}
}

static int64_t index_of(const struct shape *shape, const int64_t *place)
{
	int64_t index = 0;

	for (int d = 0; d < shape->rank; d++)
		index = index * shape->dims[d] + place[d];
	return index;
}

/* An index that may count from the end; -1 if it is outside. */
static int64_t normal_index(int64_t index, int64_t size)
{
	index = index < 0 ? index + size : index;
	return index >= 0 && index < size ? index : -1;
}

enum prony_status fold_gather_elements(struct fold *fold)
{
	const struct constant *from = fold->inputs[0], *which = fold->inputs[1];
	int64_t place[TENSOR_MAX_RANK] = {0};
	enum prony_status status;
	int axis = 0;

	status = onnx_axis(onnx_int(fold->node, "axis", 0), from->shape.rank, &axis, fold->err);
	if (status != PRONY_OK)
		return status;
	if (which->is_float || which->shape.rank != from->shape.rank)
		return wrong(fold);
	for (int d = 0; d < from->shape.rank; d++)
		if (d != axis && which->shape.dims[d] > from->shape.dims[d])
			return wrong(fold);
	status = output_like(fold, from, &which->shape);
	for (int64_t i = 0; status == PRONY_OK && i < which->count; i++) {
		int64_t at[TENSOR_MAX_RANK];

		memcpy(at, place, sizeof(at));
		at[axis] = normal_index(which->ints[i], from->shape.dims[axis]);
		if (at[axis] < 0)
			return wrong(fold);
		fold_copy(from, index_of(&from->shape, at), &fold->outputs[0], i);
		next_place(&which->shape, place);
	}
	return status;
}

/* The last dimension of the indices is a place in the first axes; only batch_dims 0. */
enum prony_status fold_gather_nd(struct fold *fold)
{
	const struct constant *from = fold->inputs[0], *which = fold->inputs[1];
	int depth = which->shape.rank > 0 ? (int)which->shape.dims[which->shape.rank - 1] : 0;
	struct shape shape = which->shape, first = from->shape;
	int64_t behind = 1, places;
	enum prony_status status;

	if (which->is_float || onnx_int(fold->node, "batch_dims", 0) != 0 || depth < 1 ||
	    depth > from->shape.rank ||
	    which->shape.rank - 1 + from->shape.rank - depth > TENSOR_MAX_RANK)
		return wrong(fold);
	shape.rank = which->shape.rank - 1;
	places = shape_elements(&shape);
	first.rank = depth;
	for (int d = depth; d < from->shape.rank; d++) {
		shape.dims[shape.rank++] = from->shape.dims[d];
		behind *= from->shape.dims[d];
	}
	status = output_like(fold, from, &shape);
	for (int64_t i = 0; status == PRONY_OK && i < places; i++) {
		int64_t at[TENSOR_MAX_RANK];

		for (int d = 0; d < depth; d++) {
			at[d] = normal_index(which->ints[i * depth + d], from->shape.dims[d]);
			if (at[d] < 0)
				return wrong(fold);
		}
		for (int64_t k = 0; k < behind; k++)
			fold_copy(from, index_of(&first, at) * behind + k, &fold->outputs[0],
				  i * behind + k);
	}
	return status;
}

/* Of integers: positions, counted by a mask. */
enum prony_status fold_cumulate(struct fold *fold)
{
	const struct constant *from = fold->inputs[0], *along = fold->inputs[1];
	bool exclusive = onnx_int(fold->node, "exclusive", 0) != 0;
	int64_t *ints = NULL, inner = 1, size;
	float *floats = NULL;
	enum prony_status status;
	int axis = 0;

	if (from->is_float || along->is_float || along->count != 1 ||
	    onnx_int(fold->node, "reverse", 0) != 0)
		return error_set(fold->err, PRONY_BAD_INPUT,
				 "only forward sums of integers are supported");
	status = onnx_axis(along->ints[0], from->shape.rank, &axis, fold->err);
	if (status == PRONY_OK)
		status = fold_output(fold, 0, from->type, &from->shape, &ints, &floats);
	if (status != PRONY_OK)
		return status;
	for (int d = axis + 1; d < from->shape.rank; d++)
		inner *= from->shape.dims[d];
	size = from->shape.dims[axis];
	for (int64_t i = 0; i < from->count; i++) {
		bool first = i / inner % size == 0;
		int64_t before = first ? 0 : ints[i - inner];
		int64_t term = !exclusive ? from->ints[i] : first ? 0 : from->ints[i - inner];

		if (__builtin_add_overflow(before, term, &ints[i]))
			return error_set(fold->err, PRONY_BAD_INPUT, "its result overflows");
	}
	return status;
}

enum prony_status fold_tile(struct fold *fold)
{
	const struct constant *from = fold->inputs[0], *times = fold->inputs[1];
	int64_t place[TENSOR_MAX_RANK] = {0};
	struct shape shape = from->shape;
	enum prony_status status;

	if (times->is_float || times->count != shape.rank)
		return wrong(fold);
	for (int d = 0; d < shape.rank; d++)
		if (times->ints[d] < 0 ||
		    __builtin_mul_overflow(shape.dims[d], times->ints[d], &shape.dims[d]))
			return wrong(fold);
	status = output_like(fold, from, &shape);
	for (int64_t i = 0; status == PRONY_OK && i < fold->outputs[0].count; i++) {
		int64_t at[TENSOR_MAX_RANK];

		for (int d = 0; d < shape.rank; d++)
			at[d] = place[d] % from->shape.dims[d];
		fold_copy(from, index_of(&from->shape, at), &fold->outputs[0], i);
		next_place(&shape, place);
	}
	return status;
}

/* Keeps the upper or lower triangle of the matrices in the last two axes: a causal mask. */
enum prony_status fold_triangle(struct fold *fold)
{
	const struct constant *from = fold->inputs[0];
	const struct constant *shift = fold->input_count > 1 ? fold->inputs[1] : NULL;
	bool upper = onnx_int(fold->node, "upper", 1) != 0;
	int64_t k = 0, rows, columns;
	enum prony_status status;

	if (from->shape.rank < 2 || (shift && (shift->is_float || shift->count != 1)))
		return wrong(fold);
	if (shift)
		k = shift->ints[0];
	/* Beyond the matrix every shift is the same. */
	k = k < -INT32_MAX ? -INT32_MAX : k > INT32_MAX ? INT32_MAX : k;
	rows = from->shape.dims[from->shape.rank - 2];
	columns = from->shape.dims[from->shape.rank - 1];
	status = output_like(fold, from, &from->shape);
	for (int64_t i = 0; status == PRONY_OK && i < from->count; i++) {
		int64_t row = i / columns % rows, column = i % columns;

		if (upper ? column - k >= row : column - k <= row)
			fold_copy(from, i, &fold->outputs[0], i);
	}
	return status;
}
