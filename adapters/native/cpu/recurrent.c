#include "adapters/native/cpu/recurrent.h"

#include <string.h>

/*
 * LSTM and RNN as the library has them: time x batch x features, weights 1 x 1 x inputs x gates x
 * hidden, gates in the order i, f, c, o. Weights come in and go out in ONNX's order (native.c).
 *
 * Steps follow each other, rows of the batch do not: where all threads can have as many rows, each
 * takes its own through all steps alone. The library shares out each step instead, a product of a
 * few dozen rows, and its threads wait for each other after each: on two threads that took 1.1 to 3
 * times as long, least with many rows and few steps.
 */

/* What the forward primitive is given, and the backward primitive, too. */
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

/* What the backward primitive is given besides: gradients. */
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

/* Parts of a batch: one for each thread, or one that all threads share. */
static int parts_of(const struct lowering *l, int64_t batch)
{
	int threads = l->program->threads;

	if (threads < 2 || l->dnn->on_tbb || !l->dnn->team_run || batch % threads != 0)
		return 1;
	return threads;
}

static struct recurrent *recurrent_make(struct lowering *l, const struct node *node)
{
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	const struct shape *w_h = &l->graph->values[node->inputs[2]].shape;
	struct recurrent *r = arena_alloc(&l->program->arena, sizeof *r);
	int parts = parts_of(l, x->dims[0]);

	*r = (struct recurrent){.lstm = node->op == OP_LSTM,
				.parts = parts,
				.rows = x->dims[0] / parts,
				.steps = x->dims[1],
				.features = x->dims[2],
				.hidden = w_h->dims[1],
				.gates = node->op == OP_LSTM ? 4 : 1};
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
	const struct onednn *dnn = l->dnn;
	const struct node_state *state = &l->nodes[n];
	int64_t inputs = i == 0 ? r->features : r->hidden;
	dnnl_dims_t dims = {1, 1, inputs, r->gates, r->hidden};
	dnnl_dims_t strides = {0, 0, 1, r->hidden * inputs, inputs};
	const_dnnl_memory_desc_t master =
		l->training
			? dnn->primitive_desc_query_md(state->backward_data,
						       dnnl_query_diff_weights_md, i)
			: dnn->primitive_desc_query_md(state->forward, dnnl_query_weights_md, i);
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	strides[0] = strides[1] = r->gates * r->hidden * inputs;
	if (i == 2)
		status = lower_plain(l, dnnl_f32, 4, (const int64_t[]){1, 1, r->gates, r->hidden},
				     &plain, err);
	else
		status = onednn_check(
			dnn->memory_desc_create_with_strides(&plain, 5, dims, dnnl_f32, strides),
			"memory descriptor", "recurrent weights", err);
	if (status != PRONY_OK)
		return status;
	status = lower_parameter(l, l->graph->nodes[n].inputs[1 + i], master, plain, err);
	l->parameters[l->parameter_count - 1].gates = (int)r->gates;
	/* What the library packs for itself it does not unpack. */
	l->parameters[l->parameter_count - 1].keeps_original |= !l->training;
	return status;
}

/* Weights in the layouts that a primitive wants, the same for all parts of `operands`. */
static enum prony_status use_weights(struct lowering *l, const struct node *node,
				     const_dnnl_primitive_desc_t pd, int parts, int stride,
				     int *operands, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 3; i++) {
		int operand;

		status =
			lower_weights(l, node->inputs[1 + i],
				      l->dnn->primitive_desc_query_md(pd, dnnl_query_weights_md, i),
				      node->name, &operand, err);
		for (int p = 0; status == PRONY_OK && p < parts; p++)
			operands[p * stride + W_X + i] = operand;
	}
	return status;
}

/* Views of `whole`, in which the parts of a tensor follow each other: operands[p * stride]. */
static enum prony_status view_parts(struct lowering *l, int whole, const_dnnl_memory_desc_t part,
				    int parts, int stride, int *operands, struct error *err)
{
	size_t bytes = l->dnn->memory_desc_get_size(part);
	enum prony_status status = PRONY_OK;

	for (int p = 0; status == PRONY_OK && p < parts; p++)
		status = program_alias(l->program, whole, part, (size_t)p * bytes,
				       &operands[p * stride], err);
	return status;
}

