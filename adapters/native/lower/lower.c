/* The order of commands: the nodes that a stage needs, and the last reader of each value. */
#include "adapters/native/lower/lower.h"

#include <stdio.h>
#include <string.h>

#include "adapters/native/lower/lower_internal.h"

/* Operators whose output may be their input under another name. */
static bool renames(const struct lowering *l, int n)
{
	switch (l->graph->nodes[n].op) {
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
		return l->nodes[n].passes_on;
	}
}

/* Marks the nodes that the stage needs. */
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

		l->nodes[n].needed = operator_row(node->op)->replaces_state;
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
		    (node->op == OP_CONV_GRAD_INPUT || node->op == OP_GEMM_GRAD_INPUT ||
		     node->op == OP_CONV_TRANSPOSE_GRAD_INPUT))
			l->nodes[node->differentiates].wants_dx = true;
	}
}

/* Finds the last reader of each value. */
static void find_last_uses(struct lowering *l)
{
	const struct graph *graph = l->graph;

	for (int n = 0; n < graph->node_count; n++) {
		const struct node *node = &graph->nodes[n];

		if (l->nodes[n].needed && renames(l, n))
			l->values[node->outputs[0]].class =
				l->values[node->inputs[l->nodes[n].passed]].class;
		for (int k = 0; l->nodes[n].needed && k < node->input_count; k++) {
			if (node->inputs[k] != VALUE_NONE)
				l->values[l->values[node->inputs[k]].class].last_use = n;
		}
	}
	for (int i = 0; i < l->attention_count; i++) {
		const struct fused_attention *a = &l->attentions[i];
		int *last = &l->values[l->values[a->found.output].class].last_use;

		if (*last < a->gradient) /* it reads the result again */
			*last = a->gradient;
	}
	l->values[l->values[graph->logits].class].last_use = graph->node_count;
}

typedef enum prony_status lower_function(struct lowering *l, int n, struct error *err);

/* The loss has already computed it. */
static enum prony_status lower_nothing(struct lowering *l, int n, struct error *err)
{
	(void)l;
	(void)n;
	(void)err;
	return PRONY_OK;
}

/* Operators that no backend computes itself. */
static lower_function *const functions[OP_COUNT] = {
	[OP_FLATTEN] = lower_reshape,
	[OP_RESHAPE] = lower_reshape,
	[OP_IDENTITY] = lower_rename,
	[OP_TRANSPOSE] = lower_transpose,
	[OP_SLICE] = lower_take,
	[OP_PAD] = lower_put,
	[OP_FLATTEN_GRAD] = lower_reshape,
	[OP_RESHAPE_GRAD] = lower_reshape,
	[OP_SLICE_GRAD] = lower_put,
	[OP_PAD_GRAD] = lower_take,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = lower_nothing,
	[OP_HALF_SQUARES_GRAD] = lower_rename,
};

static enum prony_status lower_node(struct lowering *l, int n, struct error *err)
{
	enum op op = l->graph->nodes[n].op;
	struct fused_attention *attention = l->nodes[n].attention;

	if (attention)
		return l->program->backend->attention(l, attention, n == attention->gradient, err);
	if (l->nodes[n].passes_on || ((op == OP_DROPOUT || op == OP_DROPOUT_GRAD) && renames(l, n)))
		return lower_rename(l, n, err);
	return functions[op] ? functions[op](l, n, err) : l->program->backend->lower(l, n, err);
}

bool lower_knows(const struct backend *backend, enum op op)
{
	return functions[op] || backend->knows(op);
}

static bool is_fed(const struct value *value)
{
	return value->kind == VALUE_INPUT || value->kind == VALUE_LABEL;
}

int lower_input_index(const struct graph *graph, int value)
{
	int index = 0;

	for (int i = 0; i < value; i++)
		index += is_fed(&graph->values[i]);
	return index;
}

/* Creates the operands for the arrays of the batch that the stage reads. Integers have 32 bits. */
static enum prony_status lower_inputs(struct lowering *l, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < l->graph->value_count; i++) {
		const struct value *value = &l->graph->values[i];
		struct layout rows =
			layout_row_major(value->dtype == DTYPE_I64 ? DTYPE_I32 : value->dtype,
					 value->shape.rank, value->shape.dims);

		if (is_fed(value) && (l->values[i].uses > 0 || i == l->graph->logits))
			status = program_input(l->program, &rows, lower_input_index(l->graph, i),
					       &l->values[i].operand, err);
	}
	return status;
}

