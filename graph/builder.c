/* Builds a graph: inputs, parameters, nodes, and the loss at its end. */
#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>

#include "graph/edit_internal.h"

/* Appends a value with a name that is not taken; otherwise VALUE_NONE and an error. */
static int new_value(struct builder *b, const char *name, enum value_kind kind, enum dtype dtype,
		     const struct shape *shape)
{
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	if (graph_check_name("value", name, &b->error) != PRONY_OK ||
	    graph_check_shape(name, dtype, shape, &b->error) != PRONY_OK)
		return VALUE_NONE;
	if (graph_find_value(b->graph, name) != VALUE_NONE) {
		error_set(&b->error, PRONY_BAD_INPUT, "two values have the name '%s'", name);
		return VALUE_NONE;
	}
	if (b->graph->value_count >= GRAPH_MAX_VALUES) {
		error_set(&b->error, PRONY_BAD_INPUT, "the graph has more than %d values",
			  GRAPH_MAX_VALUES);
		return VALUE_NONE;
	}
	return graph_add_value(b->graph, name, kind, dtype, shape);
}

static struct shape with_batch(int64_t batch, int rank, const int64_t *dims)
{
	struct shape shape = {.rank = rank + 1, .dims = {batch}};

	assert(rank >= 0 && rank < TENSOR_MAX_RANK);
	for (int i = 0; i < rank; i++)
		shape.dims[i + 1] = dims[i];
	return shape;
}

int build_input(struct builder *b, const char *name, enum dtype dtype, int64_t batch, int rank,
		const int64_t *dims_without_batch)
{
	struct shape shape = with_batch(batch, rank, dims_without_batch);

	return new_value(b, name, VALUE_INPUT, dtype, &shape);
}

int build_parameter(struct builder *b, const char *name, int rank, const int64_t *dims,
		    enum weight_fill fill, int64_t fan_in)
{
	struct shape shape = shape_make(rank, dims);
	int index = new_value(b, name, VALUE_PARAMETER, DTYPE_F32, &shape);

	if (index != VALUE_NONE) {
		b->graph->values[index].fill = fill;
		b->graph->values[index].fan_in = fan_in;
	}
	return index;
}

int build_state(struct builder *b, const char *name, int rank, const int64_t *dims,
		enum weight_fill fill)
{
	struct shape shape = shape_make(rank, dims);
	int index = new_value(b, name, VALUE_STATE, DTYPE_F32, &shape);

	if (index != VALUE_NONE)
		b->graph->values[index].fill = fill;
	return index;
}

/* Creates the outputs as scalars; infer sets their shapes. */
static enum prony_status new_outputs(struct builder *b, struct node *node)
{
	struct shape scalar = {.rank = 0};
	char name[GRAPH_MAX_NAME_BYTES + 8];

	for (int i = 0; i < operator_row(node->op)->max_outputs; i++) {
		if (i == 0)
			snprintf(name, sizeof(name), "%s", node->name);
		else
			snprintf(name, sizeof(name), "%s.%d", node->name, i);
		node->outputs[i] = new_value(b, name, VALUE_ACTIVATION, DTYPE_F32, &scalar);
		node->output_count = i + 1;
		if (node->outputs[i] == VALUE_NONE)
			return b->error.code;
	}
	return PRONY_OK;
}

int build_node(struct builder *b, enum op op, const char *name, const int *inputs, int input_count,
	       const struct attributes *attributes)
{
	struct node node = {
		.op = op, .name = name, .input_count = input_count, .differentiates = -1};

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	assert(input_count <= NODE_MAX_INPUTS);
	for (int i = 0; i < input_count; i++)
		node.inputs[i] = inputs[i];
	if (attributes != NULL)
		node.attributes = *attributes;
	else
		operator_default_attributes(op, &node.attributes);
	if (graph_check_name("node", name, &b->error) != PRONY_OK)
		return VALUE_NONE;
	if (graph_find_node(b->graph, name) >= 0) {
		error_set(&b->error, PRONY_BAD_INPUT, "two nodes have the name '%s'", name);
		return VALUE_NONE;
	}
	if (b->graph->node_count >= GRAPH_MAX_NODES) {
		error_set(&b->error, PRONY_BAD_INPUT, "the graph has more than %d nodes",
			  GRAPH_MAX_NODES);
		return VALUE_NONE;
	}
	if (new_outputs(b, &node) != PRONY_OK || graph_check_row(&node, &b->error) != PRONY_OK)
		return VALUE_NONE;
	if (operator_row(op)->infer(b->graph, &node, &b->error) != PRONY_OK)
		return VALUE_NONE;
	graph_add_node(b->graph, &node);
	b->graph->forward_count = b->graph->node_count;
	return node.outputs[0];
}

/* Declares the logits and the labels (batch x dims), and appends the loss, which reads the first
 * `inputs` of them. */
static enum prony_status finish(struct builder *b, int logits, enum op loss, int inputs, int rank,
				const int64_t *dims, struct error *err)
{
	if (b->error.code == PRONY_OK) {
		struct shape shape = with_batch(graph_batch(b->graph), rank, dims);
		int label = new_value(b, "label", VALUE_LABEL, DTYPE_I64, &shape);

		b->graph->logits = logits;
		b->graph->loss =
			build_node(b, loss, "loss", (const int[]){logits, label}, inputs, NULL);
	}
	if (b->error.code == PRONY_OK)
		graph_check(b->graph, &b->error);
	if (b->error.code != PRONY_OK)
		return error_set(err, b->error.code, "network '%s': %s", b->graph->name,
				 b->error.text);
	return PRONY_OK;
}

enum prony_status build_finish(struct builder *b, int logits, int rank, const int64_t *dims,
			       struct error *err)
{
	return finish(b, logits, OP_SOFTMAX_CROSS_ENTROPY, 2, rank, dims, err);
}

enum prony_status build_finish_half_squares(struct builder *b, int logits, struct error *err)
{
	return finish(b, logits, OP_HALF_SQUARES, 1, 0, NULL, err);
}
