#include <string.h>

#include "adapters/native/lower/lower_internal.h"

/*
 * LSTM and RNN as the library has them: time x batch x features, weights 1 x 1 x inputs x gates x
 * hidden, gates in the order i, f, c, o. Weights come in and go out in ONNX's order (native.c).
 */

enum tensor_index {
	LAYER,	/* x, or the states of all steps */
	INNER,	/* the last state */
	CELL,	/* the last cell state of an LSTM */
	WEIGHT, /* of x */
	REPEAT, /* of h */
	BIAS,
	HIDDEN_LAYER, /* states of all steps */
	TENSORS
};

/* In node_state.parts: the first are outputs, from FIRST on are the initial states. */
enum { FIRST = 3, PARTS = 5 };

struct shapes {
	bool lstm;
	int64_t batch, steps, features, hidden, gates;
	/* Owned: what the layer reads and writes, and gradients, which are always fp32. */
	dnnl_memory_desc_t any[TENSORS], gradient[TENSORS];
};

static void shapes_release(const struct lowering *l, struct shapes *s)
{
	for (int i = 0; i < TENSORS; i++) {
		if (s->any[i])
			l->dnn->memory_desc_destroy(s->any[i]);
		if (s->gradient[i])
			l->dnn->memory_desc_destroy(s->gradient[i]);
		s->any[i] = s->gradient[i] = NULL;
	}
}

/* With what is multiplied in `type`. Cell states and biases are fp32. */
static enum prony_status shapes_make(const struct lowering *l, const struct node *node,
				     dnnl_data_type_t type, struct shapes *s, struct error *err)
{
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	const struct shape *r = &l->graph->values[node->inputs[2]].shape;
	enum prony_status status = PRONY_OK;

	*s = (struct shapes){.lstm = node->op == OP_LSTM,
			     .batch = x->dims[0],
			     .steps = x->dims[1],
			     .features = x->dims[2],
			     .hidden = r->dims[1]};
	s->gates = s->lstm ? 4 : 1;

	const struct {
		int rank;
		int64_t dims[5];
	} wanted[TENSORS] = {
		[LAYER] = {3, {s->steps, s->batch, s->features}},
		[INNER] = {4, {1, 1, s->batch, s->hidden}},
		[CELL] = {4, {1, 1, s->batch, s->hidden}},
		[WEIGHT] = {5, {1, 1, s->features, s->gates, s->hidden}},
		[REPEAT] = {5, {1, 1, s->hidden, s->gates, s->hidden}},
		[BIAS] = {4, {1, 1, s->gates, s->hidden}},
		[HIDDEN_LAYER] = {3, {s->steps, s->batch, s->hidden}},
	};

	for (int i = 0; status == PRONY_OK && i < TENSORS; i++) {
		status = lower_any(l, i == CELL || i == BIAS ? dnnl_f32 : type, wanted[i].rank,
				   wanted[i].dims, &s->any[i], err);
		if (status == PRONY_OK)
			status = lower_any(l, dnnl_f32, wanted[i].rank, wanted[i].dims,
					   &s->gradient[i], err);
	}
	if (status != PRONY_OK)
		shapes_release(l, s);
	return status;
}

static dnnl_status_t create_forward(const struct lowering *l, const struct shapes *s,
				    const_dnnl_primitive_attr_t attributes,
				    dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = l->dnn;
	dnnl_prop_kind_t kind = l->training ? dnnl_forward_training : dnnl_forward_inference;

	if (!s->lstm)
		return dnn->vanilla_rnn_forward_primitive_desc_create(
			out, dnn->engine, kind, dnnl_eltwise_relu, dnnl_unidirectional_left2right,
			s->any[LAYER], s->any[INNER], s->any[WEIGHT], s->any[REPEAT], s->any[BIAS],
			s->any[HIDDEN_LAYER], s->any[INNER], 0, 0, 0, attributes);
	return dnn->lstm_forward_primitive_desc_create(
		out, dnn->engine, kind, dnnl_unidirectional_left2right, s->any[LAYER],
		s->any[INNER], s->any[CELL], s->any[WEIGHT], s->any[REPEAT], NULL, NULL,
		s->any[BIAS], s->any[HIDDEN_LAYER], s->any[INNER], s->any[CELL], 0, attributes);
}

