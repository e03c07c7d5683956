/* Concat: copies each input to its place, in the layout of the largest. */
#include "adapters/native/cuda/cuda.h"

enum prony_status cuda_concat(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	int operands[NODE_MAX_INPUTS], y, axis = (int)node->attributes.axis;
	struct box source = {0}, target = {0};
	struct layout like;
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < node->input_count; i++)
		status = lower_activation(l, node->inputs[i], node->name, &operands[i], err);
	if (status != PRONY_OK)
		return status;
	like = lower_like(l, lower_layout(l, lower_largest(l, operands, node->input_count)),
			  l->data, shape->rank, shape->dims);
	status = program_operand(l->program, &like, REGION_PLANNED, &y, err);
	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < shape->rank; i++)
		target.strides[i] = like.strides[i];
	for (int k = 0; k < node->input_count; k++) {
		const struct layout *own = lower_layout(l, operands[k]);

		for (int i = 0; i < shape->rank; i++)
			source.strides[i] = own->strides[i];
		cuda_copy_box(l, node->name, shape->rank, own->dims, operands[k], &source, y,
			      &target);
		target.start += own->dims[axis] * like.strides[axis];
	}
	l->values[node->outputs[0]].operand = l->nodes[n].dst = y;
	return PRONY_OK;
}
