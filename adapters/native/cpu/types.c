#include <stdio.h>
#include <string.h>

#include "adapters/native/lower/lower.h"
#include "adapters/native/lower/lower_internal.h"

/* What runs in which type, read back from the primitives that were made. */

static bool reads_bf16(const struct lowering *l, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
	const_dnnl_memory_desc_t desc = l->dnn->primitive_desc_query_md(pd, what, 0);

	return desc && onednn_type(l->dnn, desc) == dnnl_bf16;
}

static bool is_product(enum op op)
{
	return op == OP_CONV || op == OP_GEMM || op == OP_LSTM || op == OP_RNN;
}

/* A product in a loop of our own, which is fp32. */
static bool own_product(const struct lowering *l, int n)
{
	return is_product(l->graph->nodes[n].op) && l->nodes[n].detail && !l->nodes[n].forward;
}

/* Whether everything that the product multiplies, forward and backward, is bf16. */
static bool multiplies_bf16(const struct lowering *l, int n)
{
	const struct node_state *state = &l->nodes[n];
	bool recurrent = l->graph->nodes[n].op == OP_LSTM || l->graph->nodes[n].op == OP_RNN;

	if (!state->forward || !reads_bf16(l, state->forward, dnnl_query_src_md) ||
	    !reads_bf16(l, state->forward, dnnl_query_weights_md))
		return false;
	if (recurrent) /* its gradients are fp32 outside, by definition */
		return !state->backward_data ||
		       reads_bf16(l, state->backward_data, dnnl_query_weights_md);
	if (state->backward_weights &&
	    (!reads_bf16(l, state->backward_weights, dnnl_query_src_md) ||
	     !reads_bf16(l, state->backward_weights, dnnl_query_diff_dst_md)))
		return false;
	return !state->backward_data ||
	       (reads_bf16(l, state->backward_data, dnnl_query_weights_md) &&
		reads_bf16(l, state->backward_data, dnnl_query_diff_dst_md));
}

/* Appends a name, or dots once where there is no room. */
static void add_name(struct lowering *l, size_t *length, const char *name)
{
	const size_t room = sizeof(l->types) - sizeof("...; ");
	size_t needed = strlen(name) + 2;

	if (*length + needed < room)
		*length += (size_t)snprintf(l->types + *length, sizeof(l->types) - *length, " %s,",
					    name);
	else if (l->types[*length - 1] != '.')
		*length += (size_t)snprintf(l->types + *length, sizeof(l->types) - *length, "...");
}

enum prony_status lower_check_types(struct lowering *l, struct error *err)
{
	int products = 0, low = 0, others = 0;
	size_t length;

	if (l->data != dnnl_bf16)
		return PRONY_OK;
	for (int n = 0; n < l->graph->forward_count; n++) {
		if (!l->nodes[n].forward && !own_product(l, n))
			continue;
		if (!is_product(l->graph->nodes[n].op)) {
			others += !reads_bf16(l, l->nodes[n].forward, dnnl_query_src_md);
			continue;
		}
		products++;
		low += multiplies_bf16(l, n);
	}
	length = (size_t)snprintf(l->types, sizeof(l->types), "bf16 in %d of %d products%s", low,
				  products, low < products || others > 0 ? ", fp32 in" : "; ");
	if (low < products || others > 0) {
		for (int n = 0; n < l->graph->forward_count; n++) {
			const struct node *node = &l->graph->nodes[n];

			if ((l->nodes[n].forward || own_product(l, n)) &&
			    (is_product(node->op)
				     ? !multiplies_bf16(l, n)
				     : !reads_bf16(l, l->nodes[n].forward, dnnl_query_src_md)))
				add_name(l, &length, node->name);
		}
		if (l->types[length - 1] == ',')
			length--;
		snprintf(l->types + length, sizeof(l->types) - length, "; ");
	}
	if (low == 0)
		return error_set(err, PRONY_UNSUPPORTED, "precision bf16: %s", l->types);
	return PRONY_OK;
}

void lower_notes(const struct lowering *l, char *out, size_t out_bytes)
{
	size_t used = (size_t)snprintf(out, out_bytes, "%s", l->types), fits = 0;

	for (size_t i = 0; i + 1 < l->notes_length && used + i + 2 < out_bytes; i++) {
		if (l->notes[i] == ';' && l->notes[i + 1] == ' ')
			fits = i + 2;
	}
	memcpy(out + used, l->notes, fits);
	out[used + fits] = '\0';
}
