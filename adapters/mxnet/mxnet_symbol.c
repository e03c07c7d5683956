#include "adapters/mxnet/mxnet_symbol.h"

#include <stdlib.h>

#include "adapters/mxnet/mxnet_translate_internal.h"

static const struct mx_row *const rows[OP_COUNT] = {
	[OP_CONV] = &mx_conv,
	[OP_MAX_POOL] = &mx_max_pool,
	[OP_AVERAGE_POOL] = &mx_average_pool,
	[OP_GLOBAL_AVERAGE_POOL] = &mx_global_average_pool,
	[OP_GEMM] = &mx_gemm,
	[OP_SOFTMAX] = &mx_softmax,
	[OP_BATCH_NORM] = &mx_batch_norm,
	[OP_LRN] = &mx_lrn,
	[OP_FLATTEN] = &mx_flatten,
	[OP_RESHAPE] = &mx_reshape,
	[OP_IDENTITY] = &mx_identity,
	[OP_TRANSPOSE] = &mx_transpose,
	[OP_CONCAT] = &mx_concat,
	[OP_SLICE] = &mx_slice,
	[OP_PAD] = &mx_pad_row,
	[OP_REDUCE_MEAN] = &mx_reduce_mean,
	[OP_DROPOUT] = &mx_dropout,
	[OP_ADD] = &mx_add,
	[OP_SUB] = &mx_sub,
	[OP_MUL] = &mx_mul,
	[OP_DIV] = &mx_div,
	[OP_LSTM] = &mx_recurrent_row,
	[OP_RNN] = &mx_recurrent_row,
	[OP_SOFTMAX_CROSS_ENTROPY] = &mx_cross_entropy,
	[OP_HALF_SQUARES] = &mx_half_squares,
};

static const struct mx_row *row_of(enum op op)
{
	return rows[op] || !operator_row(op)->elementwise ? rows[op] : &mx_function;
}

/* Masks and statistics of a batch stay inside MXNet's operators. */
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
		const struct mx_row *row = row_of(node->op);

		if (!row)
			mx_refuse(reasons, node, "no translation into MXNet's operators");
		else if (row->refuse)
			row->refuse(graph, node, reasons);
		refuse_outputs(graph, node, reasons);
	}
}

/* The heads, of the logits' symbol and the loss's. */
static enum prony_status finish(struct translation *t, struct mx_symbol **out, struct error *err)
{
	struct mx_symbol *heads[MX_HEAD_COUNT];
	const struct mx_options none = {0};
	struct mx_inputs inputs = {0};
	enum prony_status status;

	/* A copy of its own in both cases: the translation frees everything it made. */
	if (!t->loss) {
		heads[0] = t->values[t->graph->logits];
		return mx_check(t->api, t->api->MXSymbolCreateGroup(1, heads, out), "logits", err);
	}
	mx_input(&inputs, "data", t->values[t->graph->logits]);
	status = mx_make(t, "BlockGrad", "prony.logits", &none, &inputs, &heads[MX_HEAD_LOGITS],
			 err);
	if (status != PRONY_OK)
		return status;
	heads[MX_HEAD_OBJECTIVE] = t->objective;
	return mx_check(t->api, t->api->MXSymbolCreateGroup(MX_HEAD_COUNT, heads, out),
			"group of heads", err);
}

enum prony_status mx_symbol_new(const struct mx_api *api, const struct graph *graph, bool loss,
				bool dropout, struct mx_symbol **out, struct error *err)
{
	struct translation t = {.api = api, .graph = graph, .loss = loss, .dropout = dropout};
	enum prony_status status = PRONY_OK;

	/* One per value, some per node, one for the logits' head. */
	t.owned_capacity = graph->value_count + MX_SYMBOLS_PER_NODE * graph->node_count + 1;
	t.owned = calloc((size_t)t.owned_capacity, sizeof(struct mx_symbol *));
	t.values = calloc((size_t)graph->value_count, sizeof(struct mx_symbol *));
	if (!t.owned || !t.values) {
		status = error_set(err, PRONY_NOMEM, "no memory for the symbol");
		goto out;
	}
	for (int i = 0; status == PRONY_OK && i < graph->forward_count; i++)
		status = row_of(graph->nodes[i].op)->emit(&t, &graph->nodes[i], err);
	if (status == PRONY_OK && loss && !t.objective)
		status = error_set(err, PRONY_BAD_INPUT, "network %s has no loss", graph->name);
	if (status == PRONY_OK)
		status = finish(&t, out, err);
out:
	for (int i = 0; i < t.owned_count; i++)
		api->MXSymbolFree(t.owned[i]);
	free(t.owned);
	free(t.values);
	return status;
}
