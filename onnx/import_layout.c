/* Translates operators on the layout: reshapes, transposes, slices, and means over axes. */
#include "onnx/import_internal.h"
#include "onnx/ports_internal.h"

#include <stdint.h>
#include <string.h>

/* The input of the node that computes x, if that is such an operator; else VALUE_NONE. */
static int input_of(const struct importer *im, int x, enum op op)
{
	const struct graph *graph = im->builder.graph;
	int producer = graph->values[x].producer;

	return producer >= 0 && graph->nodes[producer].op == op ? graph->nodes[producer].inputs[0]
								: VALUE_NONE;
}

void import_reshape(struct importer *im, const struct file_node *node)
{
	const struct constant *argument = NULL;
	struct error why = ERROR_INIT;
	struct shape shape;
	int x, before;

	if (!import_need_value(im, node, 0, 0, &x))
		return;
	if (import_has(node, 1) && !import_need_constant(im, node, 1, &argument))
		return;
	if (onnx_reshaped(node->proto, import_shape(im, x), argument, &shape, &why) != PRONY_OK) {
		import_refuse(im, node, "%s", why.text);
		return;
	}
	/* A Squeeze behind a recurrent layer takes the axis of its directions back. */
	before = input_of(im, x, OP_RESHAPE);
	if (before != VALUE_NONE && strcmp(node->proto->op_type, "Squeeze") == 0 &&
	    shape_equal(import_shape(im, before), &shape) && import_take_back(im, node, x))
		x = before;
	import_set(im, node, 0, import_reshaped(im, node, x, &shape));
}

int import_turned(struct importer *im, const struct file_node *node, int x, const int64_t *order,
		  int rank)
{
	int before = input_of(im, x, OP_TRANSPOSE);
	const struct graph *graph = im->builder.graph;
	struct attributes attributes;
	bool moves = false, back = before != VALUE_NONE;

	operator_default_attributes(OP_TRANSPOSE, &attributes);
	attributes.ints.count = rank;
	for (int i = 0; i < rank; i++) {
		attributes.ints.items[i] = order[i];
		moves = moves || order[i] != i;
		back = back && order[i] >= 0 && order[i] < rank &&
		       graph->nodes[graph->values[x].producer].attributes.ints.items[order[i]] == i;
	}
	if (back && import_take_back(im, node, x))
		return before;
	return moves ? import_append(im, node, OP_TRANSPOSE, &x, 1, &attributes) : x;
}

void import_transpose(struct importer *im, const struct file_node *node)
{
	const Onnx__AttributeProto *perm = onnx_attribute(node->proto, "perm");
	int64_t order[TENSOR_MAX_RANK];
	int x, rank;

	if (!import_need_value(im, node, 0, 0, &x))
		return;
	rank = import_shape(im, x)->rank;
	if (perm != NULL && perm->n_ints != (size_t)rank) {
		import_refuse(im, node, "perm has %zu axes, but the input has %d", perm->n_ints,
			      rank);
		return;
	}
	for (int i = 0; i < rank; i++)
		order[i] = perm ? perm->ints[i] : rank - 1 - i;
	import_set(im, node, 0, import_turned(im, node, x, order, rank));
}

/* A Concat of more inputs than a node of the graph may have becomes a chain. */
void import_concat(struct importer *im, const struct file_node *node)
{
	struct attributes attributes;
	int inputs[NODE_MAX_INPUTS], count = 0;

	operator_default_attributes(OP_CONCAT, &attributes);
	attributes.axis = onnx_int(node->proto, "axis", 0);
	for (size_t i = 0; i < node->input_count; i++) {
		if (count == NODE_MAX_INPUTS) {
			inputs[0] = import_append(im, node, OP_CONCAT, inputs, count, &attributes);
			count = 1;
			if (inputs[0] == VALUE_NONE)
				return;
		}
		inputs[count] = import_operand(im, node, i);
		if (inputs[count++] == VALUE_NONE)
			return;
	}
	if (count > 1)
		inputs[0] = import_append(im, node, OP_CONCAT, inputs, count, &attributes);
	import_set(im, node, 0, count > 0 ? inputs[0] : VALUE_NONE);
	if (count == 0)
		import_refuse(im, node, "it has no inputs");
}

int import_range(struct importer *im, const struct file_node *node, int x,
		 const struct onnx_range *range)
{
	struct attributes attributes;

	if (range->start == 0 && range->step == 1 &&
	    range->count == import_shape(im, x)->dims[range->axis])
		return x;
	if (range->count < 1 || range->step < 1) {
		import_refuse(
			im, node,
			range->count < 1
				? "its range along axis %d is empty"
				: "its step along axis %d is negative, which is not supported",
			range->axis);
		return VALUE_NONE;
	}
	operator_default_attributes(OP_SLICE, &attributes);
	attributes.axis = range->axis;
	attributes.start = range->start;
	attributes.end = range->start + (range->count - 1) * range->step + 1;
	attributes.step = range->step;
	return import_append(im, node, OP_SLICE, &x, 1, &attributes);
}

