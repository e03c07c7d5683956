/* Checks every invariant of a graph. */
#include "graph/edit_internal.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/node_internal.h"

enum prony_status graph_check_row(const struct node *node, struct error *err)
{
	const struct operator_row *row = operator_row(node->op);

	if (node->input_count < row->min_inputs || node->input_count > row->max_inputs)
		return node_error(node, err, "it has %d inputs; the operator takes %d to %d",
				  node->input_count, row->min_inputs, row->max_inputs);
	if (node->output_count < 1 || node->output_count > row->max_outputs)
		return node_error(node, err, "it has %d outputs; the operator has 1 to %d",
				  node->output_count, row->max_outputs);
	for (int i = 0; i < row->min_inputs; i++) {
		if (node->inputs[i] == VALUE_NONE)
			return node_error(node, err, "input %d is required", i);
	}
	if (node->outputs[0] == VALUE_NONE && !row->leaves_out)
		return node_error(node, err, "output 0 is required");
	for (const struct attribute_row *a = row->attributes; a->name != NULL; a++) {
		const void *member = (const char *)&node->attributes + a->offset;
		const struct int_list *list = member;

		if (a->kind == ATTRIBUTE_INTS &&
		    (list->count < 0 || list->count > ATTRIBUTE_MAX_INTS))
			return node_error(node, err, "attribute '%s' has too many numbers (%d)",
					  a->name, list->count);

		/* JSON has no infinity and no NaN. */
		if (a->kind == ATTRIBUTE_REAL && !isfinite(*(const double *)member))
			return node_error(node, err, "attribute '%s' must be finite", a->name);
	}
	return PRONY_OK;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum prony_status check_unique(const char *what, const char **names, int count,
				      struct error *err)
{
	qsort(names, (size_t)count, sizeof(*names), compare_names);
	for (int i = 1; i < count; i++) {
		if (strcmp(names[i - 1], names[i]) == 0)
			return error_set(err, PRONY_BAD_INPUT, "two %ss have the name '%s'", what,
					 names[i]);
	}
	return PRONY_OK;
}

static enum prony_status check_names(const struct graph *graph, struct arena *scratch,
				     struct error *err)
{
	const char **names;
	enum prony_status status;

	status = graph_check_name("graph", graph->name, err);
	if (status != PRONY_OK)
		return status;
	names = arena_array(scratch, (size_t)graph->value_count + 1, sizeof(*names));
	for (int i = 0; i < graph->value_count; i++) {
		names[i] = graph->values[i].name;
		/* The names of gradients are prony's, and longer than the names that they are
		 * derived from. */
		status = graph->values[i].kind == VALUE_GRADIENT
				 ? PRONY_OK
				 : graph_check_name("value", names[i], err);
		if (status != PRONY_OK)
			return status;
	}
	status = check_unique("value", names, graph->value_count, err);
	if (status != PRONY_OK)
		return status;
	names = arena_array(scratch, (size_t)graph->node_count + 1, sizeof(*names));
	for (int i = 0; i < graph->node_count; i++) {
		names[i] = graph->nodes[i].name;
		status = i >= graph->forward_count ? PRONY_OK
						   : graph_check_name("node", names[i], err);
		if (status != PRONY_OK)
			return status;
	}
	return check_unique("node", names, graph->node_count, err);
}

static bool is_computed(const struct value *value)
{
	return value->kind == VALUE_ACTIVATION || value->kind == VALUE_GRADIENT;
}

static bool has_output(const struct node *node, int value)
{
	for (int i = 0; i < node->output_count; i++) {
		if (node->outputs[i] == value)
			return true;
	}
	return false;
}

static bool is_input_dtype(enum dtype dtype)
{
	return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_I64 ||
	       dtype == DTYPE_I32 || dtype == DTYPE_BOOL;
}

static enum prony_status check_value(const struct graph *graph, int index, struct error *err)
{
	const struct value *value = &graph->values[index];
	bool produced = value->producer >= 0 && value->producer < graph->node_count &&
			has_output(&graph->nodes[value->producer], index);

