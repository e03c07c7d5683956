#include "adapters/native/lower.h"

struct geometry {
	dnnl_alg_kind_t algorithm;
	dnnl_dims_t y, kernel, strides, dilations, before, after;
};

static struct geometry geometry_make(const struct lowering *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	bool global = node->op == OP_GLOBAL_AVERAGE_POOL;
	struct geometry w = {.y = {y->dims[0], y->dims[1], y->dims[2], y->dims[3]}};

	w.algorithm = node->op == OP_MAX_POOL ? dnnl_pooling_max
		      : a->count_include_pad  ? dnnl_pooling_avg_include_padding
					      : dnnl_pooling_avg_exclude_padding;
	for (int i = 0; global && i < 2; i++) {
		w.kernel[i] = x->dims[2 + i];
		w.strides[i] = 1;
	}
	if (global)
		return w;

	for (int i = 0; i < 2; i++) {
		w.kernel[i] = a->kernel[i];
		w.strides[i] = a->strides[i];
		w.dilations[i] = a->dilations[i] - 1;
		w.before[i] = a->pads[i];
		/* So that the output has our size: ceil_mode needs more than pads says, and a last
		 * step that the window does not fill needs less. */
		w.after[i] = (y->dims[2 + i] - 1) * a->strides[i] +
			     (a->kernel[i] - 1) * a->dilations[i] + 1 - x->dims[2 + i] - a->pads[i];
	}
	return w;
}

/* The forward primitive in the layout that the input has, and its backward over the same two. */
static enum prony_status create(struct lowering *l, int n, const struct geometry *w,
				struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const_dnnl_memory_desc_t src = l->program->operands[state->src].desc;
	dnnl_memory_desc_t any = NULL;
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_status_t created;
	enum prony_status status = lower_any(l, lower_type(l, state->src), 4, w->y, &any, err);

	if (status != PRONY_OK)
		return status;
	status = lower_attributes(l, false, &attributes, err);
	if (status != PRONY_OK)
		goto out;
	created = dnn->pooling_forward_primitive_desc_create(
		&state->forward, dnn->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, w->algorithm, src,
		any, w->strides, w->kernel, w->dilations, w->before, w->after, attributes);
	if (created == dnnl_success && l->training)
		created = dnn->pooling_backward_primitive_desc_create(
			&state->backward_data, dnn->engine, w->algorithm, src,
			dnn->primitive_desc_query_md(state->forward, dnnl_query_dst_md, 0),
			w->strides, w->kernel, w->dilations, w->before, w->after, state->forward,
			attributes);
	status = onednn_check(created, "pooling", node->name, err);
out:
	if (attributes)
		dnn->primitive_attr_destroy(attributes);
	dnn->memory_desc_destroy(any);
	return status;
}

enum prony_status lower_pool(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct geometry w = geometry_make(l, node);
	enum prony_status status =
		lower_activation(l, node->inputs[0], node->name, &state->src, err);

	state->side = OPERAND_NONE;
	if (status == PRONY_OK)
		status = create(l, n, &w, err);
	if (status == PRONY_OK)
		status = program_operand(
			l->program,
			dnn->primitive_desc_query_md(state->forward, dnnl_query_dst_md, 0),
			REGION_PLANNED, &state->dst, err);
	if (status == PRONY_OK && l->training) {
		const_dnnl_memory_desc_t workspace =
			dnn->primitive_desc_query_md(state->forward, dnnl_query_workspace_md, 0);

		if (workspace && dnn->memory_desc_get_size(workspace) > 0)
			status = program_operand(l->program, workspace, REGION_PLANNED,
						 &state->side, err);
	}
	if (status == PRONY_OK)
		status = program_primitive(
			l->program, node->name, "forward", state->forward,
			(const int[]){DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE},
			(const int[]){state->src, state->dst, state->side}, 3, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

enum prony_status lower_pool_grad(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[node->differentiates];
	const_dnnl_primitive_desc_t pd = state->backward_data;
	int dy, dx;
	enum prony_status status = lower_as(
		l, l->values[node->inputs[0]].operand,
		dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0), node->name, &dy, err);

	if (status == PRONY_OK)
		status = program_operand(
			l->program, dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0),
			REGION_PLANNED, &dx, err);
	if (status == PRONY_OK)
		status = program_primitive(
			l->program, l->graph->nodes[node->differentiates].name, "gradient", pd,
			(const int[]){DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WORKSPACE},
			(const int[]){dx, dy, state->side}, 3, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