static dnnl_status_t create_backward(const struct lowering *l, const struct shapes *s,
				     const_dnnl_primitive_desc_t forward,
				     const_dnnl_primitive_attr_t attributes,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = l->dnn;

	if (!s->lstm)
		return dnn->vanilla_rnn_backward_primitive_desc_create(
			out, dnn->engine, dnnl_backward, dnnl_eltwise_relu,
			dnnl_unidirectional_left2right, s->any[LAYER], s->any[INNER],
			s->any[WEIGHT], s->any[REPEAT], s->any[BIAS], s->any[HIDDEN_LAYER],
			s->any[INNER], s->gradient[LAYER], s->gradient[INNER], s->gradient[WEIGHT],
			s->gradient[REPEAT], s->gradient[BIAS], s->gradient[HIDDEN_LAYER],
			s->gradient[INNER], 0, 0, 0, forward, attributes);
	return dnn->lstm_backward_primitive_desc_create(
		out, dnn->engine, dnnl_backward, dnnl_unidirectional_left2right, s->any[LAYER],
		s->any[INNER], s->any[CELL], s->any[WEIGHT], s->any[REPEAT], NULL, NULL,
		s->any[BIAS], s->any[HIDDEN_LAYER], s->any[INNER], s->any[CELL], s->gradient[LAYER],
		s->gradient[INNER], s->gradient[CELL], s->gradient[WEIGHT], s->gradient[REPEAT],
		NULL, NULL, s->gradient[BIAS], s->gradient[HIDDEN_LAYER], s->gradient[INNER],
		s->gradient[CELL], 0, forward, attributes);
}

static enum prony_status describe(struct lowering *l, int n, const struct shapes *s,
				  struct error *err)
{
	struct node_state *state = &l->nodes[n];
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_status_t created;
	enum prony_status status = lower_attributes(l, false, &attributes, err);

	if (status != PRONY_OK)
		return status;
	created = create_forward(l, s, attributes, &state->forward);
	if (created == dnnl_success && l->training)
		created = create_backward(l, s, state->forward, attributes, &state->backward_data);
	l->dnn->primitive_attr_destroy(attributes);
	return onednn_check(created, "recurrent layer", l->graph->nodes[n].name, err);
}

/* Declares weights i (1: of x, 2: of h, 3: bias) in the layout of their gradient. */
static enum prony_status declare(struct lowering *l, int n, const struct shapes *s, int i,
				 struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node_state *state = &l->nodes[n];
	int64_t inputs = i == 1 ? s->features : s->hidden;
	dnnl_dims_t dims = {1, 1, inputs, s->gates, s->hidden};
	dnnl_dims_t strides = {0, 0, 1, s->hidden * inputs, inputs};
	const_dnnl_memory_desc_t master =
		l->training ? dnn->primitive_desc_query_md(state->backward_data,
							   dnnl_query_diff_weights_md, i - 1)
			    : dnn->primitive_desc_query_md(state->forward, dnnl_query_weights_md,
							   i - 1);
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	strides[0] = strides[1] = s->gates * s->hidden * inputs;
	if (i == 3)
		status = lower_plain(l, dnnl_f32, 4, (const int64_t[]){1, 1, s->gates, s->hidden},
				     &plain, err);
	else
		status = onednn_check(
			dnn->memory_desc_create_with_strides(&plain, 5, dims, dnnl_f32, strides),
			"memory descriptor", "recurrent weights", err);
	if (status != PRONY_OK)
		return status;
	status = lower_parameter(l, l->graph->nodes[n].inputs[i], master, plain, err);
	l->parameters[l->parameter_count - 1].gates = (int)s->gates;
	/* What the library packs for itself it does not unpack. */
	l->parameters[l->parameter_count - 1].keeps_original |= !l->training;
	return status;
}

/* Operand of weights i for a primitive that wants them as `desc`. */
static enum prony_status weights_as(struct lowering *l, const struct node *node, int i,
				    const_dnnl_memory_desc_t desc, int *out, struct error *err)
{
	return lower_weights(l, node->inputs[i], desc, node->name, out, err);
}

/* The batch with time in front, as the primitive wants it. */
static enum prony_status source(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	dnnl_memory_desc_t swapped = NULL;
	int x, view;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status != PRONY_OK)
		return status;
	status = onednn_check(dnn->memory_desc_permute_axes(&swapped, l->program->operands[x].desc,
							    (const int[]){1, 0, 2}),
			      "transposition", node->name, err);
	if (status == PRONY_OK)
		status = program_alias(l->program, x, swapped, 0, &view, err);
	if (status == PRONY_OK)
		status = lower_as(
			l, view, dnn->primitive_desc_query_md(state->forward, dnnl_query_src_md, 0),
			node->name, &state->src, err);
	if (swapped)
		dnn->memory_desc_destroy(swapped);
	return status;
}

