/* Computes the shapes that Reshape, Squeeze, Slice and Split give, for constants and activations.
 */
#include "onnx/fold_internal.h"

#include <stdio.h>
#include <string.h>

enum prony_status onnx_axis(int64_t axis, int rank, int *out, struct error *err)
{
	if (axis < -rank || axis >= rank)
		return error_set(err, PRONY_BAD_INPUT,
				 "axis %lld is out of range for %d dimensions", (long long)axis,
				 rank);
	*out = (int)(axis < 0 ? axis + rank : axis);
	return PRONY_OK;
}

/* Reads the whole numbers of a constant input; none if it is left out. */
static enum prony_status read_list(const char *name, const struct constant *argument,
				   const int64_t **out, int *count, struct error *err)
{
	*out = argument ? argument->ints : NULL;
	*count = 0;
	if (argument == NULL)
		return PRONY_OK;
	if (argument->is_float || argument->shape.rank > 1)
		return error_set(err, PRONY_BAD_INPUT, "%s must be a list of integers", name);
	if (argument->count > TENSOR_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s has %lld numbers; at most %d are supported", name,
				 (long long)argument->count, TENSOR_MAX_RANK);
	*count = (int)argument->count;
	return PRONY_OK;
}

/* Product of all dimensions of `shape` but `left_out`; 0 if one is 0, -1 on overflow. */
static int64_t elements_but(const struct shape *shape, int left_out)
{
	struct shape rest = *shape;

	if (left_out >= 0)
		rest.dims[left_out] = 1;
	return shape_elements(&rest);
}

static enum prony_status reshaped(const struct shape *in, const int64_t *target, int rank,
				  bool allow_zero, struct shape *out, struct error *err)
{
	int64_t elements = shape_elements(in), known;
	char from[128], to[128];
	int open = -1;

	out->rank = rank;
	for (int i = 0; i < rank; i++) {
		out->dims[i] = target[i];
		if (target[i] == 0 && !allow_zero) {
			if (i >= in->rank)
				return error_set(err, PRONY_BAD_INPUT,
						 "its shape copies dimension %d of the input, "
						 "which has %d dimensions",
						 i, in->rank);
			out->dims[i] = in->dims[i];
		}
		if (target[i] != -1)
			continue;
		if (open >= 0)
			return error_set(err, PRONY_BAD_INPUT, "its shape contains -1 twice");
		open = i;
	}
	known = elements_but(out, open);
	if (open >= 0 && known > 0 && elements % known == 0)
		out->dims[open] = elements / known;
	if (known < 0 || shape_elements(out) != elements) {
		shape_text(in, from, sizeof(from));
		shape_text(out, to, sizeof(to));
		return error_set(err, PRONY_BAD_INPUT, "shape %s cannot be reshaped to %s", from,
				 to);
	}
	return PRONY_OK;
}

static enum prony_status flattened(const Onnx__NodeProto *node, const struct shape *in,
				   struct shape *out, struct error *err)
{
	int64_t axis = onnx_int(node, "axis", 1);

	if (axis < -in->rank || axis > in->rank)
		return error_set(err, PRONY_BAD_INPUT,
				 "axis %lld is out of range for %d dimensions", (long long)axis,
				 in->rank);
	if (axis < 0)
		axis += in->rank;
	*out = (struct shape){.rank = 2, .dims = {1, 1}};
	for (int i = 0; i < in->rank; i++) {
		int64_t *side = &out->dims[i < axis ? 0 : 1];

		if (__builtin_mul_overflow(*side, in->dims[i], side))
			return error_set(err, PRONY_BAD_INPUT, "its size overflows");
	}
	return PRONY_OK;
}

static enum prony_status squeezed(const struct shape *in, const int64_t *axes, int count,
				  struct shape *out, struct error *err)
{
	bool gone[TENSOR_MAX_RANK] = {false};

	for (int i = 0; i < in->rank && count == 0; i++)
		gone[i] = in->dims[i] == 1;
	for (int i = 0; i < count; i++) {
		int axis = 0;
		enum prony_status status = onnx_axis(axes[i], in->rank, &axis, err);

		if (status != PRONY_OK)
			return status;
		if (in->dims[axis] != 1)
			return error_set(err, PRONY_BAD_INPUT, "dimension %d is not 1", axis);
		gone[axis] = true;
	}
	out->rank = 0;
	for (int i = 0; i < in->rank; i++) {
		if (!gone[i])
			out->dims[out->rank++] = in->dims[i];
	}
	return PRONY_OK;
}

static enum prony_status unsqueezed(const struct shape *in, const int64_t *axes, int count,
				    struct shape *out, struct error *err)
{
	bool added[TENSOR_MAX_RANK] = {false};
	int from = 0;

	out->rank = in->rank + count;
	if (out->rank > TENSOR_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT, "its output has more than %d dimensions",
				 TENSOR_MAX_RANK);
	for (int i = 0; i < count; i++) {
		int axis = 0;
		enum prony_status status = onnx_axis(axes[i], out->rank, &axis, err);

		if (status != PRONY_OK)
			return status;
		if (added[axis])
			return error_set(err, PRONY_BAD_INPUT, "axes lists %d twice", axis);
		added[axis] = true;
	}
	for (int i = 0; i < out->rank; i++)
		out->dims[i] = added[i] ? 1 : in->dims[from++];
	return PRONY_OK;
}

