/*
 * LSTM, GRU and RNN with the library's primitives: time x batch x features, weights 1 x 1 x inputs
 * x gates x hidden, gates of an LSTM in the order i, f, c, o. native.c converts weights from and to
 * ONNX's order.
 *
 * Steps depend on each other, rows of the batch do not. If all threads can have the same number of
 * rows, each thread computes all steps of its own rows alone. The library would instead split each
 * step, a product of a few dozen rows, and its threads would wait for each other after each step:
 * on two threads that took 1.1 to 3 times as long, least with many rows and few steps.
 */
#include "adapters/native/cpu/recurrent.h"

#include <string.h>

/* Operands of the forward primitive, and also of the backward primitive. */
enum {
	X,
	W_X,
	W_H,
	B,
	STATES, /* of all steps */
	LAST,
	LAST_CELL,
	WORKSPACE,
	FIRST,
	FIRST_CELL,
	FORWARD_OPERANDS
};

/* Additional operands of the backward primitive: gradients. */
enum {
	D_STATES = FORWARD_OPERANDS,
	D_LAST,
	D_LAST_CELL,
	D_X,
	D_W_X,
	D_W_H,
	D_B,
	D_FIRST,
	D_FIRST_CELL,
	BACKWARD_OPERANDS
};

static const int arguments[BACKWARD_OPERANDS] = {
	[X] = DNNL_ARG_SRC_LAYER,
	[W_X] = DNNL_ARG_WEIGHTS_LAYER,
	[W_H] = DNNL_ARG_WEIGHTS_ITER,
	[B] = DNNL_ARG_BIAS,
	[STATES] = DNNL_ARG_DST_LAYER,
	[LAST] = DNNL_ARG_DST_ITER,
	[LAST_CELL] = DNNL_ARG_DST_ITER_C,
	[WORKSPACE] = DNNL_ARG_WORKSPACE,
	[FIRST] = DNNL_ARG_SRC_ITER,
	[FIRST_CELL] = DNNL_ARG_SRC_ITER_C,
	[D_STATES] = DNNL_ARG_DIFF_DST_LAYER,
	[D_LAST] = DNNL_ARG_DIFF_DST_ITER,
	[D_LAST_CELL] = DNNL_ARG_DIFF_DST_ITER_C,
	[D_X] = DNNL_ARG_DIFF_SRC_LAYER,
	[D_W_X] = DNNL_ARG_DIFF_WEIGHTS_LAYER,
	[D_W_H] = DNNL_ARG_DIFF_WEIGHTS_ITER,
	[D_B] = DNNL_ARG_DIFF_BIAS,
	[D_FIRST] = DNNL_ARG_DIFF_SRC_ITER,
	[D_FIRST_CELL] = DNNL_ARG_DIFF_SRC_ITER_C,
};

/* The number of parts of a batch: one for each thread, or one that all threads share. */
static int parts_of(const struct lowering *l, int64_t batch)
{
	int threads = l->program->threads;

	if (threads < 2 || cpu_onednn(l)->on_tbb || !cpu_onednn(l)->team_run ||
	    batch % threads != 0)
		return 1;
	return threads;
}

static struct recurrent *recurrent_make(struct lowering *l, const struct node *node)
{
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	const struct shape *w_h = &l->graph->values[node->inputs[2]].shape;
	struct recurrent *r = arena_alloc(&l->program->arena, sizeof *r);
	int parts = parts_of(l, x->dims[0]);

	*r = (struct recurrent){.op = node->op,
				.attributes = &node->attributes,
				.parts = parts,
				.rows = x->dims[0] / parts,
				.steps = x->dims[1],
				.features = x->dims[2],
				.hidden = w_h->dims[1],
				.gates = w_h->dims[0] / w_h->dims[1],
				.biases = l->graph->values[node->inputs[3]].shape.dims[0] /
					  w_h->dims[1]};
	r->operands = arena_array(&l->program->arena, (size_t)parts * FORWARD_OPERANDS,
				  sizeof *r->operands);
	for (int i = 0; i < parts * FORWARD_OPERANDS; i++)
		r->operands[i] = OPERAND_NONE;
	return r;
}