/* Appends the forward primitive; its outputs go to state->parts. */
static enum prony_status append_forward(struct lowering *l, int n, const struct shapes *s,
					struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	const_dnnl_memory_desc_t workspace =
		dnn->primitive_desc_query_md(state->forward, dnnl_query_workspace_md, 0);
	int weights[3];
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 3; i++)
		status = weights_as(
			l, node, 1 + i,
			dnn->primitive_desc_query_md(state->forward, dnnl_query_weights_md, i),
			&weights[i], err);
	for (int i = 0; i < PARTS; i++)
		state->parts[i] = OPERAND_NONE;
	state->side = OPERAND_NONE;
	/* Zeros, which nobody ever writes. The library can do without, but then (3.2) its gradient
	 * of the recurrent weights is wrong. */
	for (int i = 0; status == PRONY_OK && i < (s->lstm ? 2 : 1); i++)
		status = program_operand(
			l->program,
			dnn->primitive_desc_query_md(state->forward, dnnl_query_src_md, 1 + i),
			REGION_LASTING, &state->parts[FIRST + i], err);
	for (int i = 0; status == PRONY_OK && i < (s->lstm ? 3 : 2); i++)
		status = program_operand(
			l->program,
			dnn->primitive_desc_query_md(state->forward, dnnl_query_dst_md, i),
			REGION_PLANNED, &state->parts[i], err);
	if (status == PRONY_OK && l->training && workspace &&
	    dnn->memory_desc_get_size(workspace) > 0)
		status = program_operand(l->program, workspace, REGION_PLANNED, &state->side, err);
	if (status != PRONY_OK)
		return status;
	return program_primitive(
		l->program, node->name, "forward", state->forward,
		(const int[]){DNNL_ARG_SRC_LAYER, DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER,
			      DNNL_ARG_BIAS, DNNL_ARG_DST_LAYER, DNNL_ARG_DST_ITER,
			      DNNL_ARG_DST_ITER_C, DNNL_ARG_WORKSPACE, DNNL_ARG_SRC_ITER,
			      DNNL_ARG_SRC_ITER_C},
		(const int[]){state->src, weights[0], weights[1], weights[2], state->parts[0],
			      state->parts[1], state->parts[2], state->side, state->parts[FIRST],
			      state->parts[FIRST + 1]},
		10, err);
}

enum prony_status lower_recurrent(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	dnnl_memory_desc_t plain = NULL;
	struct shapes s;
	enum prony_status status = shapes_make(l, node, l->data, &s, err);

	if (status != PRONY_OK)
		return status;
	status = describe(l, n, &s, l->data == dnnl_f32 ? err : NULL);
	if (status == PRONY_UNSUPPORTED && l->data != dnnl_f32) {
		shapes_release(l, &s);
		if (l->nodes[n].forward) /* then it was the gradient that does not exist */
			l->dnn->primitive_desc_destroy(l->nodes[n].forward);
		l->nodes[n].forward = NULL;
		status = shapes_make(l, node, dnnl_f32, &s, err);
		if (status == PRONY_OK)
			status = describe(l, n, &s, err);
	}
	for (int i = 1; status == PRONY_OK && i <= 3; i++)
		status = declare(l, n, &s, i, err);
	if (status == PRONY_OK)
		status = source(l, n, err);
	if (status == PRONY_OK)
		status = append_forward(l, n, &s, err);
	if (status == PRONY_OK)
		status = lower_plain(l, lower_type(l, l->nodes[n].parts[1]), 2, y->dims, &plain,
				     err);
	if (status == PRONY_OK)
		status =
			lower_as(l, l->nodes[n].parts[1], plain, node->name, &l->nodes[n].dst, err);
	if (plain)
		l->dnn->memory_desc_destroy(plain);
	l->values[node->outputs[0]].operand = l->nodes[n].dst;
	l->macs += s.batch * s.steps * s.gates * s.hidden * (s.features + s.hidden);
	shapes_release(l, &s);
	return status;
}

static void run_clear(struct program *program, const struct command *command)
{
	for (int i = 0; i < command->operand_count; i++)
		memset(lower_data(program, command, i), 0,
		       program->operands[command->operands[i]].bytes);
}

