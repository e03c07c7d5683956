/* Code shared by convolutions and matrix products: both have weights, a bias and three primitives
 * with the same arguments. */
#include "adapters/native/cpu/cpu.h"

enum prony_status cpu_weighted_forward(struct lowering *l, int n, const struct layout *outside,
				       const struct chain *chain, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const_dnnl_memory_desc_t as_read =
		dnn->primitive_desc_query_md(state->work->forward, dnnl_query_weights_md, 0);
	/* The update walks weights and gradients together, so weights are stored in the layout of
	 * their gradient. The other layouts are made from it in each step. */
	const_dnnl_memory_desc_t master =
		state->work->backward_weights
			? dnn->primitive_desc_query_md(state->work->backward_weights,
						       dnnl_query_diff_weights_md, 0)
			: as_read;
	struct layout in_memory = cpu_layout(dnn, master), wanted = cpu_layout(dnn, as_read);
	enum prony_status status = lower_parameter(l, node->inputs[1], &in_memory, outside, err);
	int weights, bias = OPERAND_NONE;

	if (status != PRONY_OK)
		return status;
	status = lower_weights(l, node->inputs[1], &wanted, node->name, &weights, err);
	if (status == PRONY_OK)
		status = lower_bias(l, n, chain, &bias, err);
	if (status == PRONY_OK)
		status = cpu_as(
			l, state->src,
			dnn->primitive_desc_query_md(state->work->forward, dnnl_query_src_md, 0),
			node->name, &state->src, err);
	state->dst = chain->sum;
	if (status == PRONY_OK && chain->sum == OPERAND_NONE)
		status = cpu_operand(
			l, dnn->primitive_desc_query_md(state->work->forward, dnnl_query_dst_md, 0),
			&state->dst, err);
	if (status == PRONY_OK)
		status = cpu_primitive(
			l, node->name, "forward", state->work->forward,
			(const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
			(const int[]){state->src, weights, bias, state->dst}, 4, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = state->dst;
	lower_chain_absorb(l, chain, state->dst);
	cpu_note(l, n, chain->nodes, chain->count);
	return PRONY_OK;
}

enum prony_status cpu_weighted_grad_weight(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct node_state *state = &l->nodes[node->differentiates];
	const struct parameter *bias = node->output_count > 1 && node->outputs[1] != VALUE_NONE
					       ? lower_find_parameter(l, forward->inputs[2])
					       : NULL;
	struct layout layout =
		cpu_layout(cpu_onednn(l),
			   cpu_onednn(l)->primitive_desc_query_md(state->work->backward_weights,
								  dnnl_query_diff_weights_md, 0));
	int dy, dw;
	enum prony_status status =
		cpu_as(l, l->values[node->inputs[1]].operand,
		       cpu_onednn(l)->primitive_desc_query_md(state->work->backward_weights,
							      dnnl_query_diff_dst_md, 0),
		       node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_weight_gradient(l, node, forward->inputs[1], &layout, &dw, err);
	if (status != PRONY_OK)
		return status;
	/* The data gradient, which follows, reads the same layout without another conversion. */
	l->values[node->inputs[1]].operand = dy;
	return cpu_primitive(
		l, forward->name, "weight gradient", state->work->backward_weights,
		(const int[]){DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS,
			      DNNL_ARG_DIFF_DST},
		(const int[]){state->src, dw, bias ? bias->gradient : OPERAND_NONE, dy}, 4, err);
}

enum prony_status cpu_weighted_grad_input(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct node_state *state = &l->nodes[node->differentiates];
	const_dnnl_primitive_desc_t pd = state->work->backward_data;
	struct layout wanted =
		cpu_layout(dnn, dnn->primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
	int dy, weights, dx;
	enum prony_status status = cpu_as(
		l, l->values[node->inputs[0]].operand,
		dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0), node->name, &dy, err);

	if (status == PRONY_OK)
		status =
			lower_weights(l, forward->inputs[1], &wanted, forward->name, &weights, err);
	if (status == PRONY_OK)
		status = cpu_operand(l, dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0),
				     &dx, err);
	if (status == PRONY_OK)
		status = cpu_primitive(
			l, forward->name, "data gradient", pd,
			(const int[]){DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
			(const int[]){dx, weights, dy}, 3, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
