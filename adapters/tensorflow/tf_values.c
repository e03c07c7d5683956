/* What the files of the translation share. */
#include "adapters/tensorflow/tf_translate_internal.h"

static const int64_t to_plain[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};

const struct shape *tf_graph_shape(const struct tf_translation *t, int value)
{
	return &t->graph->values[value].shape;
}

struct shape tf_lying_shape(const struct tf_translation *t, int value)
{
	return layouts_shape(&t->layouts, value);
}

const struct node *tf_forward(const struct tf_translation *t, const struct node *gradient)
{
	return &t->graph->nodes[gradient->differentiates];
}

struct tf_output *tf_kept(struct tf_translation *t, const struct node *forward)
{
	return &t->kept[forward - t->graph->nodes];
}

const char *tf_data_format(const struct tf_translation *t)
{
	return t->last ? "NHWC" : "NCHW";
}

struct tf_output tf_take(struct tf_translation *t, const struct node *node, int i)
{
	return t->values[node->inputs[i]];
}

/* A transposition that moves only order of one element is a reshape. */
static struct tf_output turn(struct tf_translation *t, struct tf_output x, int value,
			     const int64_t *order, const struct shape *to)
{
	const int64_t *dims = tf_graph_shape(t, value)->dims;

	if (dims[1] == 1 || dims[2] * dims[3] == 1)
		return tf_reshape(&t->e, x, to);
	return tf_transpose(&t->e, x, order, 4);
}

struct tf_output tf_take_plain(struct tf_translation *t, const struct node *node, int i)
{
	int value = node->inputs[i];
	const struct shape *shape = tf_graph_shape(t, value);
	int64_t channels = t->layouts.channels[value];
	struct tf_output x = t->values[value], *plain = &t->plain[value];

	if (t->layouts.values[value] == LAYOUT_GRAPH)
		return x;
	if (plain->operation)
		return *plain;
	if (channels) {
		struct shape split = {
			.rank = 3, .dims = {shape->dims[0], shape->dims[1] / channels, channels}};

		x = tf_reshape(&t->e, x, &split);
		*plain = tf_reshape(&t->e, tf_transpose(&t->e, x, (const int64_t[]){0, 2, 1}, 3),
				    shape);
	} else {
		*plain = turn(t, x, value, to_plain, shape);
	}
	return *plain;
}

static void check_shape(struct tf_translation *t, const struct node *node, int value,
			struct tf_output y)
{
	struct shape have = tf_shape_of(&t->e, y), want = tf_lying_shape(t, value);
	char have_text[96], want_text[96];

	if (t->e.error.code != PRONY_OK || shape_equal(&have, &want))
		return;
	shape_text(&have, have_text, sizeof(have_text));
	shape_text(&want, want_text, sizeof(want_text));
	error_set(&t->e.error, PRONY_MISMATCH, "TensorFlow gives %s (%s) the shape %s, not %s",
		  node->name, operator_name(node->op), have_text, want_text);
}

void tf_give(struct tf_translation *t, const struct node *node, int i, struct tf_output y)
{
	int value = node->outputs[i];

	if (value == VALUE_NONE)
		return;
	check_shape(t, node, value, y);
	t->values[value] = y;
}

void tf_give_plain(struct tf_translation *t, const struct node *node, int i, struct tf_output y)
{
	int value = node->outputs[i];
	struct shape lies = tf_lying_shape(t, value);

	if (t->layouts.values[value] != LAYOUT_GRAPH) {
		t->plain[value] = y;
		y = turn(t, y, value, to_last, &lies);
	}
	tf_give(t, node, i, y);
}

struct tf_output tf_pad(struct tf_translation *t, struct tf_output x, const int64_t *pads, int rank,
			double value)
{
	const struct shape shape = {.rank = 2, .dims = {rank, 2}};
	int32_t around[2 * TENSOR_MAX_RANK];
	struct tf_output paddings;

	for (int i = 0; i < 2 * rank; i++)
		around[i / rank + i % rank * 2] = (int32_t)pads[i];
	paddings = tf_constant(&t->e, TF_TYPE_INT32, &shape, around);
	if (value == 0)
		return tf_binary(&t->e, "Pad", x, paddings);
	return tf_op(&t->e, "PadV2", TF_IN(x, paddings, tf_number(&t->e, x, value)), NULL);
}

struct tf_output tf_reduce(struct tf_translation *t, const char *type, struct tf_output x,
			   const bool *reduced, int rank)
{
	int64_t order[TENSOR_MAX_RANK];
	int count = 0;

	for (int i = 0; i < rank; i++)
		if (reduced[i])
			order[count++] = i;
	return tf_op(&t->e, type, TF_IN(x, tf_indices(&t->e, order, count)),
		     TF_WITH(tf_bool("keep_dims", true)));
}

/* Whether somebody else reads it, who may want it in another order. */
bool tf_is_shared(const struct graph *graph, const struct node *node, int input)
{
	int value = node->inputs[input], readers = 0;

	for (int i = 0; i < graph->forward_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++)
			readers += graph->nodes[i].inputs[k] == value;
	return readers > 1;
}

bool tf_is_own_weight(const struct graph *graph, const struct node *gemm)
{
	return graph->values[gemm->inputs[1]].kind == VALUE_PARAMETER &&
	       !tf_is_shared(graph, gemm, 1);
}