/* The gradient that a primitive computes with time in front, as the value that the graph has. */
static enum prony_status publish_dx(struct lowering *l, int value, int dx, const char *name,
				    struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct shape *shape = &l->graph->values[value].shape;
	dnnl_memory_desc_t swapped = NULL, plain = NULL;
	int view;
	enum prony_status status =
		onednn_check(dnn->memory_desc_permute_axes(&swapped, l->program->operands[dx].desc,
							   (const int[]){1, 0, 2}),
			     "transposition", name, err);

	if (status == PRONY_OK)
		status = program_alias(l->program, dx, swapped, 0, &view, err);
	if (status == PRONY_OK)
		status = lower_plain(l, lower_type(l, dx), shape->rank, shape->dims, &plain, err);
	if (status == PRONY_OK)
		status = lower_as(l, view, plain, name, &l->values[value].operand, err);
	if (plain)
		dnn->memory_desc_destroy(plain);
	if (swapped)
		dnn->memory_desc_destroy(swapped);
	return status;
}

/* Operands of the backward primitive that are not the forward's. */
struct backward {
	int weights[3], dweights[3];
	int dx, dlayer, dlast, dcell;
	int dfirst[2]; /* of the initial states, which nobody wants */
};

static enum prony_status backward_operands(struct lowering *l, const struct node *node,
					   struct backward *b, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const_dnnl_primitive_desc_t pd = l->nodes[node->differentiates].backward_data;
	bool lstm = forward->op == OP_LSTM;
	enum prony_status status =
		lower_as(l, l->values[node->inputs[0]].operand,
			 dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 1), node->name,
			 &b->dlast, err);

	for (int i = 0; status == PRONY_OK && i < 3; i++) {
		b->dweights[i] = lower_find_parameter(l, forward->inputs[1 + i])->gradient;
		status = weights_as(l, forward, 1 + i,
				    dnn->primitive_desc_query_md(pd, dnnl_query_weights_md, i),
				    &b->weights[i], err);
	}
	if (status == PRONY_OK)
		status = program_operand(
			l->program, dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0),
			REGION_PLANNED, &b->dx, err);
	if (status == PRONY_OK)
		status = program_operand(
			l->program, dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0),
			REGION_PLANNED, &b->dlayer, err);
	b->dcell = b->dfirst[1] = OPERAND_NONE;
	for (int i = 0; status == PRONY_OK && i < (lstm ? 2 : 1); i++)
		status = program_operand(
			l->program, dnn->primitive_desc_query_md(pd, dnnl_query_diff_src_md, 1 + i),
			REGION_PLANNED, &b->dfirst[i], err);
	if (status == PRONY_OK && lstm)
		status = program_operand(
			l->program, dnn->primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 2),
			REGION_PLANNED, &b->dcell, err);
	if (status != PRONY_OK)
		return status;
	/* Only the last state has a gradient, and the primitive adds to what the weights' have. */
	lower_command(
		l, node->name, "clear", run_clear,
		(const int[]){b->dlayer, b->dweights[0], b->dweights[1], b->dweights[2], b->dcell},
		lstm ? 5 : 4);
	return PRONY_OK;
}

enum prony_status lower_recurrent_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	struct backward b;
	enum prony_status status = backward_operands(l, node, &b, err);

	if (status != PRONY_OK)
		return status;
	status = program_primitive(
		l->program, node->name, "", state->backward_data,
		(const int[]){DNNL_ARG_SRC_LAYER, DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER,
			      DNNL_ARG_BIAS, DNNL_ARG_DST_LAYER, DNNL_ARG_DST_ITER,
			      DNNL_ARG_DST_ITER_C, DNNL_ARG_WORKSPACE, DNNL_ARG_DIFF_DST_LAYER,
			      DNNL_ARG_DIFF_DST_ITER, DNNL_ARG_DIFF_DST_ITER_C,
			      DNNL_ARG_DIFF_SRC_LAYER, DNNL_ARG_DIFF_WEIGHTS_LAYER,
			      DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS, DNNL_ARG_SRC_ITER,
			      DNNL_ARG_SRC_ITER_C, DNNL_ARG_DIFF_SRC_ITER,
			      DNNL_ARG_DIFF_SRC_ITER_C},
		(const int[]){state->src, b.weights[0], b.weights[1], b.weights[2], state->parts[0],
			      state->parts[1], state->parts[2], state->side, b.dlayer, b.dlast,
			      b.dcell, b.dx, b.dweights[0], b.dweights[1], b.dweights[2],
			      state->parts[FIRST], state->parts[FIRST + 1], b.dfirst[0],
			      b.dfirst[1]},
		19, err);
	if (status == PRONY_OK && node->outputs[0] != VALUE_NONE)
		status = publish_dx(l, node->outputs[0], b.dx, node->name, err);
	return status;
}
