/* Softmax as a separate operator, one line a block. */
#include "adapters/native/cuda/cuda.h"

static void append(struct lowering *l, int n, const char *kernel, const int *operands, int count)
{
	const struct node *node = &l->graph->nodes[n];
	const struct layout *layout = lower_layout(l, operands[0]);
	int axis = (int)node->attributes.axis;
	int64_t size = layout->dims[axis], lines = (int64_t)layout_elements(layout) / size;
	struct work *work =
		cuda_blocks(l, node->name, "", kernel, layout->type, lines, cuda_threads(size));

	for (int i = 0; i < count; i++)
		cuda_operand(l, work, operands[i]);
	cuda_long(l, work, lines);
	cuda_int(l, work, (int)size);
	cuda_long(l, work, layout->strides[axis]);
}

enum prony_status cuda_softmax(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const struct layout *own;
	struct layout rows;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	if (status != PRONY_OK)
		return status;
	own = lower_layout(l, state->src);
	rows = layout_row_major(own->type, own->rank, own->dims);
	status = lower_as(l, state->src, &rows, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	append(l, n, "softmax", (const int[]){state->dst, state->src}, 2);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

enum prony_status cuda_softmax_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int y = l->nodes[node->differentiates].dst, dy, dx;
	enum prony_status status = lower_unary_grad(l, n, y, &dy, &dx, err);

	if (status != PRONY_OK)
		return status;
	append(l, n, "softmax_grad", (const int[]){dx, dy, y}, 3);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