void import_slice(struct importer *im, const struct file_node *node)
{
	const struct constant *arguments[5] = {NULL};
	struct onnx_range ranges[TENSOR_MAX_RANK];
	struct error why = ERROR_INIT;
	int x = import_operand(im, node, 0), count = 0;

	if (x == VALUE_NONE)
		return;
	for (size_t i = 1; i < 5; i++) {
		if (import_has(node, i) && !import_need_constant(im, node, i, &arguments[i]))
			return;
	}
	if (onnx_slice_ranges(import_shape(im, x), arguments, 5, ranges, &count, &why) !=
	    PRONY_OK) {
		import_refuse(im, node, "%s", why.text);
		return;
	}
	for (int i = 0; i < count && x != VALUE_NONE; i++)
		x = import_range(im, node, x, &ranges[i]);
	import_set(im, node, 0, x);
}

/* Split becomes a Slice for each output that is used. */
void import_split(struct importer *im, const struct file_node *node)
{
	const struct constant *sizes = NULL;
	struct onnx_range *ranges =
		arena_array(&im->arena, node->output_count + 1, sizeof(*ranges));
	struct error why = ERROR_INIT;
	int x;

	if (!import_need_value(im, node, 0, 0, &x) ||
	    (import_has(node, 1) && !import_need_constant(im, node, 1, &sizes)))
		return;
	if (onnx_split_ranges(node->proto, import_shape(im, x), sizes, ranges, node->output_count,
			      &why) != PRONY_OK) {
		import_refuse(im, node, "%s", why.text);
		return;
	}
	for (size_t i = 0; i < node->output_count; i++) {
		if (node->outputs[i] != NAME_OMITTED &&
		    im->model->definitions[node->outputs[i]].users > 0)
			import_set(im, node, i, import_range(im, node, x, &ranges[i]));
	}
}

/* Reads the pads of all axes: first the begins, then the ends. `axes` (opset 18) lists the axes
 * that the constant describes. */
static bool read_pads(struct importer *im, const struct file_node *node,
		      const struct constant *pads, const struct constant *axes, int rank,
		      struct int_list *out)
{
	int64_t count = axes ? axes->count : rank;
	struct error why = ERROR_INIT;

	memset(out, 0, sizeof(*out));
	out->count = 2 * rank;
	if (pads->is_float || pads->count != 2 * count || count > rank ||
	    (axes && axes->is_float)) {
		import_refuse(im, node, "its pads must be two integers for each axis");
		return false;
	}
	for (int i = 0; i < (int)count; i++) {
		int axis = i;

		if (axes && onnx_axis(axes->ints[i], rank, &axis, &why) != PRONY_OK) {
			import_refuse(im, node, "%s", why.text);
			return false;
		}
		out->items[axis] = pads->ints[i];
		out->items[rank + axis] = pads->ints[count + i];
	}
	return true;
}

void import_pad(struct importer *im, const struct file_node *node)
{
	const struct constant *pads, *value = NULL, *axes = NULL;
	struct attributes attributes;
	bool pads_any = false;
	char mode[16];
	int x;

	operator_default_attributes(OP_PAD, &attributes);
	onnx_text(node->proto, "mode", "constant", mode, sizeof(mode));
	if (!import_need_value(im, node, 0, 0, &x) || !import_need_constant(im, node, 1, &pads) ||
	    (import_has(node, 2) && !import_need_constant(im, node, 2, &value)) ||
	    (import_has(node, 3) && !import_need_constant(im, node, 3, &axes)))
		return;
	if (strcmp(mode, "constant") != 0 || (value && (!value->is_float || value->count != 1))) {
		import_refuse(im, node,
			      "mode '%s': only padding with a single constant number is supported",
			      mode);
		return;
	}
	if (!read_pads(im, node, pads, axes, import_shape(im, x)->rank, &attributes.ints))
		return;
	if (value)
		attributes.value = (double)value->floats[0];
	for (int i = 0; i < attributes.ints.count; i++)
		pads_any = pads_any || attributes.ints.items[i] != 0;
	import_set(im, node, 0, pads_any ? import_append(im, node, OP_PAD, &x, 1, &attributes) : x);
}

/* Whether it is the mean over height and width, for which frameworks have a kernel. */
static bool is_spatial(const struct shape *shape, const struct int_list *axes)
{
	if (shape->rank != 4 || axes->count != 2)
		return false;
	for (int i = 0; i < 2; i++) {
		if (axes->items[i] != 2 && axes->items[i] != 3)
			return false;
	}
	return axes->items[0] != axes->items[1];
}

/* Reads the constant axes of input 1, counted from the front; none if it is left out. False after a
 * refusal.
 */
static bool read_axes(struct importer *im, const struct file_node *node, int rank,
		      struct int_list *out)
{
	const struct constant *axes = NULL;
	struct error why = ERROR_INIT;

