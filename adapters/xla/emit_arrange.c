/* Writes operators that move elements, and sums over axes. */
#include <string.h>

#include "adapters/xla/emit_internal.h"

/* Transposes x from the memory order of a value to graph order, or back. */
static struct hlo turned(struct emitter *l, struct hlo x, int value, bool back)
{
	static const int given[] = {0, 1, 2, 3, 4, 5, 6, 7};
	int order[TENSOR_MAX_RANK];

	emit_order(l, value, order);
	return emit_arrange(l, x, back ? given : order, back ? order : given, x.shape.rank);
}

/* A reshape keeps the graph order of elements. Flattening an image in memory order, and the
 * gradient of that, need no transposition. */
void emit_reshape(struct emitter *l, const struct node *node)
{
	bool gradient = node->differentiates >= 0;
	int x = node->inputs[0], y = node->outputs[0];
	int flat = gradient ? l->graph->nodes[node->differentiates].outputs[0] : y;
	struct shape lies = emit_lying(l, y);
	struct hlo moved = emit_input(l, node, 0);

	if (l->layouts.values[flat] == LAYOUT_LAST_FLAT) {
		emit_output(l, node, 0, hlo_reshape(&l->h, moved, &lies));
		return;
	}
	moved = hlo_reshape(&l->h, turned(l, moved, x, false), emit_shape(l, y));
	emit_output(l, node, 0, turned(l, moved, y, true));
}

void emit_transpose(struct emitter *l, const struct node *node)
{
	struct hlo x = emit_input(l, node, 0);
	int rank = x.shape.rank, from[TENSOR_MAX_RANK], place[TENSOR_MAX_RANK];
	int order[TENSOR_MAX_RANK];

	emit_order(l, node->inputs[0], order);
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
				    emit_axis(l, node->outputs[0], node->attributes.axis)));
}

void emit_slice(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo x = emit_input(l, node, 0);

	emit_output(l, node, 0,
		    hlo_slice(&l->h, x, emit_axis(l, node->inputs[0], a->axis), a->start, a->end,
			      a->step));
}

void emit_slice_grad(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo dy = emit_input(l, node, 0);
	int axis = emit_axis(l, node->outputs[0], a->axis);
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
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK], none[TENSOR_MAX_RANK] = {0};
	int order[TENSOR_MAX_RANK];

	emit_order(l, node->inputs[0], order);
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

		dx = hlo_slice(&l->h, dx, emit_axis(l, node->outputs[0], i), start,
			       start + shape->dims[i], 1);
	}
	emit_output(l, node, 0, dx);
}

/* Sums x, or takes its mean, over the axes in r, and sets output 0. */
static void give_reduced(struct emitter *l, const struct node *node, struct hlo x,
			 const struct reduction *r, bool mean)
{
	int rank = emit_shape(l, node->outputs[0])->rank, order[TENSOR_MAX_RANK];
	int over[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], count = 0, left = 0;

	emit_order(l, node->inputs[0], order);
	for (int i = 0; i < x.shape.rank; i++) {
		if (r->summed[order[i]])
			over[count++] = i;
		else
			from[left++] = order[i];
	}
	x = hlo_reduce(&l->h, "add", x, over, count);
	if (mean)
		x = hlo_with(&l->h, "multiply", x, 1 / (double)r->count);
	emit_part_axes(l, r, node->outputs[0], to);
	emit_output(l, node, 0, emit_arrange(l, x, from, to, rank));
}

void emit_mean(struct emitter *l, const struct node *node)
{
	struct reduction r = reduction_of_mean(l->graph, node);

	give_reduced(l, node, emit_input_f32(l, node, 0), &r, true);
}

void emit_mean_grad(struct emitter *l, const struct node *node)
{
	const struct node *mean = &l->graph->nodes[node->differentiates];
	struct reduction r = reduction_of_mean(l->graph, mean);
	struct hlo dy = emit_input(l, node, 0);
	int from[TENSOR_MAX_RANK];

	emit_part_axes(l, &r, node->inputs[0], from);
	dy = hlo_with(&l->h, "multiply", dy, 1 / (double)r.count);
	emit_output(l, node, 0, emit_spread(l, dy, from, node->outputs[0]));
}

void emit_broadcast_grad(struct emitter *l, const struct node *node)
{
	struct reduction r = reduction_of_broadcast(emit_shape(l, node->inputs[0]),
						    emit_shape(l, node->outputs[0]));

	give_reduced(l, node, emit_input_f32(l, node, 0), &r, false);
}
