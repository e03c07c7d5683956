/* Questions about one node that the operators' functions and the checks ask. */
#include "graph/node_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "graph/edit_internal.h"

const struct attribute_row no_attributes[] = {{.name = NULL}};

enum prony_status node_error(const struct node *node, struct error *err, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return error_set(err, PRONY_BAD_INPUT, "node '%s' (%s): %s", node->name,
			 operator_name(node->op), text);
}

bool node_has_input(const struct node *node, int i)
{
	return i < node->input_count && node->inputs[i] != VALUE_NONE;
}

const struct shape *node_input_shape(const struct graph *graph, const struct node *node, int i)
{
	assert(node_has_input(node, i));
	return &graph->values[node->inputs[i]].shape;
}

const struct shape *node_output_shape(const struct graph *graph, const struct node *node, int i)
{
	assert(i < node->output_count && node->outputs[i] != VALUE_NONE);
	return &graph->values[node->outputs[i]].shape;
}

enum prony_status node_need_float(const struct graph *graph, const struct node *node, int i,
				  struct error *err)
{
	enum dtype dtype = graph->values[node->inputs[i]].dtype;

	if (dtype == DTYPE_F32)
		return PRONY_OK;
	return node_error(node, err, "input %d ('%s') is %s, but must be F32", i,
			  graph->values[node->inputs[i]].name, dtype_name(dtype));
}

enum prony_status node_need_rank(const struct graph *graph, const struct node *node, int i,
				 int rank, struct error *err)
{
	const struct value *value = &graph->values[node->inputs[i]];
	char text[128];

	if (value->shape.rank == rank)
		return node_need_float(graph, node, i, err);
	shape_text(&value->shape, text, sizeof(text));
	return node_error(node, err, "input %d ('%s') has shape %s, but must have %d dimensions", i,
			  value->name, text, rank);
}

enum prony_status node_set_output(struct graph *graph, const struct node *node, int i,
				  enum dtype dtype, const struct shape *shape, struct error *err)
{
	enum prony_status status;
	struct value *value;

	if (i >= node->output_count || node->outputs[i] == VALUE_NONE)
		return PRONY_OK;
	value = &graph->values[node->outputs[i]];
	status = graph_check_shape(value->name, dtype, shape, err);
	if (status != PRONY_OK) {
		error_prefix(err, "node '%s' (%s)", node->name, operator_name(node->op));
		return status;
	}
	value->dtype = dtype;
	value->shape = *shape;
	return PRONY_OK;
}

enum prony_status node_normal_axis(const struct node *node, int rank, int64_t *axis,
				   struct error *err)
{
	if (*axis < -rank || *axis >= rank)
		return node_error(node, err, "axis is %lld, but the input has %d dimensions",
				  (long long)*axis, rank);
	if (*axis < 0)
		*axis += rank;
	return PRONY_OK;
}

enum prony_status node_copy_shape(struct graph *graph, struct node *node, struct error *err)
{
	struct shape shape = *node_input_shape(graph, node, 0);
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	return node_set_output(graph, node, 0, DTYPE_F32, &shape, err);
}
