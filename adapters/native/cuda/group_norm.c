/* Group and instance normalisation, on row-major images, and their gradients. */
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

static struct group_arguments describe(const struct lowering *l, const struct node *node)
{
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	int64_t channels = x->dims[1];
	int64_t groups = node->op == OP_GROUP_NORM ? node->attributes.group : channels;

	return (struct group_arguments){.samples = (int)x->dims[0],
					.groups = (int)groups,
					.channels = (int)(channels / groups),
					.inner = (int)(shape_elements(x) / (x->dims[0] * channels)),
					.epsilon = (float)node->attributes.epsilon};
}

enum prony_status cuda_group_norm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	struct layout rows = layout_row_major(l->data, shape->rank, shape->dims);
	struct node_state *state = &l->nodes[n];
	struct group_arguments a = describe(l, node);
	int64_t groups = (int64_t)a.samples * a.groups;
	int weights[2];
	struct work *work;
	enum prony_status status =
		lower_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = lower_as(l, state->src, &rows, node->name, &state->src, err);
	for (int k = 0; status == PRONY_OK && k < 2; k++)
		status = lower_data_operand(l, node->inputs[1 + k], &weights[k], err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	state->side = OPERAND_NONE;
	if (l->training)
		state->side = program_bytes(l->program, 2 * (size_t)groups * sizeof(float));
	work = cuda_blocks(l, node->name, "forward", "group_norm", l->data, groups,
			   cuda_threads((int64_t)a.channels * a.inner));
	cuda_operand(l, work, state->dst);
	cuda_operand(l, work, state->side);
	cuda_operand(l, work, state->src);
	cuda_operand(l, work, weights[0]);
	cuda_operand(l, work, weights[1]);
	cuda_struct(l, work, &a, sizeof(a));
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

/* The gradient of the input may overwrite dy, so those of scale and shift are computed first. */
enum prony_status cuda_group_norm_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const struct node_state *state = &l->nodes[node->differentiates];
	struct group_arguments a = describe(l, forward);
	int dy, dx, gradients[2];
	struct work *work;
	enum prony_status status = lower_unary_grad(l, n, state->src, &dy, &dx, err);

	for (int k = 0; status == PRONY_OK && k < 2; k++)
		status = lower_channel_gradient(l, node, 1 + k, forward->inputs[1 + k],
						&gradients[k], err);
	if (status != PRONY_OK)
		return status;
	work = cuda_blocks(l, forward->name, "gradients of scale and bias", "group_norm_sums",
			   l->data, (int64_t)a.groups * a.channels,
			   cuda_threads((int64_t)a.samples * a.inner));
	cuda_operand(l, work, gradients[0]);
	cuda_operand(l, work, gradients[1]);
	cuda_operand(l, work, dy);
	cuda_operand(l, work, state->src);
	cuda_operand(l, work, state->side);
	cuda_struct(l, work, &a, sizeof(a));
	if (node->outputs[0] == VALUE_NONE)
		return PRONY_OK;
	work = cuda_blocks(l, forward->name, "gradient", "group_norm_grad", l->data,
			   (int64_t)a.samples * a.groups,
			   cuda_threads((int64_t)a.channels * a.inner));
	cuda_operand(l, work, dx);
	cuda_operand(l, work, dy);
	cuda_operand(l, work, state->src);
	cuda_operand(l, work, state->side);
	cuda_operand(l, work, l->values[forward->inputs[1]].operand);
	cuda_struct(l, work, &a, sizeof(a));
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