/* Declares weights i (0: of x, 1: of h, 2: bias) in the layout of their gradient. */
static enum prony_status declare(struct lowering *l, int n, const struct recurrent *r, int i,
				 struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node_state *state = &l->nodes[n];
	static const int order[] = {0, 2, 3, 1}; /* ONNX's index of each of the library's gates */
	int64_t inputs = i == 0 ? r->features : r->hidden, all = r->gates * r->hidden * inputs;
	const int64_t dims[] = {1, 1, inputs, r->gates, r->hidden};
	const int64_t strides[] = {all, all, 1, r->hidden * inputs, inputs};
	struct layout master = cpu_layout(
		dnn, l->training ? dnn->primitive_desc_query_md(state->work->backward_data,
								dnnl_query_diff_weights_md, i)
				 : dnn->primitive_desc_query_md(state->work->forward,
								dnnl_query_weights_md, i));
	struct layout outside = i == 2 ? recurrent_layout(r, BIAS, DTYPE_F32)
				       : layout_strided(DTYPE_F32, 5, dims, strides);
	int value = l->graph->nodes[n].inputs[1 + i];
	enum prony_status status = lower_parameter(l, value, &master, &outside, err);
	struct parameter *parameter = lower_find_parameter(l, value);

	parameter->gates = (int)r->gates;
	parameter->gate_order = r->op == OP_LSTM ? order : NULL;
	/* The library does not unpack weights that it has packed. */
	parameter->keeps_original |= !l->training;
	return status;
}

/* Weights in the layouts that a primitive needs, the same for all parts of `operands`. */
static enum prony_status use_weights(struct lowering *l, const struct node *node,
				     const_dnnl_primitive_desc_t pd, int parts, int stride,
				     int *operands, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 3; i++) {
		struct layout wanted = cpu_layout(
			cpu_onednn(l),
			cpu_onednn(l)->primitive_desc_query_md(pd, dnnl_query_weights_md, i));
		int operand;

		status = lower_weights(l, node->inputs[1 + i], &wanted, node->name, &operand, err);
		for (int p = 0; status == PRONY_OK && p < parts; p++)
			operands[p * stride + W_X + i] = operand;
	}
	return status;
}

/* Views of `whole`, which holds the parts of a tensor one after the other: operands[p * stride]. */
static enum prony_status view_parts(struct lowering *l, int whole, const struct layout *part,
				    int parts, int stride, int *operands, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int p = 0; status == PRONY_OK && p < parts; p++)
		status = program_alias(l->program, whole, part, (size_t)p * part->bytes,
				       &operands[p * stride], err);
	return status;
}

/* A separate tensor for each part. */
static enum prony_status own_parts(struct lowering *l, const struct layout *part, int parts,
				   int stride, int *operands, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int p = 0; status == PRONY_OK && p < parts; p++)
		status = program_operand(l->program, part, REGION_PLANNED, &operands[p * stride],
					 err);
	return status;
}

/* One operand for all parts: zeros, which no command overwrites. */
static enum prony_status zeros(struct lowering *l, const struct layout *part, int parts, int stride,
			       int *operands, struct error *err)
{
	int operand;
	enum prony_status status = program_operand(l->program, part, REGION_LASTING, &operand, err);

	for (int p = 0; status == PRONY_OK && p < parts; p++)
		operands[p * stride] = operand;
	return status;
}

/* The dimensions of data that all parts read or write: parts x steps x rows x width, or the same
 * with the batch in front. */
static struct layout in_parts(const struct recurrent *r, enum dtype type, int64_t width,
			      bool batch_first)
{
	int64_t dims[] = {r->parts, r->steps, r->rows, width};
	int64_t first[] = {r->parts, r->rows, r->steps, width};

	return layout_row_major(type, 4, batch_first ? first : dims);
}

/* The contents of `operand` (4 dimensions, no blocks) with steps and rows exchanged, as `as`. */
static enum prony_status exchange(struct lowering *l, int operand, const struct layout *as,
				  const char *name, int *out, struct error *err)
{
	struct layout swapped =
		layout_permuted(lower_layout(l, operand), (const int[]){0, 2, 1, 3});
	int view;
	enum prony_status status = program_alias(l->program, operand, &swapped, 0, &view, err);

	return status == PRONY_OK ? lower_as(l, view, as, name, out, err) : status;
}

/* Operand x, batch x time x width, with time before the rows of each part, as operands
 * [p * stride]. */
