#include "adapters/native/lower/lower.h"

#include <stdio.h>

#include "adapters/native/lower/lower_internal.h"

/* Operators whose output may be their input under another name. */
static bool renames(const struct lowering *l, enum op op)
{
	switch (op) {
	case OP_FLATTEN:
	case OP_FLATTEN_GRAD:
	case OP_RESHAPE:
	case OP_RESHAPE_GRAD:
	case OP_TRANSPOSE:
	case OP_IDENTITY:
	case OP_HALF_SQUARES_GRAD:
		return true;
	case OP_DROPOUT:
	case OP_DROPOUT_GRAD:
		return !l->training || !l->recipe->dropout;
	default:
		return false;
	}
}

/* Marks the nodes that the stage needs, and who reads what last. */
static void analyse(struct lowering *l)
{
	const struct graph *graph = l->graph;
	bool *wanted =
		arena_array(&l->program->arena, (size_t)graph->value_count + 1, sizeof(bool));

	wanted[graph->logits] = true;
	for (int i = 0; l->training && i < graph->value_count; i++) {
		if (i == graph->loss)
			wanted[i] = true;
		if (graph->values[i].kind == VALUE_PARAMETER && graph->values[i].gradient >= 0)
			wanted[graph->values[i].gradient] = true;
	}
	for (int i = 0; i < graph->value_count; i++)
		l->values[i] = (struct value_state){OPERAND_NONE, i, -1, 0, -1};
	for (int n = graph->node_count - 1; n >= 0; n--) {
		const struct node *node = &graph->nodes[n];

		for (int k = 0; k < node->output_count; k++) {
			if (node->outputs[k] != VALUE_NONE && wanted[node->outputs[k]])
				l->nodes[n].needed = true;
		}
		for (int k = 0; l->nodes[n].needed && k < node->input_count; k++) {
			if (node->inputs[k] != VALUE_NONE) {
				wanted[node->inputs[k]] = true;
				l->values[node->inputs[k]].uses++;
				if (l->values[node->inputs[k]].reader < 0)
					l->values[node->inputs[k]].reader = n;
			}
		}
		if (l->nodes[n].needed && node->differentiates >= 0 &&
		    (node->op == OP_CONV_GRAD_INPUT || node->op == OP_GEMM_GRAD_INPUT))
			l->nodes[node->differentiates].wants_dx = true;
	}
	for (int n = 0; n < graph->node_count; n++) {
		const struct node *node = &graph->nodes[n];

		if (l->nodes[n].needed && renames(l, node->op))
			l->values[node->outputs[0]].class = l->values[node->inputs[0]].class;
		for (int k = 0; l->nodes[n].needed && k < node->input_count; k++) {
			if (node->inputs[k] != VALUE_NONE)
				l->values[l->values[node->inputs[k]].class].last_use = n;
		}
	}
	l->values[l->values[graph->logits].class].last_use = graph->node_count;
}

/*
 * One thread for a network that has little work in all: handing it over, and the data between the
 * caches of two cores, costs more than it saves. Measured where two cores do not share a cache:
 * LeNet at batch 1 trains in 290 us on one thread, in 700 us on two. It is all or nothing, because
 * a small layer between two parallel ones finds its data spread over the caches: LeNet at batch 64
 * trains in 9.0 ms with the small layers on one thread.
 */
static int choose_threads(const struct lowering *l)
{
	const double worthwhile_us = 200, macs_per_us = 4e4;
	double forward_us = (double)graph_macs(l->graph) / macs_per_us;

	/* What TBB took it keeps. */
	return forward_us < worthwhile_us && !l->dnn->on_tbb ? 1 : l->dnn->threads;
}

/* Appends what computes a node. */
typedef enum prony_status lower_function(struct lowering *l, int n, struct error *err);

/* The loss has computed it already. */
static enum prony_status lower_nothing(struct lowering *l, int n, struct error *err)
{
	(void)l;
	(void)n;
	(void)err;
	return PRONY_OK;
}

