/* Concat: the library joins arrays in any layout that has whole blocks. */
#include "adapters/native/cpu/cpu.h"

static enum prony_status describe(struct lowering *l, int n, const int *operands,
				  const struct layout *dst, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node *node = &l->graph->nodes[n];
	const_dnnl_memory_desc_t sources[NODE_MAX_INPUTS];

	for (int i = 0; i < node->input_count; i++)
		sources[i] = cpu_desc(l, operands[i]);
	return onednn_check(dnn->concat_primitive_desc_create(
				    &l->nodes[n].work->forward, dnn->engine, cpu_desc_of(l, dst),
				    node->input_count, (int)node->attributes.axis, sources,
				    cpu_attributes(l, NULL)),
			    "concatenation", node->name, err);
}

static enum prony_status append(struct lowering *l, int n, const int *operands, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	int args[NODE_MAX_INPUTS + 1], all[NODE_MAX_INPUTS + 1], count = node->input_count;
	enum prony_status status = cpu_operand(
		l,
		cpu_onednn(l)->primitive_desc_query_md(state->work->forward, dnnl_query_dst_md, 0),
		&state->dst, err);

	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < count; i++) {
		args[i] = DNNL_ARG_MULTIPLE_SRC + i;
		all[i] = operands[i];
	}
	args[count] = DNNL_ARG_DST;
	all[count] = state->dst;
	status = cpu_primitive(l, node->name, "", state->work->forward, args, all, count + 1, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

enum prony_status cpu_concat(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	int operands[NODE_MAX_INPUTS];
	struct layout like, rows;
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < node->input_count; i++)
		status = lower_activation(l, node->inputs[i], node->name, &operands[i], err);
	if (status != PRONY_OK)
		return status;
	like = lower_like(l, lower_layout(l, lower_largest(l, operands, node->input_count)),
			  l->data, shape->rank, shape->dims);
	rows = layout_row_major(l->data, shape->rank, shape->dims);
	/* Channels cannot be joined within a block: row-major order is used. */
	if (describe(l, n, operands, &like, NULL) != PRONY_OK)
		status = describe(l, n, operands, &rows, err);
	return status == PRONY_OK ? append(l, n, operands, err) : status;
}
