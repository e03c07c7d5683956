/* Translates a graph to TensorFlow operations, node by node. */
#include "adapters/tensorflow/tf_translate.h"

#include "adapters/reasons.h"
#include "adapters/tensorflow/tf_translate_internal.h"

/* The translation of an operator; its gradient (of the input, or of everything); the gradient of
 * its weight. */
static const struct row {
	tf_operator *forward, *gradient, *of_weight;
} rows[OP_COUNT] = {
	[OP_CONV] = {tf_conv, tf_conv_grad_input, tf_conv_grad_weight},
	[OP_CONV_TRANSPOSE] = {tf_conv_transpose, tf_conv_transpose_grad_input,
			       tf_conv_transpose_grad_weight},
	[OP_MAX_POOL] = {tf_max_pool, tf_max_pool_grad, NULL},
	[OP_AVERAGE_POOL] = {tf_average_pool, tf_average_pool_grad, NULL},
	[OP_GLOBAL_AVERAGE_POOL] = {tf_mean, tf_mean_grad, NULL},
	[OP_REDUCE_MEAN] = {tf_mean, tf_mean_grad, NULL},
	[OP_GEMM] = {tf_gemm, tf_gemm_grad_input, tf_gemm_grad_weight},
	[OP_MATMUL] = {tf_matmul_node, tf_broadcast_grad, NULL},
	[OP_SOFTMAX] = {tf_softmax, tf_softmax_grad, NULL},
	[OP_BATCH_NORM] = {tf_batch_norm, tf_batch_norm_grad, NULL},
	[OP_LAYER_NORM] = {tf_layer_norm, tf_layer_norm_grad, NULL},
	[OP_RMS_NORM] = {tf_layer_norm, tf_layer_norm_grad, NULL},
	[OP_GROUP_NORM] = {tf_group_norm, tf_group_norm_grad, NULL},
	[OP_INSTANCE_NORM] = {tf_group_norm, tf_group_norm_grad, NULL},
	[OP_RESIZE] = {tf_resize, tf_resize_grad, NULL},
	[OP_LRN] = {tf_lrn, tf_lrn_grad, NULL},
	[OP_FLATTEN] = {tf_reshape_node, tf_reshape_grad, NULL},
	[OP_RESHAPE] = {tf_reshape_node, tf_reshape_grad, NULL},
	[OP_TRANSPOSE] = {tf_transpose_node, NULL, NULL},
	[OP_EXPAND] = {tf_expand, tf_broadcast_grad, NULL},
	[OP_CONCAT] = {tf_concat, NULL, NULL},
	[OP_SLICE] = {tf_slice_node, tf_slice_grad, NULL},
	[OP_PAD] = {tf_pad_node, tf_pad_grad, NULL},
	[OP_GATHER] = {tf_gather, tf_gather_grad, NULL},
	[OP_DROPOUT] = {tf_dropout, tf_dropout_grad, NULL},
	[OP_ADD] = {tf_arithmetic, tf_broadcast_grad, NULL},
	[OP_SUB] = {tf_arithmetic, tf_broadcast_grad, NULL},
	[OP_MUL] = {tf_arithmetic, tf_broadcast_grad, NULL},
	[OP_DIV] = {tf_arithmetic, tf_broadcast_grad, NULL},
	[OP_LSTM] = {tf_lstm, tf_lstm_grad, NULL},
	[OP_GRU] = {tf_steps, tf_steps_grad, NULL},
	[OP_RNN] = {tf_steps, tf_steps_grad, NULL},
	[OP_SOFTMAX_CROSS_ENTROPY] = {tf_cross_entropy, tf_cross_entropy_grad, NULL},
	[OP_HALF_SQUARES] = {tf_half_squares, tf_half_squares_grad, NULL},
};
static const struct row elementwise = {tf_function, tf_function_grad, NULL};