static lower_function *const functions[OP_COUNT] = {
	[OP_CONV] = lower_conv,
	[OP_MAX_POOL] = lower_pool,
	[OP_AVERAGE_POOL] = lower_pool,
	[OP_GLOBAL_AVERAGE_POOL] = lower_pool,
	[OP_GEMM] = lower_gemm,
	[OP_RELU] = lower_relu,
	[OP_SOFTMAX] = lower_softmax,
	[OP_BATCH_NORM] = lower_batch_norm,
	[OP_LRN] = lower_lrn,
	[OP_FLATTEN] = lower_reshape,
	[OP_RESHAPE] = lower_reshape,
	[OP_IDENTITY] = lower_rename,
	[OP_TRANSPOSE] = lower_transpose,
	[OP_CONCAT] = lower_concat,
	[OP_SLICE] = lower_take,
	[OP_PAD] = lower_put,
	[OP_REDUCE_MEAN] = lower_mean,
	[OP_DROPOUT] = lower_dropout,
	[OP_ADD] = lower_binary,
	[OP_SUB] = lower_binary,
	[OP_MUL] = lower_binary,
	[OP_DIV] = lower_binary,
	[OP_LSTM] = lower_recurrent,
	[OP_RNN] = lower_recurrent,
	[OP_SOFTMAX_CROSS_ENTROPY] = lower_cross_entropy,
	[OP_HALF_SQUARES] = lower_half_squares,
	[OP_CONV_GRAD_INPUT] = lower_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = lower_conv_grad_weight,
	[OP_MAX_POOL_GRAD] = lower_pool_grad,
	[OP_AVERAGE_POOL_GRAD] = lower_pool_grad,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = lower_pool_grad,
	[OP_GEMM_GRAD_INPUT] = lower_weighted_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = lower_weighted_grad_weight,
	[OP_RELU_GRAD] = lower_relu_grad,
	[OP_ELEMENTWISE_GRAD] = lower_eltwise_grad,
	[OP_SOFTMAX_GRAD] = lower_softmax_grad,
	[OP_BATCH_NORM_GRAD] = lower_batch_norm_grad,
	[OP_LRN_GRAD] = lower_lrn_grad,
	[OP_FLATTEN_GRAD] = lower_reshape,
	[OP_RESHAPE_GRAD] = lower_reshape,
	[OP_SLICE_GRAD] = lower_put,
	[OP_PAD_GRAD] = lower_take,
	[OP_REDUCE_MEAN_GRAD] = lower_mean_grad,
	[OP_DROPOUT_GRAD] = lower_dropout_grad,
	[OP_BROADCAST_GRAD] = lower_broadcast_grad,
	[OP_LSTM_GRAD] = lower_recurrent_grad,
	[OP_RNN_GRAD] = lower_recurrent_grad,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = lower_nothing,
	[OP_HALF_SQUARES_GRAD] = lower_rename,
};

static lower_function *function_of(enum op op)
{
	if (functions[op] == NULL && lower_has_function(op))
		return lower_eltwise;
	return functions[op];
}

static enum prony_status lower_node(struct lowering *l, int n, struct error *err)
{
	enum op op = l->graph->nodes[n].op;

	if ((op == OP_DROPOUT || op == OP_DROPOUT_GRAD) && renames(l, op))
		return lower_rename(l, n, err);
	if (!function_of(op))
		return error_set(err, PRONY_INTERNAL, "operator %s passed supports()",
				 operator_name(op));
	return function_of(op)(l, n, err);
}

bool lower_knows(enum op op)
{
	return function_of(op) != NULL;
}

static enum prony_status lower_input(struct lowering *l, struct error *err)
{
	const struct shape *shape = &l->graph->values[l->graph->input].shape;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status = lower_plain(l, dnnl_f32, shape->rank, shape->dims, &plain, err);

