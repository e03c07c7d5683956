/* Translates a graph into an MXNet symbol with its heads. */
#include "adapters/mxnet/mxnet_symbol.h"

#include "adapters/mxnet/mxnet_translate_internal.h"
#include "adapters/reasons.h"

/* For each operator: why a node cannot be translated to MXNet (NULL: it always can), and its
 * translation. */
static const struct row {
	mx_refusal *refuse;
	mx_translator *translate;
} rows[OP_COUNT] = {
	[OP_CONV] = {NULL, mx_conv},
	[OP_CONV_TRANSPOSE] = {NULL, mx_conv_transpose},
	[OP_MAX_POOL] = {mx_refuse_pool, mx_pool},
	[OP_AVERAGE_POOL] = {mx_refuse_pool, mx_pool},
	[OP_GLOBAL_AVERAGE_POOL] = {NULL, mx_global_pool},
	[OP_GEMM] = {NULL, mx_gemm},
	[OP_MATMUL] = {NULL, mx_matmul},
	[OP_SOFTMAX] = {NULL, mx_softmax},
	[OP_BATCH_NORM] = {NULL, mx_batch_norm},
	[OP_LAYER_NORM] = {NULL, mx_layer_norm},
	[OP_RMS_NORM] = {NULL, mx_layer_norm},
	[OP_GROUP_NORM] = {NULL, mx_group_norm},
	[OP_INSTANCE_NORM] = {NULL, mx_group_norm},
	[OP_RESIZE] = {NULL, mx_resize},
	[OP_LRN] = {mx_refuse_lrn, mx_lrn},
	[OP_FLATTEN] = {NULL, mx_flatten},
	[OP_RESHAPE] = {mx_refuse_scalar, mx_reshape},
	[OP_IDENTITY] = {NULL, mx_identity},
	[OP_TRANSPOSE] = {NULL, mx_transpose},
	[OP_EXPAND] = {NULL, mx_expand},
	[OP_CONCAT] = {NULL, mx_concat},
	[OP_SLICE] = {NULL, mx_slice},
	[OP_PAD] = {mx_refuse_pad, mx_pad},
	[OP_REDUCE_MEAN] = {mx_refuse_scalar, mx_reduce_mean},
	[OP_GATHER] = {NULL, mx_gather},
	[OP_DROPOUT] = {NULL, mx_dropout},
	[OP_ADD] = {mx_refuse_scalar, mx_arithmetic},
	[OP_SUB] = {mx_refuse_scalar, mx_arithmetic},
	[OP_MUL] = {mx_refuse_scalar, mx_arithmetic},
	[OP_DIV] = {mx_refuse_scalar, mx_arithmetic},
	[OP_LSTM] = {mx_refuse_recurrent, mx_recurrent},
	[OP_GRU] = {mx_refuse_recurrent, mx_recurrent},
	[OP_RNN] = {mx_refuse_recurrent, mx_recurrent},
	[OP_SOFTMAX_CROSS_ENTROPY] = {mx_refuse_loss, mx_cross_entropy},
	[OP_HALF_SQUARES] = {mx_refuse_loss, mx_half_squares},
};
static const struct row function = {mx_refuse_function, mx_function};

static const struct row *row_of(enum op op)
{
	return rows[op].translate || !operator_row(op)->elementwise ? &rows[op] : &function;
}

/* Masks and batch statistics stay inside MXNet's operators. */
static void refuse_outputs(const struct graph *graph, const struct node *node,
			   struct strbuf *reasons)
{
	for (int k = 0; k < node->input_count; k++) {
		const struct value *value;

		if (node->inputs[k] == VALUE_NONE)
			continue;
		value = &graph->values[node->inputs[k]];
		if (value->producer >= 0 &&
		    graph->nodes[value->producer].outputs[0] != node->inputs[k])
			mx_refuse(reasons, &graph->nodes[value->producer],
				  "an output other than the first is used");
	}
}

void mx_symbol_refusals(const struct graph *graph, struct strbuf *reasons)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		const struct row *row = row_of(node->op);

		if (!row->translate)
			reasons_add_operator(reasons, node);
		else if (row->refuse)
			row->refuse(graph, node, reasons);
		refuse_outputs(graph, node, reasons);
	}
}

/* Groups the heads, the symbols of the logits and the loss. It makes a copy, because the
 * translation frees all its symbols. */
static enum prony_status finish(struct translation *t, struct mx_symbol **out, struct error *err)
{
	const struct node logits = {.name = "prony.logits"};
	struct mx_symbol *heads[MX_HEAD_COUNT] = {t->values[t->graph->logits]};

	if (t->loss) {
		t->node = &logits;
		heads[MX_HEAD_LOGITS] =
			mx_op(t, "", "BlockGrad", MX_IN(t->values[t->graph->logits]), NULL);
		heads[MX_HEAD_OBJECTIVE] = t->objective;
		if (t->error.code == PRONY_OK && !t->objective)
			error_set(&t->error, PRONY_BAD_INPUT, "network %s has no loss",
				  t->graph->name);
	}
	if (t->error.code != PRONY_OK)
		return error_set(err, t->error.code, "%s", t->error.text);
	return mx_check(t->api,
			t->api->MXSymbolCreateGroup(t->loss ? MX_HEAD_COUNT : 1, heads, out),
			"group the outputs", err);
}

enum prony_status mx_symbol_new(const struct mx_api *api, const struct graph *graph, bool loss,
				bool dropout, struct mx_symbol **out, struct error *err)
{
	struct translation t = {.api = api, .graph = graph, .loss = loss, .dropout = dropout};
	struct arena arena;
	enum prony_status status;

	arena_init(&arena, 0);
	/* One per value, MX_SYMBOLS_PER_NODE per node, one for the head of the logits. */
	t.owned_capacity = graph->value_count + MX_SYMBOLS_PER_NODE * graph->node_count + 1;
	t.owned = arena_array(&arena, (size_t)t.owned_capacity, sizeof(t.owned[0]));
	t.values = arena_array(&arena, (size_t)graph->value_count, sizeof(t.values[0]));
	for (int i = 0; i < graph->forward_count; i++) {
		t.node = &graph->nodes[i];
		t.values[t.node->outputs[0]] = row_of(t.node->op)->translate(&t, t.node);
	}
	status = finish(&t, out, err);
	for (int i = 0; i < t.owned_count; i++)
		api->MXSymbolFree(t.owned[i]);
	arena_release(&arena);
	return status;
}