/* A tensor of its own for each part. */
static enum prony_status own_parts(struct lowering *l, const_dnnl_memory_desc_t part, int parts,
				   int stride, int *operands, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int p = 0; status == PRONY_OK && p < parts; p++)
		status = program_operand(l->program, part, REGION_PLANNED, &operands[p * stride],
					 err);
	return status;
}

/* One for all parts: zeros, which nobody ever writes. */
static enum prony_status zeros(struct lowering *l, const_dnnl_memory_desc_t part, int parts,
			       int stride, int *operands, struct error *err)
{
	int operand;
	enum prony_status status = program_operand(l->program, part, REGION_LASTING, &operand, err);

	for (int p = 0; status == PRONY_OK && p < parts; p++)
		operands[p * stride] = operand;
	return status;
}

/* The dimensions of what all parts read or write: parts x steps x rows x channels, or the same with
 * the batch in front. */
static enum prony_status in_parts(const struct lowering *l, const struct recurrent *r,
				  dnnl_data_type_t type, bool batch_first, dnnl_memory_desc_t *out,
				  struct error *err)
{
	int64_t dims[] = {r->parts, r->steps, r->rows, r->features};
	int64_t first[] = {r->parts, r->rows, r->steps, r->features};

	return lower_plain(l, type, 4, batch_first ? first : dims, out, err);
}

/* The contents of `operand`, 4 dimensions, with steps and rows exchanged, as `as`. */
static enum prony_status exchange(struct lowering *l, int operand, const_dnnl_memory_desc_t as,
				  const char *name, int *out, struct error *err)
{
	dnnl_memory_desc_t swapped = NULL;
	int view;
	enum prony_status status = onednn_check(
		l->dnn->memory_desc_permute_axes(&swapped, l->program->operands[operand].desc,
						 (const int[]){0, 2, 1, 3}),
		"transposition", name, err);

	if (status == PRONY_OK)
		status = program_alias(l->program, operand, swapped, 0, &view, err);
	if (status == PRONY_OK)
		status = lower_as(l, view, as, name, out, err);
	if (swapped)
		l->dnn->memory_desc_destroy(swapped);
	return status;
}

/* The batch with time in front of the rows of each part. */
static enum prony_status source(struct lowering *l, const struct node *node,
				const struct recurrent *r, const struct recurrent_layouts *s,
				struct error *err)
{
	dnnl_memory_desc_t batch_first = NULL, time_first = NULL;
	int x, whole;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK)
		status = in_parts(l, r, lower_type(l, x), true, &batch_first, err);
	if (status == PRONY_OK)
		status = in_parts(l, r, onednn_type(l->dnn, s->data[LAYER]), false, &time_first,
				  err);
	if (status == PRONY_OK)
		status = lower_as(l, x, batch_first, node->name, &x, err);
	if (status == PRONY_OK)
		status = exchange(l, x, time_first, node->name, &whole, err);
	if (status == PRONY_OK)
		status = view_parts(l, whole, s->data[LAYER], r->parts, FORWARD_OPERANDS,
				    &r->operands[X], err);
	if (batch_first)
		l->dnn->memory_desc_destroy(batch_first);
	if (time_first)
		l->dnn->memory_desc_destroy(time_first);
	return status;
}

/* What the forward primitive writes; state->dst is the last state of the whole batch. */
static enum prony_status results(struct lowering *l, int n, const struct recurrent *r,
				 const struct recurrent_layouts *s, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	struct node_state *state = &l->nodes[n];
	const int64_t dims[] = {r->parts * r->rows, r->hidden};
	const_dnnl_memory_desc_t workspace =
		dnn->primitive_desc_query_md(state->forward, dnnl_query_workspace_md, 0);
	dnnl_memory_desc_t last = NULL;
	enum prony_status status =
		lower_plain(l, onednn_type(dnn, s->data[INNER]), 2, dims, &last, err);

	if (status != PRONY_OK)
		return status;
	status = program_operand(l->program, last, REGION_PLANNED, &state->dst, err);
	dnn->memory_desc_destroy(last);
	if (status == PRONY_OK)
		status = view_parts(l, state->dst, s->data[INNER], r->parts, FORWARD_OPERANDS,
				    &r->operands[LAST], err);
	if (status == PRONY_OK)
		status = own_parts(l, s->data[HIDDEN_LAYER], r->parts, FORWARD_OPERANDS,
				   &r->operands[STATES], err);
	if (status == PRONY_OK && r->lstm)
		status = own_parts(l, s->data[CELL], r->parts, FORWARD_OPERANDS,
				   &r->operands[LAST_CELL], err);
	if (status == PRONY_OK && l->training && workspace &&
	    dnn->memory_desc_get_size(workspace) > 0)
		status = own_parts(l, workspace, r->parts, FORWARD_OPERANDS,
				   &r->operands[WORKSPACE], err);
	return status;
}

