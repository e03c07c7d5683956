/* Operators that move elements, and sums over axes. */
#include <string.h>

#include "adapters/xla/emit_internal.h"

/* Elements keep the graph's order, whatever lies in memory. */
static void reshape(struct emitter *l, const struct node *node, const struct shape *shape)
{
	struct hlo x = emit_input_as(l, node, 0, LAYOUT_PLAIN, l->compute);

	emit_output_as(l, node, 0, hlo_reshape(&l->h, x, shape), LAYOUT_PLAIN);
}

void emit_reshape(struct emitter *l, const struct node *node)
{
	reshape(l, node, emit_shape(l, node->outputs[0]));
}

void emit_reshape_grad(struct emitter *l, const struct node *node)
{
	reshape(l, node, emit_shape(l, node->outputs[0]));
}

void emit_transpose(struct emitter *l, const struct node *node)
{
	struct hlo x = emit_input(l, node, 0);
	int rank = x.shape.rank, from[TENSOR_MAX_RANK], place[TENSOR_MAX_RANK];
	const int *order = layout_axes(emit_layout(rank));

	for (int i = 0; i < rank; i++)
		place[node->attributes.ints.items[i]] = i;
	for (int i = 0; i < rank; i++)
		from[i] = place[order[i]];
	emit_output(l, node, 0, emit_arrange(l, x, from, order, rank));
}

void emit_concat(struct emitter *l, const struct node *node)
{
	struct hlo parts[NODE_MAX_INPUTS];

	for (int i = 0; i < node->input_count; i++)
		parts[i] = emit_input(l, node, i);
	emit_output(l, node, 0,
		    hlo_concatenate(&l->h, parts, node->input_count,
				    emit_axis(parts[0].shape.rank, node->attributes.axis)));
}

void emit_slice(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo x = emit_input(l, node, 0);

	emit_output(
		l, node, 0,
		hlo_slice(&l->h, x, emit_axis(x.shape.rank, a->axis), a->start, a->end, a->step));
}

void emit_slice_grad(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo dy = emit_input(l, node, 0);
	int axis = emit_axis(dy.shape.rank, a->axis);
	int64_t low[TENSOR_MAX_RANK] = {0}, high[TENSOR_MAX_RANK] = {0};
	int64_t between[TENSOR_MAX_RANK] = {0};

	low[axis] = a->start;
	between[axis] = a->step - 1;
	high[axis] = emit_shape(l, node->outputs[0])->dims[a->axis] - a->start -
		     (dy.shape.dims[axis] - 1) * a->step - 1;
	emit_output(l, node, 0, hlo_pad(&l->h, dy, 0, low, high, between));
}

void emit_pad(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo x = emit_input(l, node, 0);
	const int *order = layout_axes(emit_layout(x.shape.rank));
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK], none[TENSOR_MAX_RANK] = {0};

	for (int i = 0; i < x.shape.rank; i++) {
		low[i] = a->ints.items[order[i]];
		high[i] = a->ints.items[x.shape.rank + order[i]];
	}
	emit_output(l, node, 0, hlo_pad(&l->h, x, a->value, low, high, none));
}

void emit_pad_grad(struct emitter *l, const struct node *node)
{
	struct hlo dx = emit_input(l, node, 0);
	const struct shape *shape = emit_shape(l, node->outputs[0]);

	for (int i = 0; i < shape->rank; i++) {
		int64_t start = node->attributes.ints.items[i];

		dx = hlo_slice(&l->h, dx, emit_axis(shape->rank, i), start, start + shape->dims[i],
			       1);
	}
	emit_output(l, node, 0, dx);
}

/* Axes of what ReduceMean gives, as those of what it takes; order[i] of dimension i in memory. */
static void mean_axes(const struct node *node, int rank, int *order)
{
	const struct int_list *reduced = &node->attributes.ints;
	int kept[TENSOR_MAX_RANK], count = 0, next = 0;

	for (int i = 0; i < rank; i++) {
		bool gone = next < reduced->count && reduced->items[next] == i;

		next += gone;
		if (!gone || node->attributes.keep_dims)
			kept[count++] = i;
	}
	for (int i = 0; i < count; i++)
		order[i] = kept[layout_axes(emit_layout(count))[i]];
}

static double mean_count(const struct node *node, const struct shape *shape)
{
	double count = 1;

	for (int i = 0; i < node->attributes.ints.count; i++)
		count *= (double)shape->dims[node->attributes.ints.items[i]];
	return count;
}

void emit_reduce_mean(struct emitter *l, const struct node *node)
{
	struct hlo x = emit_input_f32(l, node, 0);
	const struct shape *shape = emit_shape(l, node->inputs[0]);
	int rank = shape->rank, to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK];
	int over[TENSOR_MAX_RANK], count = 0, left = 0;
	const int *order = layout_axes(emit_layout(rank));

	for (int i = 0; i < rank; i++) {
		bool reduced = false;

		for (int k = 0; k < node->attributes.ints.count; k++)
			reduced |= node->attributes.ints.items[k] == order[i];
		if (reduced)
			over[count++] = i;
		else
			from[left++] = order[i];
	}
	x = hlo_reduce(&l->h, "add", x, over, count);
	x = hlo_with(&l->h, "multiply", x, 1 / mean_count(node, shape));
	mean_axes(node, rank, to);
	emit_output(l, node, 0,
		    emit_arrange(l, x, from, to, emit_shape(l, node->outputs[0])->rank));
}

void emit_reduce_mean_grad(struct emitter *l, const struct node *node)
{
	const struct shape *shape = emit_shape(l, node->outputs[0]);
	struct hlo dy = emit_input(l, node, 0);
	int order[TENSOR_MAX_RANK];

	mean_axes(node, shape->rank, order);
	dy = hlo_with(&l->h, "multiply", dy, 1 / mean_count(node, shape));
	emit_output(l, node, 0, emit_spread(l, dy, order, shape));
}

/* Axis i of the result is axis i + skipped of dy. */
void emit_broadcast_grad(struct emitter *l, const struct node *node)
{
	const struct shape *to = emit_shape(l, node->outputs[0]);
	const struct shape *shape = emit_shape(l, node->inputs[0]);
	const int *order = layout_axes(emit_layout(shape->rank));
	int skipped = shape->rank - to->rank;
	int over[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], count = 0, left = 0;
	struct hlo dx = emit_input_f32(l, node, 0);

	for (int i = 0; i < shape->rank; i++) {
		int axis = order[i] - skipped;

		if (axis < 0 || to->dims[axis] != shape->dims[order[i]])
			over[count++] = i;
		else
			from[left++] = axis;
	}
	dx = hlo_reduce(&l->h, "add", dx, over, count);
	emit_output(l, node, 0,
		    emit_arrange(l, dx, from, layout_axes(emit_layout(to->rank)), to->rank));
}