static enum prony_status time_before_rows(struct lowering *l, const struct node *node,
					  const struct recurrent *r, int x,
					  const struct layout *part, int64_t width, int stride,
					  int *operands, struct error *err)
{
	struct layout time_first = in_parts(r, part->type, width, false);
	struct layout batch_first = in_parts(r, lower_layout(l, x)->type, width, true);
	int whole;
	enum prony_status status = lower_as(l, x, &batch_first, node->name, &x, err);

	if (status == PRONY_OK)
		status = exchange(l, x, &time_first, node->name, &whole, err);
	if (status == PRONY_OK)
		status = view_parts(l, whole, part, r->parts, stride, operands, err);
	return status;
}

static enum prony_status source(struct lowering *l, const struct node *node,
				const struct recurrent *r, enum dtype type, struct error *err)
{
	struct layout part = recurrent_layout(r, LAYER, type);
	int x;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status != PRONY_OK)
		return status;
	return time_before_rows(l, node, r, x, &part, r->features, FORWARD_OPERANDS,
				&r->operands[X], err);
}

/* The results of the forward primitive; *whole: the last state of the whole batch, or the states of
 * all steps, with time before the rows of each part. */
static enum prony_status results(struct lowering *l, int n, const struct recurrent *r,
				 enum dtype type, int *whole, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const struct node_state *state = &l->nodes[n];
	bool all = r->attributes->sequence;
	const int64_t dims[] = {r->parts * r->rows, r->hidden};
	const_dnnl_memory_desc_t desc =
		dnn->primitive_desc_query_md(state->work->forward, dnnl_query_workspace_md, 0);
	struct layout last = recurrent_layout(r, INNER, type),
		      states = recurrent_layout(r, HIDDEN_LAYER, type),
		      cell = recurrent_layout(r, CELL, type),
		      time_first = in_parts(r, type, r->hidden, false), workspace;
	enum prony_status status =
		all ? program_operand(l->program, &time_first, REGION_PLANNED, whole, err)
		    : lower_new(l, type, 2, dims, whole, err);

	if (status == PRONY_OK)
		status = view_parts(l, *whole, all ? &states : &last, r->parts, FORWARD_OPERANDS,
				    &r->operands[all ? STATES : LAST], err);
	if (status == PRONY_OK)
		status = own_parts(l, all ? &last : &states, r->parts, FORWARD_OPERANDS,
				   &r->operands[all ? LAST : STATES], err);
	if (status == PRONY_OK && r->op == OP_LSTM)
		status = own_parts(l, &cell, r->parts, FORWARD_OPERANDS, &r->operands[LAST_CELL],
				   err);
	if (status != PRONY_OK || !l->training || !desc || dnn->memory_desc_get_size(desc) == 0)
		return status;
	workspace = cpu_layout(dnn, desc);
	return own_parts(l, &workspace, r->parts, FORWARD_OPERANDS, &r->operands[WORKSPACE], err);
}

/* Converts what the primitives compute with time in front to the graph's value. */
static enum prony_status publish(struct lowering *l, int value, int from, const char *name,
				 int *operand, struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	struct layout rows =
		layout_row_major(lower_layout(l, from)->type, shape->rank, shape->dims);

	return exchange(l, from, &rows, name, operand, err);
}

static enum prony_status append_forward(struct lowering *l, int n, const struct recurrent *r,
					enum dtype type, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct layout inner = recurrent_layout(r, INNER, type),
		      cell = recurrent_layout(r, CELL, type);
	int whole = OPERAND_NONE;
	enum prony_status status = source(l, node, r, type, err);

	if (status == PRONY_OK)
		status = use_weights(l, node, l->nodes[n].work->forward, r->parts, FORWARD_OPERANDS,
				     r->operands, err);
	/* The library does not require initial states, but without them (3.2) its gradient of the
	 * recurrent weights is wrong. */
	if (status == PRONY_OK)
		status = zeros(l, &inner, r->parts, FORWARD_OPERANDS, &r->operands[FIRST], err);
	if (status == PRONY_OK && r->op == OP_LSTM)
		status = zeros(l, &cell, r->parts, FORWARD_OPERANDS, &r->operands[FIRST_CELL], err);
	if (status == PRONY_OK)
		status = results(l, n, r, type, &whole, err);
	if (status == PRONY_OK)
		status = cpu_primitive_parts(l, node->name, "forward", l->nodes[n].work->forward,
					     arguments, r->operands, FORWARD_OPERANDS, r->parts,
					     err);
	l->nodes[n].dst = whole;
	if (status == PRONY_OK && r->attributes->sequence)
		status = publish(l, node->outputs[0], whole, node->name, &l->nodes[n].dst, err);
	return status;
}