static enum prony_status append_forward(struct lowering *l, int n, const struct recurrent *r,
					const struct recurrent_layouts *s, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	enum prony_status status = source(l, node, r, s, err);

	if (status == PRONY_OK)
		status = use_weights(l, node, l->nodes[n].forward, r->parts, FORWARD_OPERANDS,
				     r->operands, err);
	/* The library can do without initial states, but then (3.2) its gradient of the recurrent
	 * weights is wrong. */
	if (status == PRONY_OK)
		status = zeros(l, s->data[INNER], r->parts, FORWARD_OPERANDS, &r->operands[FIRST],
			       err);
	if (status == PRONY_OK && r->lstm)
		status = zeros(l, s->data[CELL], r->parts, FORWARD_OPERANDS,
			       &r->operands[FIRST_CELL], err);
	if (status == PRONY_OK)
		status = results(l, n, r, s, err);
	if (status != PRONY_OK)
		return status;
	return program_primitive_parts(l->program, node->name, "forward", l->nodes[n].forward,
				       arguments, r->operands, FORWARD_OPERANDS, r->parts, err);
}

enum prony_status lower_recurrent(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct recurrent *r = recurrent_make(l, node);
	struct recurrent_layouts s;
	enum prony_status status;

	l->nodes[n].recurrent = r;
	if (r->parts > 1)
		onednn_use_threads(l->dnn, 1);
	status = recurrent_describe(l, n, r, &s, err);
	onednn_use_threads(l->dnn, l->program->threads);
	for (int i = 0; status == PRONY_OK && i < 3; i++)
		status = declare(l, n, r, i, err);
	if (status == PRONY_OK)
		status = append_forward(l, n, r, &s, err);
	l->values[node->outputs[0]].operand = l->nodes[n].dst;
	l->macs += r->parts * r->rows * r->steps * r->gates * r->hidden * (r->features + r->hidden);
	recurrent_layouts_release(l, &s);
	return status;
}

