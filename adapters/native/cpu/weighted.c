#include "adapters/native/lower/lower_internal.h"

/* What convolution and matrix product share: both are weights, a bias and three primitives with
 * the same arguments. */

enum prony_status lower_weighted_bias(struct lowering *l, int n, const struct chain *chain,
				      int *out, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	dnnl_memory_desc_t row = NULL;
	enum prony_status status;

	if (chain->batch_norm >= 0) {
		struct parameter *folded = lower_find_parameter(l, node->inputs[1]);

		folded->folded = chain->batch_norm;
		folded->keeps_original = true;
		return lower_fold(l, n, chain->batch_norm, out, err);
	}
	*out = OPERAND_NONE;
	if (node->input_count < 3 || node->inputs[2] == VALUE_NONE)
		return PRONY_OK;
	status = lower_plain(l, dnnl_f32, 1, l->graph->values[node->inputs[2]].shape.dims, &row,
			     err);
	if (status != PRONY_OK)
		return status;
	status = lower_parameter(l, node->inputs[2], row, row, err);
	*out = lower_find_parameter(l, node->inputs[2])->operand;
	return status;
}

enum prony_status lower_weighted_forward(struct lowering *l, int n, dnnl_memory_desc_t plain,
					 const struct chain *chain, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const_dnnl_memory_desc_t wanted =
		dnn->primitive_desc_query_md(state->forward, dnnl_query_weights_md, 0);
	/* The update walks weights and gradients together: weights live in the layout that their
	 * gradient comes in, and the other layouts are made from it in each step. */
	const_dnnl_memory_desc_t master =
		state->backward_weights
			? dnn->primitive_desc_query_md(state->backward_weights,
						       dnnl_query_diff_weights_md, 0)
			: wanted;
	enum prony_status status = lower_parameter(l, node->inputs[1], master, plain, err);
	int weights, bias = OPERAND_NONE;

	if (status != PRONY_OK)
		return status;
	status = lower_weights(l, node->inputs[1], wanted, node->name, &weights, err);
	if (status == PRONY_OK)
		status = lower_weighted_bias(l, n, chain, &bias, err);
	if (status == PRONY_OK)
		status =
			lower_as(l, state->src,
				 dnn->primitive_desc_query_md(state->forward, dnnl_query_src_md, 0),
				 node->name, &state->src, err);
	state->dst = chain->sum;
	if (status == PRONY_OK && chain->sum == OPERAND_NONE)
		status = program_operand(
			l->program,
			dnn->primitive_desc_query_md(state->forward, dnnl_query_dst_md, 0),
			REGION_PLANNED, &state->dst, err);
	if (status == PRONY_OK)
		status = program_primitive(
			l->program, node->name, "forward", state->forward,
			(const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
			(const int[]){state->src, weights, bias, state->dst}, 4, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = state->dst;
	lower_chain_absorb(l, chain, state->dst);
	lower_note(l, n, chain->nodes, chain->count);
	return PRONY_OK;
}

enum prony_status lower_weighted_grad_weight(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct node_state *state = &l->nodes[node->differentiates];
	const struct parameter *weights = lower_find_parameter(l, forward->inputs[1]);
	const struct parameter *bias = node->output_count > 1 && node->outputs[1] != VALUE_NONE
					       ? lower_find_parameter(l, forward->inputs[2])
					       : NULL;
	int dy;
	enum prony_status status = lower_as(
		l, l->values[node->inputs[1]].operand,
		l->dnn->primitive_desc_query_md(state->backward_weights, dnnl_query_diff_dst_md, 0),
		node->name, &dy, err);

	if (status != PRONY_OK)
		return status;
	/* The data gradient, which follows, takes the same layout: it must not convert again. */
	l->values[node->inputs[1]].operand = dy;
	return program_primitive(l->program, forward->name, "weight gradient",
				 state->backward_weights,
				 (const int[]){DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS,
					       DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST},
				 (const int[]){state->src, weights->gradient,
					       bias ? bias->gradient : OPERAND_NONE, dy},
				 4, err);
}

enum prony_status lower_weighted_grad_input(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct node_state *state = &l->nodes[node->differentiates];
	const_dnnl_primitive_desc_t pd = state->backward_data;
	int dy, weights, dx;
	enum prony_status status = lower_as(
		l, l->values[node->inputs[0]].operand,
		dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0), node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_weights(l, forward->inputs[1],
				       dnn->primitive_desc_query_md(pd, dnnl_query_weights_md, 0),
				       forward->name, &weights, err);
	if (status == PRONY_OK)
		status = program_operand(
			l->program, dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0),
			REGION_PLANNED, &dx, err);
	if (status == PRONY_OK)
		status = program_primitive(
			l->program, forward->name, "data gradient", pd,
			(const int[]){DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
			(const int[]){dx, weights, dy}, 3, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
