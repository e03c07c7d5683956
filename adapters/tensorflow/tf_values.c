/* Shared functions of the translation: inputs, outputs, shapes and common operations. */
#include "adapters/tensorflow/tf_translate_internal.h"

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

struct tf_output tf_turn(struct tf_translation *t, struct tf_output x, const struct shape *shape,
			 bool back)
{
	static const int64_t to_graph[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
	const int64_t *d = shape->dims;
	const struct shape lies = {.rank = 4, .dims = {d[0], d[2], d[3], d[1]}};

	if (d[1] == 1 || d[2] * d[3] == 1)
		return tf_reshape(&t->e, x, back ? &lies : shape);
	return tf_transpose(&t->e, x, back ? to_last : to_graph, 4);
}

struct tf_output tf_take_plain(struct tf_translation *t, const struct node *node, int i)
{
	int value = node->inputs[i];
	struct tf_output *plain = &t->plain[value];

	/* A value flattened in memory order has no reader that needs another order. */
	if (t->layouts.values[value] != LAYOUT_LAST)
		return t->values[value];
	if (!plain->operation)
		*plain = tf_turn(t, t->values[value], tf_graph_shape(t, value), false);
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
	error_set(&t->e.error, PRONY_MISMATCH,
		  "%s (%s) has the shape %s in TensorFlow, but %s in the network", node->name,
		  operator_name(node->op), have_text, want_text);
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

	if (t->layouts.values[value] != LAYOUT_GRAPH) {
		t->plain[value] = y;
		y = tf_turn(t, y, tf_graph_shape(t, value), true);
	}
	tf_give(t, node, i, y);
}

struct tf_output tf_matmul(struct tf_translation *t, struct tf_output a, struct tf_output b,
			   bool turn_a, bool turn_b)
{
	return tf_op(&t->e, "MatMul", TF_IN(a, b),
		     TF_WITH(TF_BOOL("transpose_a", turn_a), TF_BOOL("transpose_b", turn_b)));
}

struct tf_output tf_join(struct tf_translation *t, const struct tf_output *parts, int64_t count,
			 int axis)
{
	struct tf_output at;

	if (count == 1)
		return parts[0];
	at = tf_index(&t->e, axis);
	return tf_op_list(&t->e, "ConcatV2", parts, (int)count, &at, 1, NULL);
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
		     TF_WITH(TF_BOOL("keep_dims", true)));
}

bool tf_is_own_weight(const struct graph *graph, const struct node *gemm)
{
	return graph->values[gemm->inputs[1]].kind == VALUE_PARAMETER &&
	       graph_forward_readers(graph, gemm->inputs[1]) == 1;
}
