/* Builds the backward pass: helpers for the operator rows, and the walk over the forward nodes. */
#include "graph/backward_internal.h"

#include <assert.h>
#include <stdio.h>

#include "graph/edit_internal.h"
#include "graph/node_internal.h"

bool backward_wants(const struct graph *graph, const struct node *node, int i)
{
	return node_has_input(node, i) && graph->values[node->inputs[i]].gradient != VALUE_NONE;
}

int backward_gradient(const struct graph *graph, const struct node *node)
{
	int gradient = graph->values[node->outputs[0]].gradient;

	assert(gradient >= 0);
	return gradient;
}

/* Returns "BASE", or "BASE.2", "BASE.3"... if the name is taken: by several users of a value, or by
 * a value of the network with such a name. */
static const char *free_name(struct graph *graph, const char *base,
			     int (*find)(const struct graph *graph, const char *name))
{
	const char *name = base;

	for (int i = 2; find(graph, name) >= 0; i++)
		name = arena_printf(&graph->arena, "%s.%d", base, i);
	return name;
}

static int new_gradient(struct graph *graph, int target)
{
	const char *base = arena_printf(&graph->arena, "%s.grad", graph->values[target].name);
	struct shape shape = graph->values[target].shape;

	return graph_add_value(graph, free_name(graph, base, graph_find_value), VALUE_GRADIENT,
			       DTYPE_F32, &shape);
}

static enum prony_status append(struct graph *graph, struct node *node, struct error *err)
{
	enum prony_status status = graph_check_row(node, err);

	if (status == PRONY_OK)
		status = operator_row(node->op)->infer(graph, node, err);
	if (status == PRONY_OK)
		graph_add_node(graph, node);
	return status;
}

enum prony_status backward_node(struct graph *graph, const struct node *forward, enum op op,
				const int *inputs, int input_count, int first_target,
				int target_count, struct error *err)
{
	struct node node = {
		.op = op,
		.input_count = input_count,
		.output_count = target_count,
		.attributes = forward->attributes,
		.differentiates = graph->values[forward->outputs[0]].producer,
	};
	const char *base = arena_printf(&graph->arena, "%s.%s", forward->name,
					first_target == 0 ? "grad_input" : "grad_weight");
	enum prony_status status;

	node.name = free_name(graph, base, graph_find_node);
	for (int i = 0; i < input_count; i++)
		node.inputs[i] = inputs[i];
	for (int i = 0; i < target_count; i++) {
		bool left_out = operator_row(op)->leaves_out &&
				!backward_wants(graph, forward, first_target + i);

		node.outputs[i] = left_out ? VALUE_NONE
					   : new_gradient(graph, forward->inputs[first_target + i]);
	}
	status = append(graph, &node, err);
	for (int i = 0; status == PRONY_OK && i < target_count; i++) {
		if (node.outputs[i] != VALUE_NONE &&
		    backward_wants(graph, forward, first_target + i))
			status = backward_contribute(graph, forward->inputs[first_target + i],
						     node.outputs[i], err);
	}
	return status;
}

enum prony_status backward_apply(struct graph *graph, const struct node *forward, int i, enum op op,
				 const int *inputs, int input_count,
				 const struct attributes *attributes, int *out, struct error *err)
{
	struct node node = {
		.op = op, .input_count = input_count, .output_count = 1, .differentiates = -1};
	enum prony_status status;

	node.name = free_name(graph, arena_printf(&graph->arena, "%s.grad_input", forward->name),
			      graph_find_node);
	for (int k = 0; k < input_count; k++)
		node.inputs[k] = inputs[k];
	node.outputs[0] = new_gradient(graph, forward->inputs[i]);
	if (attributes != NULL)
		node.attributes = *attributes;
	else
		operator_default_attributes(op, &node.attributes);
	status = append(graph, &node, err);
	if (status == PRONY_OK)
		*out = node.outputs[0];
	return status;
}

enum prony_status backward_unary(struct graph *graph, const struct node *node, enum op op,
				 int other, struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), other};

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, op, inputs, other == VALUE_NONE ? 1 : 2, 0, 1, err);
}

enum prony_status backward_contribute(struct graph *graph, int target, int gradient,
				      struct error *err)
{
	int before = graph->values[target].gradient;
	struct node sum = {.op = OP_ADD, .input_count = 2, .output_count = 1, .differentiates = -1};
	enum prony_status status;

