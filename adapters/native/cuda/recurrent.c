/* LSTM and RNN: one matrix product for the inputs of all steps, then for each step a product with
 * the state and a kernel for the cell; the gradient likewise from the last step to the first, and
 * then one product each for the weights and the input. Sums and cells are fp32. */
#include <stdio.h>

#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

/* A layer, for its gradient. Operands; the batch comes first in all but cells. */
struct recurrent {
	bool lstm;
	/* Of states and products. An RNN's are strict fp32 in each precision: a state that passes
	 * through 784 steps would be rounded 784 times. The cells of an LSTM forget. */
	enum dtype type;
	int64_t batch, steps, features, hidden, width; /* width: of all gates */
	int sums;				       /* batch x steps x width */
	int cells;				       /* steps x batch x hidden; NONE for RNN */
	int before; /* the state that each step begins with: batch x steps x hidden */
	int bias;
};

static struct recurrent *describe(struct lowering *l, const struct node *node)
{
	const int64_t *x = l->graph->values[node->inputs[0]].shape.dims;
	const int64_t *r = l->graph->values[node->inputs[2]].shape.dims;
	struct recurrent *layer = arena_alloc(&l->program->arena, sizeof(*layer));

	*layer = (struct recurrent){.lstm = node->op == OP_LSTM,
				    .type = node->op == OP_LSTM ? l->data : DTYPE_F32,
				    .batch = x[0],
				    .steps = x[1],
				    .features = x[2],
				    .hidden = r[1],
				    .width = r[0],
				    .cells = OPERAND_NONE,
				    .before = OPERAND_NONE};
	return layer;
}

static struct recurrent_arguments arguments(const struct lowering *l, const struct recurrent *r,
					    int64_t step)
{
	return (struct recurrent_arguments){.batch = (int)r->batch,
					    .steps = (int)r->steps,
					    .hidden = (int)r->hidden,
					    .step = (int)step,
					    .training = l->training};
}

/* Declares the weights of the input, those of the state, and the bias, in ONNX's order of gates. */
static enum prony_status declare(struct lowering *l, const struct node *node, struct recurrent *r,
				 struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 1; status == PRONY_OK && i < 4; i++) {
		const struct shape *shape = &l->graph->values[node->inputs[i]].shape;
		struct layout rows = layout_row_major(DTYPE_F32, shape->rank, shape->dims);

		status = lower_parameter(l, node->inputs[i], &rows, &rows, err);
	}
	r->bias = lower_find_parameter(l, node->inputs[3])->operand;
	return status;
}

/* Weights i of the node in the layer's type. */
static enum prony_status weights(struct lowering *l, const struct node *node,
				 const struct recurrent *r, int i, int *out, struct error *err)
{
	const struct shape *shape = &l->graph->values[node->inputs[i]].shape;
	struct layout rows = layout_row_major(r->type, shape->rank, shape->dims);

	return lower_weights(l, node->inputs[i], &rows, node->name, out, err);
}

/* The value in that type, row-major. */
static enum prony_status source(struct lowering *l, int value, const char *name, enum dtype type,
				int *out, struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	struct layout rows = layout_row_major(type, shape->rank, shape->dims);
	enum prony_status status = lower_value(l, value, name, out, err);

	return status == PRONY_OK ? lower_as(l, *out, &rows, name, out, err) : status;
}

static enum prony_status new_operands(struct lowering *l, struct recurrent *r, int *dst,
				      struct error *err)
{
	const int64_t sums[] = {r->batch, r->steps, r->width};
	const int64_t cells[] = {l->training ? r->steps : 1, r->batch, r->hidden};
	const int64_t before[] = {r->batch, r->steps, r->hidden}, last[] = {r->batch, r->hidden};
	enum prony_status status = lower_new(l, DTYPE_F32, 3, sums, &r->sums, err);

	if (status == PRONY_OK && r->lstm)
		status = lower_new(l, DTYPE_F32, 3, cells, &r->cells, err);
	if (status == PRONY_OK && (l->training || r->steps > 1))
		status = lower_new(l, r->type, 3, before, &r->before, err);
	return status == PRONY_OK ? lower_new(l, r->type, 2, last, dst, err) : status;
}