enum prony_status cpu_recurrent(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct recurrent *r = recurrent_make(l, node);
	enum dtype type;
	enum prony_status status;

	l->nodes[n].work->recurrent = r;
	if (r->parts > 1)
		onednn_use_threads(cpu_onednn(l), 1);
	status = recurrent_describe(l, n, r, &type, err);
	onednn_use_threads(cpu_onednn(l), l->program->threads);
	for (int i = 0; status == PRONY_OK && i < 3; i++)
		status = declare(l, n, r, i, err);
	if (status == PRONY_OK)
		status = append_forward(l, n, r, type, err);
	l->values[node->outputs[0]].operand = l->nodes[n].dst;
	l->macs += r->parts * r->rows * r->steps * r->gates * r->hidden * (r->features + r->hidden);
	return status;
}

static void run_clear(struct program *program, const struct command *command)
{
	for (int i = 0; i < command->operand_count; i++)
		memset(cpu_data(program, command, i), 0,
		       program->operands[command->operands[i]].bytes);
}

struct sum {
	float *to;
	const float *from;
};

static void add(void *data, size_t first, size_t end)
{
	const struct sum *sum = data;

	for (size_t i = first; i < end; i++)
		sum->to[i] += sum->from[i];
}

/* Adds operands 3 to 5 to operands 0 to 2, then every further three. */
static void run_sum(struct program *program, const struct command *command)
{
	for (int i = 3; i < command->operand_count; i++) {
		const struct operand *to = &program->operands[command->operands[i % 3]];
		struct sum sum = {.to = to->data, .from = cpu_data(program, command, i)};
		size_t elements = to->bytes / sizeof(float);

		onednn_parallel(&program->device->dnn, cpu_threads(program, elements), elements,
				add, &sum);
	}
}

/* The layout of a part that a gradient's primitive needs. */
static struct layout gradient_layout(const struct lowering *l, const struct node *node,
				     dnnl_query_t query, int index)
{
	const_dnnl_primitive_desc_t pd = l->nodes[node->differentiates].work->backward_data;

	return cpu_layout(cpu_onednn(l), cpu_onednn(l)->primitive_desc_query_md(pd, query, index));
}

/* The gradients of all states, which are given for the whole batch; that of the last one is among
 * them. */
static enum prony_status states_gradient(struct lowering *l, const struct node *node,
					 const struct recurrent *r, int *operands,
					 struct error *err)
{
	struct layout part = gradient_layout(l, node, dnnl_query_diff_dst_md, 0);
	struct layout last = gradient_layout(l, node, dnnl_query_diff_dst_md, 1);
	enum prony_status status =
		time_before_rows(l, node, r, l->values[node->inputs[0]].operand, &part, r->hidden,
				 BACKWARD_OPERANDS, &operands[D_STATES], err);

	return status == PRONY_OK
		       ? zeros(l, &last, r->parts, BACKWARD_OPERANDS, &operands[D_LAST], err)
		       : status;
}

/* The gradient of the last state, which is given for the whole batch; no other state has one. */
static enum prony_status last_gradient(struct lowering *l, const struct node *node,
				       const struct recurrent *r, int *operands, struct error *err)
{
	const int64_t dims[] = {r->parts * r->rows, r->hidden};
	struct layout part = gradient_layout(l, node, dnnl_query_diff_dst_md, 1);
	struct layout states = gradient_layout(l, node, dnnl_query_diff_dst_md, 0);
	struct layout rows = layout_row_major(part.type, 2, dims);
	int whole;
	enum prony_status status =
		lower_as(l, l->values[node->inputs[0]].operand, &rows, node->name, &whole, err);

	if (status == PRONY_OK)
		status = view_parts(l, whole, &part, r->parts, BACKWARD_OPERANDS, &operands[D_LAST],
				    err);
	return status == PRONY_OK
		       ? zeros(l, &states, r->parts, BACKWARD_OPERANDS, &operands[D_STATES], err)
		       : status;
}