	if (status != PRONY_OK)
		return status;
	status = program_operand(l->program, plain, REGION_INPUT,
				 &l->values[l->graph->input].operand, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

static enum prony_status lower_logits(struct lowering *l, struct error *err)
{
	const struct value *value = &l->graph->values[l->graph->logits];
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status =
		lower_plain(l, dnnl_f32, value->shape.rank, value->shape.dims, &plain, err);

	if (status != PRONY_OK)
		return status;
	status = lower_as(l, l->values[l->graph->logits].operand, plain, value->name, &l->logits,
			  err);
	l->dnn->memory_desc_destroy(plain);
	if (status == PRONY_OK)
		program_keep(l->program, l->logits);
	return status;
}

/* Gradients of parameters that are data, like those of Mul, are computed somewhere: they belong
 * next to the parameter. */
static enum prony_status lower_data_gradients(struct lowering *l, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < l->parameter_count; i++) {
		const struct value *value = &l->graph->values[l->parameters[i].value];
		int to = l->parameters[i].gradient, from = OPERAND_NONE;
		dnnl_primitive_attr_t attributes = NULL;
		dnnl_primitive_desc_t pd = NULL;

		if (value->gradient >= 0)
			from = l->values[value->gradient].operand;
		if (from == OPERAND_NONE || from == to)
			continue;
		status = lower_as(l, from, l->program->operands[to].desc, value->name, &from, err);
		if (status == PRONY_OK)
			status = lower_attributes(l, false, &attributes, err);
		if (status != PRONY_OK)
			return status;
		status = onednn_check(dnn->reorder_primitive_desc_create(
					      &pd, l->program->operands[from].desc, dnn->engine,
					      l->program->operands[to].desc, dnn->engine,
					      attributes),
				      "copy", value->name, err);
		dnn->primitive_attr_destroy(attributes);
		if (status != PRONY_OK)
			return status;
		status = program_primitive(l->program, value->name, "copy", pd,
					   (const int[]){DNNL_ARG_FROM, DNNL_ARG_TO},
					   (const int[]){from, to}, 2, err);
		dnn->primitive_desc_destroy(pd);
	}
	return status;
}

enum prony_status lower_graph(struct lowering *l, const struct onednn *dnn, struct program *program,
			      const struct graph *graph, const struct recipe *recipe,
			      struct error *err)
{
	struct arena *arena = &program->arena;
	enum prony_status status;

	*l = (struct lowering){.dnn = dnn, .program = program, .graph = graph, .recipe = recipe};
	l->training = recipe->stage != STAGE_FORWARD;
	l->data = recipe->precision == PRECISION_BF16 ? dnnl_bf16 : dnnl_f32;
	l->values = arena_array(arena, (size_t)graph->value_count + 1, sizeof(*l->values));
	l->nodes = arena_array(arena, (size_t)graph->node_count + 1, sizeof(*l->nodes));
	l->parameters = arena_array(arena, (size_t)graph->value_count + 1, sizeof(*l->parameters));
	l->states = arena_array(arena, (size_t)graph->value_count + 1, sizeof(*l->states));
	l->folds = arena_array(arena, (size_t)graph->node_count + 1, sizeof(*l->folds));
	l->logits = OPERAND_NONE;
	for (int n = 0; n < graph->node_count; n++)
		l->nodes[n].relu_gradient = -1;
	program_use_threads(program, choose_threads(l));
	if (program->threads < dnn->threads)
		l->notes_length = (size_t)snprintf(l->notes, sizeof(l->notes),
						   "one thread: too little work for more; ");
	analyse(l);
	status = lower_input(l, err);
	for (int n = 0; status == PRONY_OK && n < graph->node_count; n++) {
		int first = program->command_count;

		if (!l->nodes[n].needed || l->nodes[n].absorbed)
			continue;
		status = lower_node(l, n, err);
		for (int i = first; i < program->command_count; i++)
			program->commands[i].node = n;
	}
	if (status == PRONY_OK)
		status = lower_logits(l, err);
	if (status == PRONY_OK && l->training)
		status = lower_data_gradients(l, err);
	if (status == PRONY_OK && recipe->stage == STAGE_TRAIN)
		lower_update(l);
	return status;
}

void lower_release(struct lowering *l)
{
	if (!l || !l->dnn || !l->nodes)
		return;
	for (int n = 0; n < l->graph->node_count; n++) {
		dnnl_primitive_desc_t owned[] = {l->nodes[n].forward, l->nodes[n].backward_data,
						 l->nodes[n].backward_weights};

		for (int k = 0; k < 3; k++) {
			if (owned[k])
				l->dnn->primitive_desc_destroy(owned[k]);
		}
	}
	for (int i = 0; i < l->parameter_count; i++) {
		if (l->parameters[i].plain)
			l->dnn->memory_desc_destroy(l->parameters[i].plain);
	}
	for (int i = 0; i < l->state_count; i++) {
		if (l->states[i].plain)
			l->dnn->memory_desc_destroy(l->states[i].plain);
	}
	*l = (struct lowering){0};
}