static void append_cell(struct lowering *l, const struct node *node, const struct recurrent *r,
			int64_t step, int last)
{
	struct recurrent_arguments a = arguments(l, r, step);
	struct work *w = cuda_kernel(l, node->name, "cell", r->lstm ? "lstm_cell" : "rnn_cell",
				     r->lstm ? r->type : DTYPE_COUNT, r->batch * r->hidden);

	cuda_operand(l, w, r->sums);
	if (r->lstm)
		cuda_operand(l, w, r->cells);
	cuda_operand(l, w, r->before);
	cuda_operand(l, w, last);
	cuda_operand(l, w, r->bias);
	cuda_struct(l, w, &a, sizeof(a));
}

/* Notes that the layer is more precise than the rest of the network. */
static void add_note(struct lowering *l, const struct node *node, const struct recurrent *r)
{
	size_t room = sizeof(l->notes) - l->notes_length;
	int length = 0;

	if (!r->lstm && l->program->device->precision != PRECISION_FP32)
		length = snprintf(l->notes + l->notes_length, room, "%s=fp32; ", node->name);
	if (length > 0 && (size_t)length < room)
		l->notes_length += (size_t)length;
	else
		l->notes[l->notes_length] = '\0'; /* whole entries only */
}

enum prony_status cuda_recurrent(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct recurrent *r = describe(l, node);
	struct cuda_product input = {.m = r->batch * r->steps,
				     .n = r->width,
				     .k = r->features,
				     .batch = 1,
				     .transpose_b = true,
				     .lda = r->features,
				     .ldb = r->features,
				     .ldc = r->width,
				     .a = r->type,
				     .b = r->type,
				     .c = DTYPE_F32,
				     .exact = !r->lstm};
	struct cuda_product repeat = input;
	int of_x, of_h;
	enum prony_status status =
		source(l, node->inputs[0], node->name, r->type, &state->src, err);

	state->work->detail = r;
	if (status == PRONY_OK)
		status = declare(l, node, r, err);
	if (status == PRONY_OK)
		status = weights(l, node, r, 1, &of_x, err);
	if (status == PRONY_OK)
		status = weights(l, node, r, 2, &of_h, err);
	if (status == PRONY_OK)
		status = new_operands(l, r, &state->dst, err);
	if (status == PRONY_OK)
		status = cuda_product(l, node->name, "input", &input, state->src, 0, of_x, 0,
				      r->sums, 0, OPERAND_NONE, err);
	repeat.m = r->batch;
	repeat.k = repeat.ldb = r->hidden;
	repeat.lda = r->steps * r->hidden;
	repeat.ldc = r->steps * r->width;
	repeat.accumulate = true;
	for (int64_t t = 0; status == PRONY_OK && t < r->steps; t++) {
		if (t > 0)
			status = cuda_product(l, node->name, "state", &repeat, r->before,
					      t * r->hidden, of_h, 0, r->sums, t * r->width,
					      OPERAND_NONE, err);
		if (status == PRONY_OK)
			append_cell(l, node, r, t, state->dst);
	}
	add_note(l, node, r);
	l->macs += r->batch * r->steps * r->width * (r->features + r->hidden);
	l->values[node->outputs[0]].operand = state->dst;
	return status;
}

/* The operands of a gradient: of the last state, of the sums, of a step's state and cell. */
struct gradient {
	int dy, da, dh, dc;
};

static void append_cell_grad(struct lowering *l, const struct node *node, const struct recurrent *r,
			     int64_t step, const struct gradient *g)
{
	struct recurrent_arguments a = arguments(l, r, step);
	struct work *w = cuda_kernel(l, node->name, "cell gradient",
				     r->lstm ? "lstm_cell_grad" : "rnn_cell_grad",
				     r->lstm ? r->type : DTYPE_COUNT, r->batch * r->hidden);

	cuda_operand(l, w, g->da);
	if (r->lstm)
		cuda_operand(l, w, g->dc);
	cuda_operand(l, w, g->dh);
	cuda_operand(l, w, g->dy);
	cuda_operand(l, w, r->sums);
	cuda_operand(l, w, r->lstm ? r->cells : r->bias);
	cuda_struct(l, w, &a, sizeof(a));
}