static enum prony_status lower_logits(struct lowering *l, struct error *err)
{
	const struct value *value = &l->graph->values[l->graph->logits];
	struct layout rows = layout_row_major(DTYPE_F32, value->shape.rank, value->shape.dims);
	enum prony_status status = lower_as(l, l->values[l->graph->logits].operand, &rows,
					    value->name, &l->logits, err);

	if (status == PRONY_OK)
		program_keep(l->program, l->logits);
	return status;
}

/* Copies the gradients of parameters that are data, such as those of Mul, to their place in the
 * gradient region. */
static enum prony_status lower_data_gradients(struct lowering *l, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < l->parameter_count; i++) {
		const struct value *value = &l->graph->values[l->parameters[i].value];
		int to = l->parameters[i].gradient, from = OPERAND_NONE;

		if (value->gradient >= 0)
			from = l->values[value->gradient].operand;
		if (from == OPERAND_NONE || from == to)
			continue;
		status = lower_as(l, from, lower_layout(l, to), value->name, &from, err);
		if (status == PRONY_OK)
			status = l->program->backend->copy(l, from, to, value->name, "copy", err);
	}
	return status;
}

/* Appends the commands of all nodes, in the order of the graph. */
static enum prony_status lower_nodes(struct lowering *l, struct error *err)
{
	struct program *program = l->program;
	enum prony_status status = PRONY_OK;

	for (int n = 0; status == PRONY_OK && n < l->graph->node_count; n++) {
		int first = program->command_count;

		if (!l->nodes[n].needed || l->nodes[n].absorbed)
			continue;
		status = lower_node(l, n, err);
		for (int i = first; i < program->command_count; i++)
			program->commands[i].node = n;
	}
	return status;
}

enum prony_status lower_graph(struct lowering *l, struct program *program,
			      const struct graph *graph, const struct recipe *recipe,
			      const struct tensor_set *weights, bool explicit_attention,
			      struct error *err)
{
	struct arena *arena = &program->arena;
	enum prony_status status;

	*l = (struct lowering){.program = program,
			       .graph = graph,
			       .recipe = recipe,
			       .weights = weights,
			       .explicit_attention = explicit_attention};
	l->training = recipe->stage != STAGE_FORWARD;
	l->data = recipe->precision == PRECISION_BF16	? DTYPE_BF16
		  : recipe->precision == PRECISION_FP16 ? DTYPE_F16
							: DTYPE_F32;
	l->values = arena_array(arena, (size_t)graph->value_count + 1, sizeof(*l->values));
	l->nodes = arena_array(arena, (size_t)graph->node_count + 1, sizeof(*l->nodes));
	l->parameters = arena_array(arena, (size_t)graph->value_count + 1, sizeof(*l->parameters));
	l->states = arena_array(arena, (size_t)graph->value_count + 1, sizeof(*l->states));
	l->folds = arena_array(arena, (size_t)graph->node_count + 1, sizeof(*l->folds));
	l->logits = l->loss = OPERAND_NONE;
	for (int n = 0; n < graph->node_count; n++)
		l->nodes[n].relu_gradient = -1;
	program->backend->begin(l);
	analyse(l);
	if (program->backend->attention)
		lower_find_attentions(l);
	find_last_uses(l);
	if (l->training) {
		l->loss = program_bytes(program, sizeof(double));
		program_keep(program, l->loss);
	}
	status = lower_inputs(l, err);
	if (status == PRONY_OK)
		status = lower_nodes(l, err);
	if (status == PRONY_OK)
		status = lower_logits(l, err);
	if (status == PRONY_OK && l->training)
		status = lower_data_gradients(l, err);
	if (status == PRONY_OK && recipe->stage == STAGE_TRAIN) {
		program->update = program->command_count;
		program->backend->update(l);
	}
	return status == PRONY_OK ? program->backend->check_types(l, err) : status;
}

void lower_notes(const struct lowering *l, char *out, size_t out_bytes)
{
	size_t used = (size_t)snprintf(out, out_bytes, "%s", l->types), fits = 0;

	for (size_t i = 0; i + 1 < l->notes_length && used + i + 2 < out_bytes; i++) {
		if (l->notes[i] == ';' && l->notes[i + 1] == ' ')
			fits = i + 2;
	}
	memcpy(out + used, l->notes, fits);
	out[used + fits] = '\0';
}

void lower_release(struct lowering *l)
{
	if (!l || !l->nodes)
		return;
	for (int n = 0; n < l->graph->node_count; n++)
		l->program->backend->release_node(l, &l->nodes[n]);
	*l = (struct lowering){0};
}