	if ((unsigned)value->kind > VALUE_GRADIENT || (unsigned)value->dtype >= DTYPE_COUNT ||
	    value->shape.rank < 0 || value->shape.rank > TENSOR_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT, "value '%s': unknown kind, dtype or rank",
				 value->name);
	if (is_computed(value) && !produced)
		return error_set(err, PRONY_BAD_INPUT, "value '%s': no node computes it",
				 value->name);
	if (!is_computed(value) && value->producer != -1)
		return error_set(
			err, PRONY_BAD_INPUT,
			"value '%s' is computed by a node, but its kind says that it is not",
			value->name);
	if (value->kind == VALUE_INPUT) {
		if (!is_input_dtype(value->dtype))
			return error_set(err, PRONY_BAD_INPUT,
					 "input '%s' is %s; inputs are F32, F16, I64, I32 or BOOL",
					 value->name, dtype_name(value->dtype));
	} else if (value->dtype != (value->kind == VALUE_LABEL ? DTYPE_I64 : DTYPE_F32)) {
		return error_set(err, PRONY_BAD_INPUT, "value '%s' is %s, but must be %s",
				 value->name, dtype_name(value->dtype),
				 value->kind == VALUE_LABEL ? "I64" : "F32");
	}
	if (value->gradient != VALUE_NONE &&
	    (value->gradient < 0 || value->gradient >= graph->value_count ||
	     !shape_equal(&graph->values[value->gradient].shape, &value->shape)))
		return error_set(err, PRONY_BAD_INPUT, "value '%s': its gradient has another shape",
				 value->name);
	return graph_check_shape(value->name, value->dtype, &value->shape, err);
}

static enum prony_status check_edges(const struct graph *graph, int index, struct error *err)
{
	const struct node *node = &graph->nodes[index];

	for (int i = 0; i < node->input_count; i++) {
		int v = node->inputs[i];

		if (v == VALUE_NONE)
			continue;
		if (v < 0 || v >= graph->value_count)
			return node_error(node, err, "input %d is not a value", i);
		if (graph->values[v].producer >= index)
			return node_error(node, err, "it uses '%s' before it is computed",
					  graph->values[v].name);
	}
	for (int i = 0; i < node->output_count; i++) {
		int v = node->outputs[i];

		if (v == VALUE_NONE)
			continue;
		if (v < 0 || v >= graph->value_count)
			return node_error(node, err, "output %d is not a value", i);
		if (graph->values[v].producer != index)
			return node_error(node, err, "'%s' is computed twice",
					  graph->values[v].name);
	}
	return PRONY_OK;
}

/* Infers shapes into `scratch`, a copy, and compares them with those of the graph. */
static enum prony_status check_shapes(const struct graph *graph, struct graph *scratch, int index,
				      struct error *err)
{
	struct node node = graph->nodes[index];
	enum prony_status status = operator_row(node.op)->infer(scratch, &node, err);

	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < node.output_count; i++) {
		const struct value *declared, *inferred;

		if (node.outputs[i] == VALUE_NONE)
			continue;
		declared = &graph->values[node.outputs[i]];
		inferred = &scratch->values[node.outputs[i]];
		if (declared->dtype != inferred->dtype ||
		    !shape_equal(&declared->shape, &inferred->shape)) {
			char declared_text[128], inferred_text[128];

			shape_text(&declared->shape, declared_text, sizeof(declared_text));
			shape_text(&inferred->shape, inferred_text, sizeof(inferred_text));
			return node_error(
				&node, err,
				"output '%s' is declared as %s %s, but the operator computes %s %s",
				declared->name, dtype_name(declared->dtype), declared_text,
				dtype_name(inferred->dtype), inferred_text);
		}
	}
	return PRONY_OK;
}

static enum prony_status check_node(const struct graph *graph, struct graph *scratch, int index,
				    struct error *err)
{
	const struct node *node = &graph->nodes[index];
	const struct operator_row *row;
	enum prony_status status;

	if ((unsigned)node->op >= OP_COUNT || node->input_count < 0 ||
	    node->input_count > NODE_MAX_INPUTS || node->output_count < 0 ||
	    node->output_count > NODE_MAX_OUTPUTS)
		return error_set(
			err, PRONY_BAD_INPUT,
			"node '%s': unknown operator, or wrong number of inputs or outputs",
			node->name);
	row = operator_row(node->op);
	if (row->is_gradient != (node->differentiates != -1) ||
	    (row->is_gradient && (index < graph->forward_count || node->differentiates < 0 ||
				  node->differentiates >= graph->forward_count)))
		return node_error(node, err, "gradient nodes must come after the forward nodes");
	status = graph_check_row(node, err);
	if (status == PRONY_OK)
		status = check_edges(graph, index, err);
	if (status == PRONY_OK)
		status = check_shapes(graph, scratch, index, err);
	return status;
}

/* Checks that the special values (logits, loss) exist. Their kinds and shapes are checked later,
 * when all values are known to be valid. */
static enum prony_status check_ends_exist(const struct graph *graph, struct error *err)
{
	if (graph_inputs(graph, NULL, 0) == 0 || graph->logits < 0 ||
	    graph->logits >= graph->value_count)
		return error_set(err, PRONY_BAD_INPUT, "the graph has no input or no logits");
	if (graph->loss < VALUE_NONE || graph->loss >= graph->value_count ||
	    (graph_labels(graph, NULL, 0) == 0) != (graph->loss == VALUE_NONE))
		return error_set(err, PRONY_BAD_INPUT,
				 "a graph needs both a label and a loss, or neither");
	return PRONY_OK;
}