/* From the last step to the first: fills g->da. */
static enum prony_status back_through_time(struct lowering *l, const struct node *node,
					   const struct recurrent *r, const struct gradient *g,
					   struct error *err)
{
	const struct cuda_product product = {.m = r->batch,
					     .n = r->hidden,
					     .k = r->width,
					     .batch = 1,
					     .lda = r->steps * r->width,
					     .ldb = r->hidden,
					     .ldc = r->hidden,
					     .a = r->type,
					     .b = r->type,
					     .c = DTYPE_F32,
					     .exact = !r->lstm};
	int of_h;
	enum prony_status status = weights(l, node, r, 2, &of_h, err);

	for (int64_t t = r->steps - 1; status == PRONY_OK && t >= 0; t--) {
		append_cell_grad(l, node, r, t, g);
		if (t > 0)
			status = cuda_product(l, node->name, "state gradient", &product, g->da,
					      t * r->width, of_h, 0, g->dh, 0, OPERAND_NONE, err);
	}
	return status;
}

/* The gradients of w and r, which multiply `inputs` of x and the states before each step; and that
 * of the bias. */
static enum prony_status weight_gradients(struct lowering *l, const struct node *node,
					  const struct recurrent *r, int x, int da,
					  struct error *err)
{
	struct cuda_product product = {.m = r->width,
				       .k = r->batch * r->steps,
				       .batch = 1,
				       .transpose_a = true,
				       .lda = r->width,
				       .a = r->type,
				       .b = r->type,
				       .c = DTYPE_F32};
	enum prony_status status = PRONY_OK;

	for (int i = 1; status == PRONY_OK && i < 3; i++) {
		product.n = product.ldb = product.ldc = i == 1 ? r->features : r->hidden;
		status = cuda_product(l, node->name, "weight gradient", &product, da, 0,
				      i == 1 ? x : r->before, 0,
				      lower_find_parameter(l, node->inputs[i])->gradient, 0,
				      OPERAND_NONE, err);
	}
	return status == PRONY_OK
		       ? cuda_column_sums(l, node->name, "bias gradient", da, r->batch * r->steps,
					  r->width,
					  lower_find_parameter(l, node->inputs[3])->gradient, err)
		       : status;
}

static enum prony_status input_gradient(struct lowering *l, const struct node *node,
					const struct recurrent *r, int da, int *out,
					struct error *err)
{
	const int64_t dims[] = {r->batch, r->steps, r->features};
	const struct cuda_product product = {.m = r->batch * r->steps,
					     .n = r->features,
					     .k = r->width,
					     .batch = 1,
					     .lda = r->width,
					     .ldb = r->features,
					     .ldc = r->features,
					     .a = r->type,
					     .b = r->type,
					     .c = r->type};
	int of_x;
	enum prony_status status = weights(l, node, r, 1, &of_x, err);

	if (status == PRONY_OK)
		status = lower_new(l, r->type, 3, dims, out, err);
	return status == PRONY_OK ? cuda_product(l, node->name, "input gradient", &product, da, 0,
						 of_x, 0, *out, 0, OPERAND_NONE, err)
				  : status;
}

enum prony_status cuda_recurrent_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const struct node_state *state = &l->nodes[node->differentiates];
	const struct recurrent *r = state->work->detail;
	const int64_t sums[] = {r->batch, r->steps, r->width}, plane[] = {r->batch, r->hidden};
	struct gradient g = {.dc = OPERAND_NONE};
	enum prony_status status = source(l, node->inputs[0], node->name, r->type, &g.dy, err);

	if (status == PRONY_OK)
		status = lower_new(l, r->type, 3, sums, &g.da, err);
	if (status == PRONY_OK)
		status = lower_new(l, DTYPE_F32, 2, plane, &g.dh, err);
	if (status == PRONY_OK && r->lstm)
		status = lower_new(l, DTYPE_F32, 2, plane, &g.dc, err);
	if (status == PRONY_OK)
		status = back_through_time(l, forward, r, &g, err);
	if (status == PRONY_OK)
		status = weight_gradients(l, forward, r, state->src, g.da, err);
	if (status == PRONY_OK && node->outputs[0] != VALUE_NONE)
		status = input_gradient(l, forward, r, g.da, &l->values[node->outputs[0]].operand,
					err);
	return status;
}
