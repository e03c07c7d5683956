/* Values on their way between operators: layouts, types, and how shapes are matched. */
#include <assert.h>

#include "adapters/xla/emit_internal.h"

const int *layout_axes(enum memory_order layout)
{
	static const int order[][TENSOR_MAX_RANK] = {
		[LAYOUT_PLAIN] = {0, 1, 2, 3, 4, 5, 6, 7},
		[LAYOUT_NHWC] = {0, 2, 3, 1},
		[LAYOUT_HWIO] = {2, 3, 1, 0},
	};

	return order[layout];
}

struct shape layout_shape(enum memory_order layout, const struct shape *shape)
{
	const int *order = layout_axes(layout);
	struct shape lies = {.rank = shape->rank};

	for (int i = 0; i < shape->rank; i++)
		lies.dims[i] = shape->dims[order[i]];
	return lies;
}

enum memory_order emit_layout(int rank)
{
	return rank == 4 ? LAYOUT_NHWC : LAYOUT_PLAIN;
}

int emit_axis(int rank, int64_t axis)
{
	const int *order = layout_axes(emit_layout(rank));
	int at = 0;

	while (order[at] != axis)
		at++;
	return at;
}

const struct shape *emit_shape(const struct emitter *l, int value)
{
	return &l->graph->values[value].shape;
}

struct hlo emit_value_as(struct emitter *l, int value, enum memory_order layout, enum hlo_type type)
{
	struct hlo x = l->values[value].hlo;

	x = hlo_convert(&l->h, x, type);
	return emit_arrange(l, x, layout_axes(l->values[value].layout), layout_axes(layout),
			    x.shape.rank);
}

struct hlo emit_input_as(struct emitter *l, const struct node *node, int i,
			 enum memory_order layout, enum hlo_type type)
{
	return emit_value_as(l, node->inputs[i], layout, type);
}

struct hlo emit_input(struct emitter *l, const struct node *node, int i)
{
	return emit_input_as(l, node, i, emit_layout(emit_shape(l, node->inputs[i])->rank),
			     l->compute);
}

struct hlo emit_input_f32(struct emitter *l, const struct node *node, int i)
{
	return emit_input_as(l, node, i, emit_layout(emit_shape(l, node->inputs[i])->rank),
			     HLO_F32);
}

void emit_output_as(struct emitter *l, const struct node *node, int i, struct hlo y,
		    enum memory_order layout)
{
	int value = i < node->output_count ? node->outputs[i] : VALUE_NONE;

	if (value == VALUE_NONE)
		return;
	/* What is summed up over the batch, as losses and statistics are, stays in fp32. */
	if (l->graph->values[value].kind == VALUE_ACTIVATION && y.shape.rank > 1)
		y = hlo_convert(&l->h, y, l->compute);
	l->values[value].hlo = y;
	l->values[value].layout = layout;
}

void emit_output(struct emitter *l, const struct node *node, int i, struct hlo y)
{
	emit_output_as(l, node, i, y, emit_layout(y.shape.rank));
}

static int find(const int *list, int count, int wanted)
{
	for (int i = 0; i < count; i++)
		if (list[i] == wanted)
			return i;
	return -1;
}

struct hlo emit_arrange(struct emitter *l, struct hlo x, const int *from, const int *to, int count)
{
	struct shape kept = {.rank = 0}, full = {.rank = count};
	int labels[TENSOR_MAX_RANK], order[TENSOR_MAX_RANK], used = 0;

	for (int i = 0; i < x.shape.rank; i++) {
		if (find(to, count, from[i]) < 0) {
			assert(x.shape.dims[i] == 1);
			continue;
		}
		labels[kept.rank] = from[i];
		kept.dims[kept.rank++] = x.shape.dims[i];
	}
	for (int i = 0; i < count; i++) {
		int at = find(labels, kept.rank, to[i]);

		full.dims[i] = at >= 0 ? kept.dims[at] : 1;
		if (at >= 0)
			order[used++] = at;
	}
	x = hlo_transpose(&l->h, hlo_reshape(&l->h, x, &kept), order);
	return hlo_reshape(&l->h, x, &full);
}

struct hlo emit_spread(struct emitter *l, struct hlo x, const int *from, const struct shape *shape)
{
	enum memory_order layout = emit_layout(shape->rank);
	const int *order = layout_axes(layout);
	struct shape lies = layout_shape(layout, shape);
	int labels[TENSOR_MAX_RANK], places[TENSOR_MAX_RANK], count = 0;

	for (int i = 0; i < shape->rank; i++) {
		int at = find(from, x.shape.rank, order[i]);

		if (at < 0 || x.shape.dims[at] == 1)
			continue;
		labels[count] = order[i];
		places[count++] = i;
	}
	return hlo_broadcast(&l->h, emit_arrange(l, x, from, labels, count), places, &lies);
}

struct hlo emit_channels(struct emitter *l, struct hlo x, const struct shape *shape)
{
	const int channel = 1;

	return emit_spread(l, x, &channel, shape);
}

struct hlo emit_sum_channels(struct emitter *l, struct hlo x)
{
	int order[TENSOR_MAX_RANK], count = 0;

	for (int i = 0; i < x.shape.rank; i++)
		if (i != emit_axis(x.shape.rank, 1))
			order[count++] = i;
	return hlo_reduce(&l->h, "add", x, order, count);
}