static void run_clear(struct program *program, const struct command *command)
{
	for (int i = 0; i < command->operand_count; i++)
		memset(lower_data(program, command, i), 0,
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

/* Adds to operands 0 to 2 the three after them, then the next three. */
static void run_sum(struct program *program, const struct command *command)
{
	for (int i = 3; i < command->operand_count; i++) {
		const struct operand *to = &program->operands[command->operands[i % 3]];
		struct sum sum = {.to = to->data, .from = lower_data(program, command, i)};
		size_t elements = to->bytes / sizeof(float);

		onednn_parallel(program->dnn, lower_threads(program, elements), elements, add,
				&sum);
	}
}

/* The gradient that the primitives compute with time in front, as the value that the graph has. */
static enum prony_status publish_dx(struct lowering *l, int value, int dx, const char *name,
				    struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status =
		lower_plain(l, lower_type(l, dx), shape->rank, shape->dims, &plain, err);

	if (status == PRONY_OK)
		status = exchange(l, dx, plain, name, &l->values[value].operand, err);
	if (plain)
		l->dnn->memory_desc_destroy(plain);
	return status;
}

/* The gradient of the last state, which comes for the whole batch. */
static enum prony_status last_gradient(struct lowering *l, const struct node *node,
				       const struct recurrent *r, int *operands, struct error *err)
{
	const int64_t dims[] = {r->parts * r->rows, r->hidden};
	const_dnnl_memory_desc_t part = l->dnn->primitive_desc_query_md(
		l->nodes[node->differentiates].backward_data, dnnl_query_diff_dst_md, 1);
	dnnl_memory_desc_t plain = NULL;
	int whole;
	enum prony_status status = lower_plain(l, onednn_type(l->dnn, part), 2, dims, &plain, err);

	if (status != PRONY_OK)
		return status;
	status = lower_as(l, l->values[node->inputs[0]].operand, plain, node->name, &whole, err);
	l->dnn->memory_desc_destroy(plain);
	if (status != PRONY_OK)
		return status;
	return view_parts(l, whole, part, r->parts, BACKWARD_OPERANDS, &operands[D_LAST], err);
}

/* The weights' gradients: the first part's are what the update reads. The primitives add to what
 * they find, so `clear` tells all. */
static enum prony_status weight_gradients(struct lowering *l, const struct node *forward,
					  const struct recurrent *r, int *operands, int *clear,
					  struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 3; i++) {
		int gradient = lower_find_parameter(l, forward->inputs[1 + i])->gradient;

		operands[D_W_X + i] = gradient;
		status =
			own_parts(l, l->program->operands[gradient].desc, r->parts - 1,
				  BACKWARD_OPERANDS, &operands[BACKWARD_OPERANDS + D_W_X + i], err);
		for (int p = 0; status == PRONY_OK && p < r->parts; p++)
			clear[3 * p + i] = operands[p * BACKWARD_OPERANDS + D_W_X + i];
	}
	return status;
}

static enum prony_status backward_operands(struct lowering *l, const struct node *node,
					   const struct recurrent *r, int *operands, int *dx,
					   int *clear, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const_dnnl_primitive_desc_t pd = l->nodes[node->differentiates].backward_data;
	dnnl_memory_desc_t time_first = NULL;
	enum prony_status status;

	for (int p = 0; p < r->parts; p++) {
		int *part = operands + p * BACKWARD_OPERANDS;

		memcpy(part, r->operands + p * FORWARD_OPERANDS, FORWARD_OPERANDS * sizeof(int));
		for (int i = FORWARD_OPERANDS; i < BACKWARD_OPERANDS; i++)
			part[i] = OPERAND_NONE;
	}
	status = use_weights(l, forward, pd, r->parts, BACKWARD_OPERANDS, operands, err);
	if (status == PRONY_OK)
		status = last_gradient(l, node, r, operands, err);
	if (status == PRONY_OK)
		status = weight_gradients(l, forward, r, operands, clear, err);
	if (status == PRONY_OK)
		status = in_parts(l, r, dnnl_f32, false, &time_first, err);
	if (status == PRONY_OK)
		status = program_operand(l->program, time_first, REGION_PLANNED, dx, err);
	if (time_first)
		dnn->memory_desc_destroy(time_first);
	if (status == PRONY_OK)
		status = view_parts(l, *dx,
				    dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0),
				    r->parts, BACKWARD_OPERANDS, &operands[D_X], err);
	/* Only the last state has a gradient. */
	if (status == PRONY_OK)
		status = zeros(l, dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0),
			       r->parts, BACKWARD_OPERANDS, &operands[D_STATES], err);
	if (status == PRONY_OK && r->lstm)
		status = zeros(l, dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 2),
			       r->parts, BACKWARD_OPERANDS, &operands[D_LAST_CELL], err);
	/* Those of the initial states nobody wants. */
	for (int i = 0; status == PRONY_OK && i < (r->lstm ? 2 : 1); i++)
		status = own_parts(l,
				   dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 1 + i),
				   r->parts, BACKWARD_OPERANDS, &operands[D_FIRST + i], err);
	return status;
}

enum prony_status lower_recurrent_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	const struct recurrent *r = state->recurrent;
	int *operands = arena_array(&l->program->arena, (size_t)r->parts * BACKWARD_OPERANDS,
				    sizeof *operands);
	int *clear = arena_array(&l->program->arena, (size_t)r->parts * 3, sizeof *clear);
	int dx = OPERAND_NONE;
	enum prony_status status = backward_operands(l, node, r, operands, &dx, clear, err);

	if (status != PRONY_OK)
		return status;
	lower_command(l, node->name, "clear", run_clear, clear, 3 * r->parts);
	status = program_primitive_parts(l->program, node->name, "", state->backward_data,
					 arguments, operands, BACKWARD_OPERANDS, r->parts, err);
	if (status == PRONY_OK && r->parts > 1)
		lower_command(l, node->name, "sum", run_sum, clear, 3 * r->parts);
	if (status == PRONY_OK && node->outputs[0] != VALUE_NONE)
		status = publish_dx(l, node->outputs[0], dx, node->name, err);
	return status;
}
