/* Softmax as an operator of its own. */
#include "adapters/native/cpu/cpu.h"

enum prony_status cpu_softmax(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	dnnl_primitive_attr_t attributes = NULL;
	const_dnnl_memory_desc_t desc;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	/* Always in fp32, as everybody has it. */
	if (status == PRONY_OK)
		status = lower_typed(l, state->src, DTYPE_F32, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = cpu_attributes(l, false, &attributes, err);
	if (status != PRONY_OK)
		return status;
	desc = cpu_desc(l, state->src);
	status = onednn_check(dnn->softmax_forward_primitive_desc_create(
				      &state->work->forward, dnn->engine,
				      l->training ? dnnl_forward_training : dnnl_forward_inference,
				      dnnl_softmax_accurate, desc, desc, (int)node->attributes.axis,
				      attributes),
			      "softmax", node->name, err);
	if (status == PRONY_OK && l->training)
		status = onednn_check(dnn->softmax_backward_primitive_desc_create(
					      &state->work->backward_data, dnn->engine,
					      dnnl_softmax_accurate, desc, desc, desc,
					      (int)node->attributes.axis, state->work->forward,
					      attributes),
				      "gradient of softmax", node->name, err);
	dnn->primitive_attr_destroy(attributes);
	return status == PRONY_OK ? cpu_unary(l, n, err) : status;
}

enum prony_status cpu_softmax_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	int dy, dx;
	enum prony_status status = lower_unary_grad(l, n, state->dst, &dy, &dx, err);

	if (status == PRONY_OK)
		status = cpu_primitive(
			l, node->name, "", state->work->backward_data,
			(const int[]){DNNL_ARG_DST, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
			(const int[]){state->dst, dy, dx}, 3, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