	assert(before != VALUE_NONE);
	if (before == GRADIENT_WANTED) {
		graph->values[target].gradient = gradient;
		return PRONY_OK;
	}
	sum.name =
		free_name(graph, arena_printf(&graph->arena, "%s.sum", graph->values[target].name),
			  graph_find_node);
	sum.inputs[0] = before;
	sum.inputs[1] = gradient;
	sum.outputs[0] = new_gradient(graph, target);
	operator_default_attributes(OP_ADD, &sum.attributes);
	status = append(graph, &sum, err);
	if (status == PRONY_OK)
		graph->values[target].gradient = sum.outputs[0];
	return status;
}

/* Marks the parameters, and all values computed from them, as wanting a gradient. */
static void mark_wanted(struct graph *graph)
{
	for (int i = 0; i < graph->value_count; i++)
		graph->values[i].gradient =
			graph->values[i].kind == VALUE_PARAMETER ? GRADIENT_WANTED : VALUE_NONE;
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		/* Only output 0 is differentiable; the others are Dropout's mask and statistics. */
		for (int k = 0; k < node->input_count; k++) {
			if (backward_wants(graph, node, k))
				graph->values[node->outputs[0]].gradient = GRADIENT_WANTED;
		}
	}
}

/* Appends the only gradient node: it reads dy and the values that the row lists. */
static enum prony_status append_one(struct graph *graph, const struct node *node, struct error *err)
{
	const struct operator_row *row = operator_row(node->op);
	int inputs[NODE_MAX_INPUTS] = {backward_gradient(graph, node)}, count = 1;

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	for (const char *c = row->gradient_reads; c && *c; c++)
		inputs[count++] = *c == 'x' ? node->inputs[0] : node->outputs[0];
	return backward_node(graph, node, row->gradient, inputs, count, 0, 1, err);
}

/* Calls the row's function, or appends its only gradient node. */
static enum prony_status append_gradients(struct graph *graph, const struct node *node,
					  struct error *err)
{
	const struct operator_row *row = operator_row(node->op);

	if (row->backward)
		return row->backward(graph, node, err);
	if (operator_row(row->gradient)->is_gradient)
		return append_one(graph, node, err);
	return node_error(node, err, "this operator has no gradient");
}

static enum prony_status append_all(struct graph *graph, struct error *err)
{
	for (int i = graph->forward_count - 1; i >= 0; i--) {
		/* A copy, because appending moves the nodes. */
		struct node node = graph->nodes[i];
		enum prony_status status;

		/* Nodes that the loss does not depend on have no gradient. */
		if (!operator_row(node.op)->is_loss && graph->values[node.outputs[0]].gradient < 0)
			continue;
		status = append_gradients(graph, &node, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

/* Removes the remaining marks; a parameter without a gradient is an error. */
static enum prony_status sweep_marks(struct graph *graph, struct error *err)
{
	for (int i = 0; i < graph->value_count; i++) {
		if (graph->values[i].gradient != GRADIENT_WANTED)
			continue;
		graph->values[i].gradient = VALUE_NONE;
		if (graph->values[i].kind == VALUE_PARAMETER)
			error_set(err, PRONY_BAD_INPUT,
				  "the loss does not depend on parameter '%s'",
				  graph->values[i].name);
	}
	return err->code;
}

enum prony_status graph_add_backward(struct graph *graph, struct error *err)
{
	struct error local = ERROR_INIT;
	int value_count = graph->value_count, node_count = graph->node_count;

	if (graph->loss == VALUE_NONE)
		return error_set(err, PRONY_BAD_INPUT,
				 "network '%s' has no loss, so it cannot be trained", graph->name);
	if (graph->node_count > graph->forward_count)
		return error_set(err, PRONY_BAD_INPUT, "network '%s' already has a backward pass",
				 graph->name);
	mark_wanted(graph);
	append_all(graph, &local);
	sweep_marks(graph, &local);
	if (local.code == PRONY_OK)
		return PRONY_OK;
	graph->value_count = value_count;
	graph->node_count = node_count;
	for (int i = 0; i < value_count; i++)
		graph->values[i].gradient = VALUE_NONE;
	return error_set(err, local.code, "%s", local.text);
}
