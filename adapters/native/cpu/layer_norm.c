/*
 * Layer normalisation with the library's primitive, on a matrix with one normalised group per row.
 */
#include "adapters/native/cpu/cpu.h"

/* Data that the gradient also reads. */
struct layer {
	int64_t rows, length;
	int mean, variance; /* operands with a value per row; OPERAND_NONE in evaluation */
};

/* The same memory as a matrix with that many columns (rows 0: a vector). */
static enum prony_status view(struct lowering *l, int operand, int64_t rows, int64_t length,
			      int *out, struct error *err)
{
	const int64_t dims[2] = {rows, length};
	struct layout as = layout_row_major(lower_layout(l, operand)->type, rows > 0 ? 2 : 1,
					    rows > 0 ? dims : dims + 1);

	return program_alias(l->program, operand, &as, 0, out, err);
}

/* A value in row-major order. */
static enum prony_status plain(struct lowering *l, int operand, int value, const char *name,
			       int *out, struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	struct layout rows =
		layout_row_major(lower_layout(l, operand)->type, shape->rank, shape->dims);

	return lower_as(l, operand, &rows, name, out, err);
}

static enum prony_status describe(struct lowering *l, int n, const_dnnl_memory_desc_t x,
				  const_dnnl_memory_desc_t statistics, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	struct node_state *state = &l->nodes[n];
	float epsilon = (float)l->graph->nodes[n].attributes.epsilon;
	unsigned flags = dnnl_use_scale | dnnl_use_shift;
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);
	dnnl_status_t created = dnn->layer_normalization_forward_primitive_desc_create(
		&state->work->forward, dnn->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, x, x, statistics,
		epsilon, flags, attributes);

	if (created == dnnl_success && l->training)
		created = dnn->layer_normalization_backward_primitive_desc_create(
			&state->work->backward_data, dnn->engine, dnnl_backward, x, x, x,
			statistics, epsilon, flags, state->work->forward, attributes);
	return onednn_check(created, "layer normalisation", l->graph->nodes[n].name, err);
}

/* The primitives, and in training the operands of mean and variance. */
static enum prony_status prepare(struct lowering *l, int n, struct layer *layer, struct error *err)
{
	struct layout rows = layout_row_major(DTYPE_F32, 1, &layer->rows);
	int x = OPERAND_NONE;
	enum prony_status status = view(l, l->nodes[n].src, layer->rows, layer->length, &x, err);

	if (status == PRONY_OK)
		status = describe(l, n, cpu_desc(l, x),
				  cpu_row_major(l, DTYPE_F32, 1, &layer->rows), err);
	if (status == PRONY_OK && l->training)
		status = program_operand(l->program, &rows, REGION_PLANNED, &layer->mean, err);
	if (status == PRONY_OK && l->training)
		status = program_operand(l->program, &rows, REGION_PLANNED, &layer->variance, err);
	return status;
}

enum prony_status cpu_layer_norm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct layer *layer = arena_alloc(&l->program->arena, sizeof(*layer));
	int weights[2] = {0}, x = OPERAND_NONE, y = OPERAND_NONE;
	enum prony_status status =
		lower_activation(l, node->inputs[0], node->name, &state->src, err);

	*layer = (struct layer){.mean = OPERAND_NONE, .variance = OPERAND_NONE};
	layer->length = shape_elements(&l->graph->values[node->inputs[1]].shape);
	layer->rows = shape_elements(&l->graph->values[node->inputs[0]].shape) / layer->length;
	state->work->detail = layer;
	if (status == PRONY_OK)
		status = plain(l, state->src, node->inputs[0], node->name, &state->src, err);
	if (status == PRONY_OK)
		status = prepare(l, n, layer, err);
	for (int k = 0; status == PRONY_OK && k < 2; k++) {
		status = lower_data_operand(l, node->inputs[1 + k], &weights[k], err);
		if (status == PRONY_OK)
			status = view(l, weights[k], 0, layer->length, &weights[k], err);
	}
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status == PRONY_OK)
		status = view(l, state->src, layer->rows, layer->length, &x, err);
	if (status == PRONY_OK)
		status = view(l, state->dst, layer->rows, layer->length, &y, err);
	if (status == PRONY_OK)
		status = cpu_primitive(
			l, node->name, "forward", state->work->forward,
			(const int[]){DNNL_ARG_SRC, DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_DST,
				      DNNL_ARG_MEAN, DNNL_ARG_VARIANCE},
			(const int[]){x, weights[0], weights[1], y, layer->mean, layer->variance},
			6, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

enum prony_status cpu_layer_norm_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const struct node_state *state = &l->nodes[node->differentiates];
	const struct layer *layer = state->work->detail;
	int dy, dx, gradients[2] = {0}, views[5];
	enum prony_status status = lower_unary_grad(l, n, state->src, &dy, &dx, err);

	for (int k = 0; status == PRONY_OK && k < 2; k++)
		status = lower_channel_gradient(l, node, 1 + k, forward->inputs[1 + k],
						&gradients[k], err);
	for (int k = 0; status == PRONY_OK && k < 3; k++)
		status = view(l, (const int[]){state->src, dy, dx}[k], layer->rows, layer->length,
			      &views[k], err);
	for (int k = 0; status == PRONY_OK && k < 2; k++)
		status = view(l, l->values[forward->inputs[1 + k]].operand, 0, layer->length,
			      &views[3 + k], err);
	for (int k = 0; status == PRONY_OK && k < 2; k++)
		status = view(l, gradients[k], 0, layer->length, &gradients[k], err);
	if (status == PRONY_OK)
		status = cpu_primitive(
			l, forward->name, "gradient", state->work->backward_data,
			(const int[]){DNNL_ARG_SRC, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE,
				      DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_DIFF_DST,
				      DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT},
			(const int[]){views[0], layer->mean, layer->variance, views[3], views[4],
				      views[1], views[2], gradients[0], gradients[1]},
			9, err);
	if (status == PRONY_OK && node->outputs[0] != VALUE_NONE)
		l->values[node->outputs[0]].operand = dx;
	return status;
}
