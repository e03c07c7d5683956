#include "adapters/tensorflow/tf_translate_internal.h"

#include <string.h>

#include "adapters/reasons.h"

static const int64_t to_plain[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};

const struct shape *tf_graph_shape(const struct tf_translation *t, int value)
{
	return &t->graph->values[value].shape;
}

struct shape tf_lying_shape(const struct tf_translation *t, int value)
{
	return layout_shape(&t->layouts, value);
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

static tf_operator *const operators[OP_COUNT] = {
	[OP_CONV] = tf_conv,
	[OP_CONV_GRAD_INPUT] = tf_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = tf_conv_grad_weight,
	[OP_MAX_POOL] = tf_max_pool,
	[OP_MAX_POOL_GRAD] = tf_max_pool_grad,
	[OP_AVERAGE_POOL] = tf_average_pool,
	[OP_AVERAGE_POOL_GRAD] = tf_average_pool_grad,
	[OP_GLOBAL_AVERAGE_POOL] = tf_reduce_mean,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = tf_reduce_mean_grad,
	[OP_REDUCE_MEAN] = tf_reduce_mean,
	[OP_REDUCE_MEAN_GRAD] = tf_reduce_mean_grad,
	[OP_GEMM] = tf_gemm,
	[OP_GEMM_GRAD_INPUT] = tf_gemm_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = tf_gemm_grad_weight,
	[OP_SOFTMAX] = tf_softmax,
	[OP_SOFTMAX_GRAD] = tf_softmax_grad,
	[OP_BATCH_NORM] = tf_batch_norm,
	[OP_BATCH_NORM_GRAD] = tf_batch_norm_grad,
	[OP_LRN] = tf_lrn,
	[OP_LRN_GRAD] = tf_lrn_grad,
	[OP_FLATTEN] = tf_reshape_node,
	[OP_FLATTEN_GRAD] = tf_reshape_grad,
	[OP_RESHAPE] = tf_reshape_node,
	[OP_RESHAPE_GRAD] = tf_reshape_grad,
	[OP_TRANSPOSE] = tf_transpose_node,
	[OP_CONCAT] = tf_concat,
	[OP_SLICE] = tf_slice_node,
	[OP_SLICE_GRAD] = tf_slice_grad,
	[OP_PAD] = tf_pad_node,
	[OP_PAD_GRAD] = tf_pad_grad,
	[OP_DROPOUT] = tf_dropout,
	[OP_DROPOUT_GRAD] = tf_dropout_grad,
	[OP_ADD] = tf_arithmetic,
	[OP_SUB] = tf_arithmetic,
	[OP_MUL] = tf_arithmetic,
	[OP_DIV] = tf_arithmetic,
	[OP_BROADCAST_GRAD] = tf_broadcast_grad,
	[OP_RELU_GRAD] = tf_function_grad,
	[OP_ELEMENTWISE_GRAD] = tf_function_grad,
	[OP_LSTM] = tf_lstm,
	[OP_LSTM_GRAD] = tf_lstm_grad,
	[OP_RNN] = tf_rnn,
	[OP_RNN_GRAD] = tf_rnn_grad,
	[OP_SOFTMAX_CROSS_ENTROPY] = tf_cross_entropy,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = tf_cross_entropy_grad,
	[OP_HALF_SQUARES] = tf_half_squares,
	[OP_HALF_SQUARES_GRAD] = tf_half_squares_grad,
};

enum prony_status tf_translate(struct tf_translation *t, int first, int end, struct error *err)
{
	for (int i = first; i < end && t->e.error.code == PRONY_OK; i++) {
		const struct node *node = &t->graph->nodes[i];

		t->e.scope = node->name;
		if (operators[node->op])
			operators[node->op](t, node);
		else
			tf_function(t, node);
	}
	t->e.scope = NULL;
	if (t->e.error.code != PRONY_OK)
		return error_set(err, t->e.error.code, "%s", t->e.error.text);
	return PRONY_OK;
}

/* Whether somebody else reads it, who may want it in another order. */
static bool is_shared(const struct graph *graph, const struct node *node, int input)
{
	int value = node->inputs[input], readers = 0;

	for (int i = 0; i < graph->forward_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++)
			readers += graph->nodes[i].inputs[k] == value;
	return readers > 1;
}

bool tf_is_own_weight(const struct graph *graph, const struct node *gemm)
{
	return graph->values[gemm->inputs[1]].kind == VALUE_PARAMETER && !is_shared(graph, gemm, 1);
}

static void refuse_weights(const struct graph *graph, const struct node *node,
			   struct strbuf *reasons)
{
	bool recurrent = node->op == OP_LSTM || node->op == OP_RNN;
	int first = 1, end = recurrent ? 4 : 2;

	if (!recurrent && node->op != OP_CONV)
		return;
	for (int i = first; i < end; i++) {
		const struct value *weight = &graph->values[node->inputs[i]];
		bool given = weight->kind == VALUE_PARAMETER ||
			     (weight->kind == VALUE_STATE && !recurrent);

		if (given && !is_shared(graph, node, i))
			continue;
		reasons_add(reasons, "%s %s: weights that %s", operator_name(node->op), node->name,
			    given ? "another operator reads as well" : "are not parameters");
		return;
	}
}

void tf_refusals(const struct graph *graph, struct strbuf *reasons)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		const char *name = operator_name(node->op);

		if (!operators[node->op] && !operator_row(node->op)->elementwise)
			reasons_add(reasons, "operator %s (%s) is not known here", name,
				    node->name);
		refuse_weights(graph, node, reasons);
		/* tf.nn.lrn has a radius, and its kernel takes images. */
		if (node->op == OP_LRN && node->attributes.size % 2 == 0)
			reasons_add(reasons, "LRN %s: an even size", node->name);
		if (node->op == OP_LRN && graph->values[node->inputs[0]].shape.rank != 4)
			reasons_add(reasons, "LRN %s: an input without height and width",
				    node->name);
		if (node->op == OP_BATCH_NORM && graph->values[node->inputs[0]].shape.rank != 2 &&
		    graph->values[node->inputs[0]].shape.rank != 4)
			reasons_add(reasons, "BatchNormalization %s: neither images nor vectors",
				    node->name);
		if (node->op == OP_MAX_POOL &&
		    (node->attributes.dilations[0] > 1 || node->attributes.dilations[1] > 1))
			reasons_add(reasons, "MaxPool %s: dilations", node->name);
	}
}