static void translate_node(struct tf_translation *t, const struct node *node)
{
	bool gradient = node->differentiates >= 0;
	bool of_weight = node->op == OP_CONV_GRAD_WEIGHT || node->op == OP_GEMM_GRAD_WEIGHT ||
			 node->op == OP_CONV_TRANSPOSE_GRAD_WEIGHT;
	enum op op = gradient ? tf_forward(t, node)->op : node->op;
	const struct row *row = rows[op].forward ? &rows[op] : &elementwise;

	t->e.scope = node->name;
	(of_weight ? row->of_weight : gradient ? row->gradient : row->forward)(t, node);
}

enum prony_status tf_translate(struct tf_translation *t, int first, int end, struct error *err)
{
	for (int i = first; i < end && t->e.error.code == PRONY_OK; i++) {
		t->made[i].first = t->e.count;
		translate_node(t, &t->graph->nodes[i]);
		t->made[i].end = t->e.count;
	}
	t->e.scope = NULL;
	return tf_emit_end(&t->e, err);
}

static void refuse_weights(const struct graph *graph, const struct node *node,
			   struct strbuf *reasons)
{
	bool recurrent = node->op == OP_LSTM || node->op == OP_GRU || node->op == OP_RNN;
	int first = 1, end = recurrent ? 4 : 2;

	if (!recurrent && node->op != OP_CONV && node->op != OP_CONV_TRANSPOSE)
		return;
	for (int i = first; i < end; i++) {
		const struct value *weight = &graph->values[node->inputs[i]];
		bool given = weight->kind == VALUE_PARAMETER ||
			     (weight->kind == VALUE_STATE && !recurrent);

		if (given && graph_forward_readers(graph, node->inputs[i]) == 1)
			continue;
		reasons_add(reasons, "%s %s: %s", operator_name(node->op), node->name,
			    given ? "another operator also reads its weights"
				  : "its weights are not parameters");
		return;
	}
}

/* TensorFlow's own kernels of depthwise convolutions ignore dilations; only oneDNN's forward
 * kernel, since 2.x, has them. The gradients of 1.15 say that they have none. */
static void refuse_dilations(const struct graph *graph, const struct node *node, bool training,
			     bool old, struct strbuf *reasons)
{
	const struct attributes *a = &node->attributes;
	bool transposed = node->op == OP_CONV_TRANSPOSE;

	if ((node->op != OP_CONV && !transposed) || (a->dilations[0] == 1 && a->dilations[1] == 1))
		return;
	if (tf_is_depthwise(graph, node) && (old || transposed || training))
		reasons_add_node(reasons, node,
				 "a depthwise convolution with dilations is not supported");
	else if (old && (transposed || training))
		reasons_add_node(reasons, node, "TensorFlow 1.15 has no gradient with dilations");
}

void tf_refusals(const struct graph *graph, bool training, bool old, struct strbuf *reasons)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (!rows[node->op].forward && !operator_row(node->op)->elementwise)
			reasons_add_operator(reasons, node);
		refuse_weights(graph, node, reasons);
		refuse_dilations(graph, node, training, old, reasons);
		/* tf.nn.lrn has a radius, so the size must be odd; its kernel takes images only. */
		if (node->op == OP_LRN && node->attributes.size % 2 == 0)
			reasons_add(reasons, "LRN %s: the size must be odd", node->name);
		if (node->op == OP_LRN && graph->values[node->inputs[0]].shape.rank != 4)
			reasons_add(reasons, "LRN %s: the input has no height and width",
				    node->name);
		if (node->op == OP_BATCH_NORM && graph->values[node->inputs[0]].shape.rank != 2 &&
		    graph->values[node->inputs[0]].shape.rank != 4)
			reasons_add(reasons,
				    "BatchNormalization %s: only inputs of 2 or 4 dimensions",
				    node->name);
		if (node->op == OP_MAX_POOL &&
		    (node->attributes.dilations[0] > 1 || node->attributes.dilations[1] > 1))
			reasons_add(reasons, "MaxPool %s: dilations are not supported", node->name);
	}
}
