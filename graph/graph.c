/* Creates, grows, copies and frees a graph, and answers common questions about it. */
#include "graph/graph.h"

#include <assert.h>
#include <string.h>

#include "graph/edit_internal.h"

void graph_init(struct graph *graph, const char *name)
{
	*graph = (struct graph){.logits = VALUE_NONE, .loss = VALUE_NONE};
	arena_init(&graph->arena, 0);
	graph->name = arena_strdup(&graph->arena, name);
}

void graph_release(struct graph *graph)
{
	if (graph == NULL)
		return;
	arena_release(&graph->arena);
	*graph = (struct graph){.logits = VALUE_NONE, .loss = VALUE_NONE};
}

/* The number of values before those of the backward pass, which are appended at the end. */
static int forward_values(const struct graph *graph)
{
	int count = 0;

	while (count < graph->value_count && graph->values[count].kind != VALUE_GRADIENT)
		count++;
	return count;
}

void graph_copy_forward(const struct graph *graph, struct graph *out)
{
	struct graph copy = *graph;

	arena_init(&copy.arena, 0);
	copy.name = arena_strdup(&copy.arena, graph->name);
	copy.value_count = copy.value_capacity = forward_values(graph);
	copy.node_count = copy.node_capacity = graph->forward_count;
	copy.values = arena_array(&copy.arena, (size_t)copy.value_count, sizeof(*copy.values));
	copy.nodes = arena_array(&copy.arena, (size_t)copy.node_count, sizeof(*copy.nodes));
	for (int i = 0; i < copy.value_count; i++) {
		copy.values[i] = graph->values[i];
		copy.values[i].name = arena_strdup(&copy.arena, graph->values[i].name);
		copy.values[i].gradient = VALUE_NONE;
	}
	for (int i = 0; i < copy.node_count; i++) {
		copy.nodes[i] = graph->nodes[i];
		copy.nodes[i].name = arena_strdup(&copy.arena, graph->nodes[i].name);
	}
	*out = copy;
}

/* The old array stays in the arena: all old arrays together are at most as large as the newest. */
static void *grow(struct graph *graph, void *old, int count, int *capacity, size_t element_bytes)
{
	void *larger;

	if (count < *capacity)
		return old;
	*capacity = *capacity == 0 ? 64 : *capacity * 2;
	larger = arena_array(&graph->arena, (size_t)*capacity, element_bytes);
	if (count > 0)
		memcpy(larger, old, (size_t)count * element_bytes);
	return larger;
}

int graph_add_value(struct graph *graph, const char *name, enum value_kind kind, enum dtype dtype,
		    const struct shape *shape)
{
	graph->values = grow(graph, graph->values, graph->value_count, &graph->value_capacity,
			     sizeof(*graph->values));
	graph->values[graph->value_count] = (struct value){
		.name = arena_strdup(&graph->arena, name),
		.kind = kind,
		.dtype = dtype,
		.shape = *shape,
		.producer = -1,
		.gradient = VALUE_NONE,
		.fill_scale = 1,
	};
	return graph->value_count++;
}

int graph_add_node(struct graph *graph, const struct node *node)
{
	graph->nodes = grow(graph, graph->nodes, graph->node_count, &graph->node_capacity,
			    sizeof(*graph->nodes));
	graph->nodes[graph->node_count] = *node;
	graph->nodes[graph->node_count].name = arena_strdup(&graph->arena, node->name);
	for (int i = 0; i < node->output_count; i++) {
		if (node->outputs[i] != VALUE_NONE)
			graph->values[node->outputs[i]].producer = graph->node_count;
	}
	return graph->node_count++;
}

int graph_find_value(const struct graph *graph, const char *name)
{
	for (int i = 0; i < graph->value_count; i++) {
		if (strcmp(graph->values[i].name, name) == 0)
			return i;
	}
	return VALUE_NONE;
}

int graph_forward_readers(const struct graph *graph, int value)
{
	int readers = 0;

	for (int i = 0; i < graph->forward_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++)
			readers += graph->nodes[i].inputs[k] == value;
	return readers;
}

int graph_find_node(const struct graph *graph, const char *name)
{
	for (int i = 0; i < graph->node_count; i++) {
		if (strcmp(graph->nodes[i].name, name) == 0)
			return i;
	}
	return -1;
}

static int values_of(const struct graph *graph, enum value_kind kind, int *out, int capacity)
{
	int count = 0;

	for (int i = 0; i < graph->value_count; i++) {
		if (graph->values[i].kind != kind)
			continue;
		if (out != NULL && count < capacity)
			out[count] = i;
		count++;
	}
	return count;
}

int graph_parameters(const struct graph *graph, int *out, int capacity)
{
	return values_of(graph, VALUE_PARAMETER, out, capacity);
}

int graph_inputs(const struct graph *graph, int *out, int capacity)
{
	return values_of(graph, VALUE_INPUT, out, capacity);
}

int graph_labels(const struct graph *graph, int *out, int capacity)
{
	return values_of(graph, VALUE_LABEL, out, capacity);
}

static int value_of(const struct graph *graph, enum value_kind kind, int i)
{
	for (int v = 0; v < graph->value_count; v++) {
		if (graph->values[v].kind == kind && i-- == 0)
			return v;
	}
	return VALUE_NONE;
}

int graph_input(const struct graph *graph, int i)
{
	return value_of(graph, VALUE_INPUT, i);
}

int graph_label(const struct graph *graph, int i)
{
	return value_of(graph, VALUE_LABEL, i);
}

int64_t graph_classes(const struct graph *graph)
{
	const struct shape *shape;

	assert(graph->logits != VALUE_NONE);
	shape = &graph->values[graph->logits].shape;
	return shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
}

int64_t graph_batch(const struct graph *graph)
{
	int input = graph_input(graph, 0);

	assert(input != VALUE_NONE);
	return graph->values[input].shape.dims[0];
}

bool graph_has_dropout(const struct graph *graph)
{
	for (int i = 0; i < graph->forward_count; i++) {
		if (operator_row(graph->nodes[i].op)->is_random)
			return true;
	}
	return false;
}

bool graph_has_statistics(const struct graph *graph)
{
	for (int i = 0; i < graph->forward_count; i++)
		if (operator_row(graph->nodes[i].op)->statistics)
			return true;
	return false;
}

void graph_set_ranks(struct graph *graph, int ranks)
{
	for (int i = 0; i < graph->forward_count; i++)
		if (operator_row(graph->nodes[i].op)->statistics)
			graph->nodes[i].attributes.ranks = ranks;
}

int graph_state_statistic(const struct graph *graph, int state, double *momentum)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		int first = operator_row(node->op)->statistics;

		for (int k = 0; first > 0 && first + k < node->input_count; k++) {
			if (node->inputs[first + k] != state || node->output_count <= 1 + k)
				continue;
			*momentum = node->attributes.momentum;
			return node->outputs[1 + k];
		}
	}
	return VALUE_NONE;
}

int graph_state_present(const struct graph *graph, int state)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (operator_row(node->op)->replaces_state && node->inputs[0] == state)
			return node->outputs[0];
	}
	return VALUE_NONE;
}
