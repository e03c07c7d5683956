/* Batch normalisation and its running statistics. */
#include "adapters/native/cpu/cpu.h"

/* A state becomes momentum * state + (1 - momentum) * statistic of the batch. */
static void run_follow(struct program *program, const struct command *command)
{
	float momentum = (float)command->work->ratio, rest = (float)(1 - command->work->ratio);

	for (int k = 0; k < 2; k++) {
		float *state = cpu_data(program, command, 2 * k);
		const float *batch = cpu_data(program, command, 2 * k + 1);

		for (size_t i = 0; i < command->work->elements; i++)
			state[i] = momentum * state[i] + rest * batch[i];
	}
}

static enum prony_status describe(struct lowering *l, int n, const_dnnl_memory_desc_t x, bool relu,
				  struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	struct node_state *state = &l->nodes[n];
	float epsilon = (float)l->graph->nodes[n].attributes.epsilon;
	unsigned flags = dnnl_use_scale | dnnl_use_shift | (relu ? dnnl_fuse_norm_relu : 0u) |
			 (l->training ? 0u : dnnl_use_global_stats);
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);
	dnnl_status_t created = dnn->batch_normalization_forward_primitive_desc_create(
		&state->work->forward, dnn->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, x, x, epsilon, flags,
		attributes);
	if (created == dnnl_success && l->training)
		created = dnn->batch_normalization_backward_primitive_desc_create(
			&state->work->backward_data, dnn->engine, dnnl_backward, x, x, x, epsilon,
			flags, state->work->forward, attributes);
	return onednn_check(created, "batch normalisation", l->graph->nodes[n].name, err);
}

/* Operands of mean and variance: in training those of the batch, else the running ones. */
static enum prony_status statistics(struct lowering *l, int n, int out[2], struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	enum prony_status status = PRONY_OK;

	for (int k = 0; status == PRONY_OK && k < 2; k++) {
		int state = OPERAND_NONE;

		status = lower_data_operand(l, node->inputs[3 + k], &state, err);
		out[k] = state;
		if (status == PRONY_OK && l->training)
			status = program_operand(l->program, lower_layout(l, state), REGION_PLANNED,
						 &out[k], err);
		if (node->output_count > 1 + k && node->outputs[1 + k] != VALUE_NONE)
			l->values[node->outputs[1 + k]].operand = out[k];
	}
	return status;
}

static void follow_statistics(struct lowering *l, const struct node *node, const int batch[2])
{
	int mean = l->values[node->inputs[3]].operand, var = l->values[node->inputs[4]].operand;
	struct work *work = cpu_kernel(l, node->name, "statistics", run_follow,
				       (const int[]){mean, batch[0], var, batch[1]}, 4);

	work->ratio = node->attributes.momentum;
}

enum prony_status cpu_batch_norm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	int relu_gradient, relu = lower_norm_relu(l, n, &relu_gradient), moments[2], scale, shift;
	enum prony_status status =
		lower_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = describe(l, n, cpu_desc(l, state->src), relu >= 0, err);
	if (status == PRONY_OK)
		status = statistics(l, n, moments, err);
	if (status == PRONY_OK)
		status = lower_data_operand(l, node->inputs[1], &scale, err);
	if (status == PRONY_OK)
		status = lower_data_operand(l, node->inputs[2], &shift, err);
	if (status == PRONY_OK)
		status = cpu_workspace(l, state->work->forward, &state->side, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status == PRONY_OK)
		status = cpu_primitive(l, node->name, "forward", state->work->forward,
				       (const int[]){DNNL_ARG_SRC, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE,
						     DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_DST,
						     DNNL_ARG_WORKSPACE},
				       (const int[]){state->src, moments[0], moments[1], scale,
						     shift, state->dst, state->side},
				       7, err);
	if (status != PRONY_OK)
		return status;
	if (l->training)
		follow_statistics(l, node, moments);
	l->values[node->outputs[0]].operand = state->dst;
	if (relu >= 0)
		lower_absorb(l, relu, state->dst);
	state->relu_gradient = relu_gradient;
	if (relu_gradient >= 0)
		l->nodes[relu_gradient].absorbed = true;
	return PRONY_OK;
}

enum prony_status cpu_batch_norm_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct node_state *state = &l->nodes[node->differentiates];
	int from = state->relu_gradient >= 0 ? l->graph->nodes[state->relu_gradient].inputs[0]
					     : node->inputs[0];
	int dy, dx, gradients[2];
	enum prony_status status = lower_value(l, from, node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_as(l, dy, lower_layout(l, state->src), node->name, &dy, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, from, dy, &dx, err);
	for (int k = 0; status == PRONY_OK && k < 2; k++)
		status = lower_channel_gradient(l, node, 1 + k, forward->inputs[1 + k],
						&gradients[k], err);
	if (status == PRONY_OK)
		status = cpu_primitive(
			l, forward->name, "gradient", state->work->backward_data,
			(const int[]){DNNL_ARG_SRC, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE,
				      DNNL_ARG_SCALE, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC,
				      DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT, DNNL_ARG_WORKSPACE},
			(const int[]){state->src, l->values[forward->outputs[1]].operand,
				      l->values[forward->outputs[2]].operand,
				      l->values[forward->inputs[1]].operand, dy, dx, gradients[0],
				      gradients[1], state->side},
			9, err);
	if (status == PRONY_OK && node->outputs[0] != VALUE_NONE)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