	out->count = 0;
	if (!import_has(node, 1))
		return true;
	if (!import_need_constant(im, node, 1, &axes))
		return false;
	if (axes->is_float || axes->count > rank) {
		import_refuse(im, node, "its axes must be a list of at most %d integers", rank);
		return false;
	}
	out->count = (int)axes->count;
	for (int i = 0; i < out->count; i++) {
		int axis = 0;

		if (onnx_axis(axes->ints[i], rank, &axis, &why) != PRONY_OK) {
			import_refuse(im, node, "%s", why.text);
			return false;
		}
		out->items[i] = axis;
	}
	return true;
}

/* Whether the axes, none for all, contain the first one. */
static bool over_batch(const struct int_list *axes)
{
	bool found = axes->count == 0;

	for (int i = 0; i < axes->count; i++)
		found = found || axes->items[i] == 0;
	return found;
}

/* A sum is a mean times the number of elements, which must not depend on the batch. */
static int scaled_to_sum(struct importer *im, const struct file_node *node, int mean,
			 const struct shape *from)
{
	float *count = arena_array(im->numbers, 1, sizeof(*count));
	struct constant number = {.type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
				  .is_float = true,
				  .count = 1,
				  .floats = count,
				  .initializer = -1};
	int factors[2] = {mean};

	*count = (float)(shape_elements(from) / shape_elements(import_shape(im, mean)));
	factors[1] = import_parameter(im, node, &number, NULL, VALUE_STATE, "count");
	return factors[1] == VALUE_NONE ? VALUE_NONE
					: import_append(im, node, OP_MUL, factors, 2, NULL);
}

/* ReduceMean, and ReduceSum over axes other than the batch. */
void import_reduce(struct importer *im, const struct file_node *node)
{
	bool sum = strcmp(node->proto->op_type, "ReduceSum") == 0;
	struct attributes attributes;
	struct shape shape, flat;
	int x;

	operator_default_attributes(OP_REDUCE_MEAN, &attributes);
	attributes.keep_dims = onnx_int(node->proto, "keepdims", 1) != 0;
	if (!import_need_value(im, node, 0, 0, &x))
		return;
	shape = flat = *import_shape(im, x);
	if (!read_axes(im, node, shape.rank, &attributes.ints))
		return;
	if (attributes.ints.count == 0 && onnx_int(node->proto, "noop_with_empty_axes", 0)) {
		import_set(im, node, 0, x);
		return;
	}
	if (sum && over_batch(&attributes.ints)) {
		import_refuse(im, node, "it sums over the batch, which is not supported");
		return;
	}
	if (!is_spatial(&shape, &attributes.ints)) {
		x = import_append(im, node, OP_REDUCE_MEAN, &x, 1, &attributes);
	} else {
		x = import_append(im, node, OP_GLOBAL_AVERAGE_POOL, &x, 1, NULL);
		flat.rank = 2;
		if (x != VALUE_NONE && !attributes.keep_dims)
			x = import_reshaped(im, node, x, &flat);
	}
	if (sum && x != VALUE_NONE)
		x = scaled_to_sum(im, node, x, &shape);
	import_set(im, node, 0, x);
}

/* Activations are real numbers of the cell's precision, so a cast to real numbers changes nothing.
 */
void import_cast(struct importer *im, const struct file_node *node)
{
	int64_t to = onnx_int(node->proto, "to", 0);
	const struct constant *like = import_constant(im, node, 1);
	int x;

	if (!import_need_value(im, node, 0, 0, &x))
		return;
	if (strcmp(node->proto->op_type, "CastLike") == 0)
		to = like ? like->type : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
	if (constant_is_float_type((int32_t)to))
		import_set(im, node, 0, x);
	else
		import_refuse(im, node, "it casts numbers that are computed from the data to %s",
			      onnx_type_name((int32_t)to));
}

void import_expand(struct importer *im, const struct file_node *node)
{
	struct attributes attributes;
	const struct constant *target;
	bool repeats = false;
	struct shape shape;
	int x = import_operand(im, node, 0);

	if (x == VALUE_NONE || !import_need_constant(im, node, 1, &target))
		return;
	if (target->is_float || target->count > TENSOR_MAX_RANK) {
		import_refuse(im, node, "its shape is not a list of at most %d integers",
			      TENSOR_MAX_RANK);
		return;
	}
	shape = *import_shape(im, x);
	attributes = (struct attributes){.ints = {.count = (int)target->count}};
	memcpy(attributes.ints.items, target->ints, (size_t)target->count * sizeof(int64_t));
	for (int64_t i = 0; i < target->count; i++)
		repeats = repeats || target->count > shape.rank ||
			  (target->ints[i] != 1 &&
			   target->ints[i] != shape.dims[shape.rank - target->count + i]);
	import_set(im, node, 0,
		   repeats ? import_append(im, node, OP_EXPAND, &x, 1, &attributes) : x);
}