enum prony_status onnx_reshaped(const Onnx__NodeProto *node, const struct shape *in,
				const struct constant *argument, struct shape *out,
				struct error *err)
{
	const char *op = node->op_type;
	struct shape shape = {.rank = 0};
	const int64_t *list = NULL;
	int count = 0;
	enum prony_status status = PRONY_OK;

	if (strcmp(op, "Flatten") == 0) {
		status = flattened(node, in, &shape, err);
	} else {
		status = read_list(strcmp(op, "Reshape") == 0 ? "shape" : "axes", argument, &list,
				   &count, err);
		if (status != PRONY_OK)
			return status;
		if (strcmp(op, "Reshape") == 0)
			status = reshaped(in, list, count, onnx_int(node, "allowzero", 0) != 0,
					  &shape, err);
		else if (strcmp(op, "Squeeze") == 0)
			status = squeezed(in, list, count, &shape, err);
		else
			status = unsqueezed(in, list, count, &shape, err);
	}
	if (status == PRONY_OK)
		*out = shape;
	return status;
}

/* Limits the start or end of a slice as ONNX does: 0 to size, or -1 to size - 1 backwards. */
static int64_t clamp(int64_t place, int64_t size, bool backwards)
{
	int64_t low = backwards ? -1 : 0, high = backwards ? size - 1 : size;

	if (place < 0)
		place = place < -size ? low : place + size;
	if (place < low)
		return low;
	return place > high ? high : place;
}

static enum prony_status slice_range(const struct shape *in, int64_t start, int64_t end,
				     int64_t step, struct onnx_range *out, struct error *err)
{
	int64_t size = in->dims[out->axis];

	if (step == 0 || step > INT32_MAX || step < -INT32_MAX)
		return error_set(err, PRONY_BAD_INPUT, "its step is %lld, which is not supported",
				 (long long)step);
	start = clamp(start, size, step < 0);
	end = clamp(end, size, step < 0);
	out->start = start;
	out->step = step;
	if (step > 0)
		out->count = end > start ? (end - start - 1) / step + 1 : 0;
	else
		out->count = start > end ? (start - end - 1) / -step + 1 : 0;
	return PRONY_OK;
}

enum prony_status onnx_slice_ranges(const struct shape *in, const struct constant *const *inputs,
				    size_t input_count, struct onnx_range *out, int *count,
				    struct error *err)
{
	const struct constant *lists[5] = {NULL};
	bool used[TENSOR_MAX_RANK] = {false};
	int64_t length;

	for (size_t i = 1; i < 5 && i < input_count; i++)
		lists[i] = inputs[i];
	if (lists[1] == NULL || lists[2] == NULL)
		return error_set(err, PRONY_BAD_INPUT, "its starts and ends must be constant");
	length = lists[1]->count;
	for (size_t i = 1; i < 5; i++) {
		if (lists[i] != NULL && (lists[i]->is_float || lists[i]->count != length))
			return error_set(err, PRONY_BAD_INPUT,
					 "starts, ends, axes and steps must be integer lists of "
					 "the same length");
	}
	if (length > in->rank)
		return error_set(err, PRONY_BAD_INPUT, "it slices %lld axes, but the input has %d",
				 (long long)length, in->rank);
	for (int64_t i = 0; i < length; i++) {
		enum prony_status status =
			onnx_axis(lists[3] ? lists[3]->ints[i] : i, in->rank, &out[i].axis, err);

		if (status == PRONY_OK && used[out[i].axis])
			status = error_set(err, PRONY_BAD_INPUT, "it slices axis %d twice",
					   out[i].axis);
		if (status == PRONY_OK)
			status = slice_range(in, lists[1]->ints[i], lists[2]->ints[i],
					     lists[4] ? lists[4]->ints[i] : 1, &out[i], err);
		if (status != PRONY_OK)
			return status;
		used[out[i].axis] = true;
	}
	*count = (int)length;
	return PRONY_OK;
}

enum prony_status onnx_split_ranges(const Onnx__NodeProto *node, const struct shape *in,
				    const struct constant *sizes, struct onnx_range *out,
				    size_t output_count, struct error *err)
{
	int64_t start = 0, size, each, parts = (int64_t)output_count;
	int axis = 0;
	enum prony_status status = onnx_axis(onnx_int(node, "axis", 0), in->rank, &axis, err);

	if (status != PRONY_OK)
		return status;
	if (sizes != NULL && (sizes->is_float || sizes->count != parts))
		return error_set(err, PRONY_BAD_INPUT, "it has %lld sizes but %zu outputs",
				 (long long)sizes->count, output_count);
	size = in->dims[axis];
	each = size / parts + (size % parts != 0); /* ONNX: the last one may be smaller */
	for (size_t i = 0; i < output_count; i++) {
		int64_t part = sizes ? sizes->ints[i] : each < size - start ? each : size - start;

		if (part < 0 || part > size - start)
			return error_set(err, PRONY_BAD_INPUT,
					 "the sizes of its parts do not add up to %lld",
					 (long long)size);
		out[i] =
			(struct onnx_range){.axis = axis, .start = start, .step = 1, .count = part};
		start += part;
	}
	if (start != size)
		return error_set(err, PRONY_BAD_INPUT,
				 "the sizes of its parts do not add up to %lld", (long long)size);
	return PRONY_OK;
}
