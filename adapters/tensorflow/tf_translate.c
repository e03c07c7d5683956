#include "adapters/tensorflow/tf_translate.h"

#include "adapters/reasons.h"
#include "adapters/tensorflow/tf_translate_internal.h"

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

		if (given && !tf_is_shared(graph, node, i))
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
