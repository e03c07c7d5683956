/* Converts values between operators: layouts, types and shapes. */
#include <assert.h>

#include "adapters/xla/emit_internal.h"

const struct shape *emit_shape(const struct emitter *l, int value)
{
	return &l->graph->values[value].shape;
}

struct shape emit_lying(const struct emitter *l, int value)
{
	return layouts_shape(&l->layouts, value);
}

int emit_axis(const struct emitter *l, int value, int64_t axis)
{
	return layouts_axis(&l->layouts, value, (int)axis);
}

void emit_order(const struct emitter *l, int value, int *out)
{
	for (int i = 0; i < emit_shape(l, value)->rank; i++)
		out[emit_axis(l, value, i)] = i;
}

int emit_channel(int rank)
{
	return rank == 4 ? 3 : 1;
}

void emit_part_axes(const struct emitter *l, const struct reduction *r, int part, int *out)
{
	for (int i = 0; i < emit_shape(l, part)->rank; i++)
		out[emit_axis(l, part, i)] = r->axes[i];
}

struct hlo emit_value_as(struct emitter *l, int value, enum hlo_type type)
{
	return hlo_convert(&l->h, l->values[value], type);
}

struct hlo emit_input(struct emitter *l, const struct node *node, int i)
{
	return emit_value_as(l, node->inputs[i], l->compute);
}

struct hlo emit_input_f32(struct emitter *l, const struct node *node, int i)
{
	return emit_value_as(l, node->inputs[i], HLO_F32);
}

void emit_output(struct emitter *l, const struct node *node, int i, struct hlo y)
{
	int value = i < node->output_count ? node->outputs[i] : VALUE_NONE;

	if (value == VALUE_NONE)
		return;
	const struct shape lies = emit_lying(l, value);
	assert(shape_equal(&y.shape, &lies));
	(void)lies;
	/* Sums over the batch, such as losses and statistics, stay in fp32. */
	if (l->graph->values[value].kind == VALUE_ACTIVATION && y.shape.rank > 1)
		y = hlo_convert(&l->h, y, l->compute);
	l->values[value] = y;
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

struct hlo emit_spread(struct emitter *l, struct hlo x, const int *from, int value)
{
	int order[TENSOR_MAX_RANK], labels[TENSOR_MAX_RANK], places[TENSOR_MAX_RANK], count = 0;
	struct shape lies = emit_lying(l, value);

	if (shape_equal(&x.shape, &lies))
		return x;
	emit_order(l, value, order);
	for (int i = 0; i < lies.rank; i++) {
		int at = find(from, x.shape.rank, order[i]);

		if (at < 0 || x.shape.dims[at] == 1)
			continue;
		labels[count] = order[i];
		places[count++] = i;
	}
	return hlo_broadcast(&l->h, emit_arrange(l, x, from, labels, count), places, &lies);
}

struct hlo emit_channels(struct emitter *l, struct hlo x, const struct shape *lies)
{
	const int channel = emit_channel(lies->rank);

	return hlo_broadcast(&l->h, x, &channel, lies);
}

struct hlo emit_sum_channels(struct emitter *l, struct hlo x)
{
	int order[TENSOR_MAX_RANK], count = 0;

	for (int i = 0; i < x.shape.rank; i++)
		if (i != emit_channel(x.shape.rank))
			order[count++] = i;
	return hlo_reduce(&l->h, "add", x, order, count);
}
