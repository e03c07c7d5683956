/* Layer and RMS normalisation of a matrix with one normalised group per row, and their gradients.
 */
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

static struct work *append_rows(struct lowering *l, const char *name, const char *what,
				const char *kernel, int x, const struct norm_arguments *a)
{
	enum dtype type = lower_layout(l, x)->type;
	int pack = a->packed ? PACK_BYTES / (int)dtype_bytes(type) : 1;

	return cuda_blocks(l, name, what, kernel, type, a->rows, cuda_threads(a->channels / pack));
}

/* The value in the type of activations, row-major. */
static enum prony_status rows_of(struct lowering *l, int value, const char *name, int *out,
				 struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	struct layout rows = layout_row_major(l->data, shape->rank, shape->dims);
	enum prony_status status = lower_activation(l, value, name, out, err);

	return status == PRONY_OK ? lower_as(l, *out, &rows, name, out, err) : status;
}

enum prony_status cuda_layer_norm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct norm_arguments *a = arena_alloc(&l->program->arena, sizeof(*a));
	int weights[2] = {OPERAND_NONE, OPERAND_NONE};
	struct work *w;
	enum prony_status status = rows_of(l, node->inputs[0], node->name, &state->src, err);

	for (int k = 0; status == PRONY_OK && k + 1 < node->input_count; k++)
		status = lower_data_operand(l, node->inputs[1 + k], &weights[k], err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	cuda_norm_rows(l, state->src, shape_elements(&l->graph->values[node->inputs[1]].shape),
		       node->attributes.epsilon, a);
	a->uncentred = node->op == OP_RMS_NORM;
	state->work->detail = a;
	state->side = OPERAND_NONE;
	if (l->training)
		state->side = program_bytes(l->program, 2 * (size_t)a->rows * sizeof(float));
	w = append_rows(l, node->name, "forward", "layer_norm", state->src, a);
	cuda_operand(l, w, state->dst);
	cuda_operand(l, w, state->side);
	cuda_operand(l, w, state->src);
	cuda_operand(l, w, weights[0]);
	cuda_operand(l, w, weights[1]);
	cuda_struct(l, w, a, sizeof(*a));
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

enum prony_status cuda_layer_norm_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const struct node_state *state = &l->nodes[node->differentiates];
	const struct norm_arguments *a = state->work->detail;
	int dy, dx, gradients[2] = {0};
	struct work *w;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_as(l, dy, lower_layout(l, state->src), node->name, &dy, err);
	if (status == PRONY_OK)
		status = cuda_packed(l, node->name, &dy, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], dy, &dx, err);
	for (int k = 0; status == PRONY_OK && k + 1 < forward->input_count; k++)
		status = lower_channel_gradient(l, node, 1 + k, forward->inputs[1 + k],
						&gradients[k], err);
	/* The sums without a shift are not used. */
	if (status == PRONY_OK && a->uncentred)
		gradients[1] = program_bytes(l->program, (size_t)a->channels * sizeof(float));
	if (status != PRONY_OK)
		return status;
	cuda_norm_parameter_grad(l, forward->name, "layer_norm_sums",
				 (const int[]){dy, state->src, state->side}, 3, OPERAND_NONE,
				 gradients, a);
	if (node->outputs[0] == VALUE_NONE)
		return PRONY_OK;
	w = append_rows(l, forward->name, "gradient", "layer_norm_grad", state->src, a);
	cuda_operand(l, w, dx);
	cuda_operand(l, w, dy);
	cuda_operand(l, w, state->src);
	cuda_operand(l, w, state->side);
	cuda_operand(l, w, l->values[forward->inputs[1]].operand);
	cuda_struct(l, w, a, sizeof(*a));
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
