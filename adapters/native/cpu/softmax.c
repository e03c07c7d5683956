/* Softmax as a separate operator. */
#include "adapters/native/cpu/cpu.h"

enum prony_status cpu_softmax(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);
	int axis = (int)node->attributes.axis;
	const_dnnl_memory_desc_t desc;
	dnnl_status_t created;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	/* Always in fp32, as in every framework. */
	if (status == PRONY_OK)
		status = lower_typed(l, state->src, DTYPE_F32, node->name, &state->src, err);
	if (status != PRONY_OK)
		return status;
	desc = cpu_desc(l, state->src);
	created = dnn->softmax_forward_primitive_desc_create(
		&state->work->forward, dnn->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, dnnl_softmax_accurate,
		desc, desc, axis, attributes);
	if (created == dnnl_success && l->training)
		created = dnn->softmax_backward_primitive_desc_create(
			&state->work->backward_data, dnn->engine, dnnl_softmax_accurate, desc, desc,
			desc, axis, state->work->forward, attributes);
	status = onednn_check(created, "softmax", node->name, err);
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