/* Checks that all inputs and labels have the batch first, and that the logits have whole rows for
 * each sample. */
static enum prony_status check_batch(const struct graph *graph, struct error *err)
{
	const struct shape *logits = &graph->values[graph->logits].shape;
	const struct shape *first = &graph->values[graph_input(graph, 0)].shape;

	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind != VALUE_INPUT && value->kind != VALUE_LABEL)
			continue;
		if (value->shape.rank < 1 || value->shape.dims[0] != first->dims[0])
			return error_set(err, PRONY_BAD_INPUT,
					 "'%s': the first dimension of all inputs and labels must "
					 "be the batch",
					 value->name);
	}
	if (logits->rank < 2 || logits->dims[0] % first->dims[0] != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "the logits '%s' must have 2 dimensions or more, the first a "
				 "multiple of the batch",
				 graph->values[graph->logits].name);
	return PRONY_OK;
}

static enum prony_status check_ends(const struct graph *graph, struct error *err)
{
	int last = graph->forward_count - 1;
	enum prony_status status = check_batch(graph, err);

	if (status != PRONY_OK)
		return status;
	if (graph->values[graph->logits].kind != VALUE_ACTIVATION ||
	    graph->values[graph->logits].producer >= graph->forward_count)
		return error_set(err, PRONY_BAD_INPUT, "no forward node computes the logits '%s'",
				 graph->values[graph->logits].name);
	for (int i = 0; i <= last; i++) {
		const struct node *node = &graph->nodes[i];

		if (!operator_row(node->op)->is_loss)
			continue;
		if (i != last || node->outputs[0] != graph->loss ||
		    node->inputs[0] != graph->logits)
			return node_error(node, err, "the loss must be the last forward node");
	}
	if (graph->loss != VALUE_NONE &&
	    (last < 0 || !has_output(&graph->nodes[last], graph->loss)))
		return error_set(err, PRONY_BAD_INPUT,
				 "the last forward node must compute the loss '%s'",
				 graph->values[graph->loss].name);
	return PRONY_OK;
}

/* Training writes the running statistics, and every step a cache, so nothing else may read them.
 * The batch's statistics serve the backward pass, which does not lead through them. */
static enum prony_status check_states(const struct graph *graph, struct arena *scratch,
				      struct error *err)
{
	int *uses = arena_array(scratch, (size_t)graph->value_count + 1, sizeof(*uses));

	for (int i = 0; i < graph->forward_count; i++) {
		for (int k = 0; k < graph->nodes[i].input_count; k++) {
			if (graph->nodes[i].inputs[k] != VALUE_NONE)
				uses[graph->nodes[i].inputs[k]]++;
		}
	}
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		int first = operator_row(node->op)->statistics;

		if (operator_row(node->op)->replaces_state && uses[node->inputs[0]] > 1)
			return node_error(node, err, "the state '%s' is also used elsewhere",
					  graph->values[node->inputs[0]].name);
		for (int k = first; first > 0 && k < node->input_count; k++) {
			if (uses[node->inputs[k]] > 1)
				return node_error(node, err,
						  "its statistic '%s' is also used elsewhere; "
						  "gradients would then be wrong",
						  graph->values[node->inputs[k]].name);
		}
		for (int k = 1; first > 0 && k < node->output_count; k++) {
			if (node->outputs[k] != VALUE_NONE && uses[node->outputs[k]] > 0)
				return node_error(node, err,
						  "its output '%s' is used but has no gradient",
						  graph->values[node->outputs[k]].name);
		}
	}
	return PRONY_OK;
}

enum prony_status graph_check(const struct graph *graph, struct error *err)
{
	struct graph scratch = *graph;
	enum prony_status status;
	struct arena arena;

	if (graph->forward_count < 0 || graph->forward_count > graph->node_count)
		return error_set(
			err, PRONY_BAD_INPUT,
			"the number of forward nodes is not between 0 and the number of nodes");
	arena_init(&arena, 0);
	scratch.values =
		arena_array(&arena, (size_t)graph->value_count + 1, sizeof(*scratch.values));
	if (graph->value_count > 0)
		memcpy(scratch.values, graph->values,
		       (size_t)graph->value_count * sizeof(*scratch.values));
	status = check_ends_exist(graph, err);
	if (status == PRONY_OK)
		status = check_names(graph, &arena, err);
	for (int i = 0; status == PRONY_OK && i < graph->value_count; i++)
		status = check_value(graph, i, err);
	for (int i = 0; status == PRONY_OK && i < graph->node_count; i++)
		status = check_node(graph, &scratch, i, err);
	if (status == PRONY_OK)
		status = check_ends(graph, err);
	if (status == PRONY_OK)
		status = check_states(graph, &arena, err);
	arena_release(&arena);
	return status;
}