/* The weights' gradients; the update reads those of the first part. The primitives add to the
 * present contents, so all are listed in `clear`. */
static enum prony_status weight_gradients(struct lowering *l, const struct node *forward,
					  const struct recurrent *r, int *operands, int *clear,
					  struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 3; i++) {
		int gradient = lower_find_parameter(l, forward->inputs[1 + i])->gradient;

		operands[D_W_X + i] = gradient;
		status = own_parts(l, lower_layout(l, gradient), r->parts - 1, BACKWARD_OPERANDS,
				   &operands[BACKWARD_OPERANDS + D_W_X + i], err);
		for (int p = 0; status == PRONY_OK && p < r->parts; p++)
			clear[3 * p + i] = operands[p * BACKWARD_OPERANDS + D_W_X + i];
	}
	return status;
}

static enum prony_status backward_operands(struct lowering *l, const struct node *node,
					   const struct recurrent *r, int *operands, int *dx,
					   int *clear, struct error *err)
{
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct layout time_first = in_parts(r, DTYPE_F32, r->features, false);
	struct layout of_x = gradient_layout(l, node, dnnl_query_diff_src_md, 0);
	enum prony_status status;

	for (int p = 0; p < r->parts; p++) {
		int *part = operands + p * BACKWARD_OPERANDS;

		memcpy(part, r->operands + p * FORWARD_OPERANDS, FORWARD_OPERANDS * sizeof(int));
		for (int i = FORWARD_OPERANDS; i < BACKWARD_OPERANDS; i++)
			part[i] = OPERAND_NONE;
	}
	status = use_weights(l, forward, l->nodes[node->differentiates].work->backward_data,
			     r->parts, BACKWARD_OPERANDS, operands, err);
	if (status == PRONY_OK)
		status = r->attributes->sequence ? states_gradient(l, node, r, operands, err)
						 : last_gradient(l, node, r, operands, err);
	if (status == PRONY_OK)
		status = weight_gradients(l, forward, r, operands, clear, err);
	if (status == PRONY_OK)
		status = program_operand(l->program, &time_first, REGION_PLANNED, dx, err);
	if (status == PRONY_OK)
		status =
			view_parts(l, *dx, &of_x, r->parts, BACKWARD_OPERANDS, &operands[D_X], err);
	if (status == PRONY_OK && r->op == OP_LSTM) {
		struct layout of_cell = gradient_layout(l, node, dnnl_query_diff_dst_md, 2);

		status = zeros(l, &of_cell, r->parts, BACKWARD_OPERANDS, &operands[D_LAST_CELL],
			       err);
	}
	/* The primitive also writes gradients of the initial states, which no command reads. */
	for (int i = 0; status == PRONY_OK && i < (r->op == OP_LSTM ? 2 : 1); i++) {
		struct layout of_first = gradient_layout(l, node, dnnl_query_diff_src_md, 1 + i);

		status = own_parts(l, &of_first, r->parts, BACKWARD_OPERANDS,
				   &operands[D_FIRST + i], err);
	}
	return status;
}

enum prony_status cpu_recurrent_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	const struct recurrent *r = state->work->recurrent;
	int *operands = arena_array(&l->program->arena, (size_t)r->parts * BACKWARD_OPERANDS,
				    sizeof *operands);
	int *clear = arena_array(&l->program->arena, (size_t)r->parts * 3, sizeof *clear);
	int dx = OPERAND_NONE;
	enum prony_status status = backward_operands(l, node, r, operands, &dx, clear, err);

	if (status != PRONY_OK)
		return status;
	cpu_kernel(l, node->name, "clear", run_clear, clear, 3 * r->parts);
	status = cpu_primitive_parts(l, node->name, "", state->work->backward_data, arguments,
				     operands, BACKWARD_OPERANDS, r->parts, err);
	if (status == PRONY_OK && r->parts > 1)
		cpu_kernel(l, node->name, "sum", run_sum, clear, 3 * r->parts);
	if (status == PRONY_OK && node->outputs[0] != VALUE_NONE)
		status = publish(l, node->outputs[0], dx, node->name,
				 &l->values[node->outputs[0]].operand, err);
	return status;
}
