/* Counts the parameters and multiply-accumulates of a graph, and estimates its memory. */
#include "graph/node_internal.h"

#include "base/arena.h"

int64_t graph_parameter_count(const struct graph *graph)
{
	int64_t count = 0;

	for (int i = 0; i < graph->value_count; i++) {
		if (graph->values[i].kind == VALUE_PARAMETER)
			count = saturating_add(count, shape_elements(&graph->values[i].shape));
	}
	return count;
}

int64_t graph_macs(const struct graph *graph)
{
	int64_t macs = 0;

	for (int i = 0; i < graph->forward_count; i++) {
		const struct operator_row *row = operator_row(graph->nodes[i].op);

		if (row->macs != NULL)
			macs = saturating_add(macs, row->macs(graph, &graph->nodes[i]));
	}
	return macs;
}

static int64_t value_bytes(const struct graph *graph, int index)
{
	const struct value *value = &graph->values[index];

	return saturating_multiply(shape_elements(&value->shape),
				   (int64_t)dtype_bytes(value->dtype));
}

/* Bytes of a node's outputs; if asked, also of the activations that it reads. */
static int64_t node_bytes(const struct graph *graph, const struct node *node, bool with_inputs)
{
	int64_t bytes = 0;

	for (int i = 0; i < node->output_count; i++) {
		if (node->outputs[i] != VALUE_NONE)
			bytes = saturating_add(bytes, value_bytes(graph, node->outputs[i]));
	}
	for (int i = 0; with_inputs && i < node->input_count; i++) {
		if (node->inputs[i] != VALUE_NONE &&
		    graph->values[node->inputs[i]].kind == VALUE_ACTIVATION)
			bytes = saturating_add(bytes, value_bytes(graph, node->inputs[i]));
	}
	return bytes;
}

/* Bytes that training keeps inside a node. */
static int64_t kept_inside(const struct graph *graph, const struct node *node, bool all)
{
	const struct operator_row *row = operator_row(node->op);

	return row->kept_bytes ? row->kept_bytes(graph, node, all) : 0;
}

/* Bytes of all activations, and of the gradients around the node where they are largest. */
static int64_t training_activations(const struct graph *graph)
{
	int64_t kept = 0, peak = 0;

	for (int i = 0; i < graph->forward_count; i++) {
		int64_t around = node_bytes(graph, &graph->nodes[i], true);

		kept = saturating_add(kept, node_bytes(graph, &graph->nodes[i], false));
		kept = saturating_add(kept, kept_inside(graph, &graph->nodes[i], true));
		if (around > peak)
			peak = around;
	}
	return saturating_add(kept, peak);
}

/*
 * The largest sum of activations that live at the same time, each from its node to its last reader.
 */
static int64_t evaluation_activations(const struct graph *graph)
{
	int64_t live = 0, peak = 0;
	struct arena arena;
	int *last_use;

	arena_init(&arena, 0);
	last_use = arena_array(&arena, (size_t)graph->value_count + 1, sizeof(*last_use));
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		for (int k = 0; k < node->output_count; k++) {
			if (node->outputs[k] != VALUE_NONE)
				last_use[node->outputs[k]] = i;
		}
		for (int k = 0; k < node->input_count; k++) {
			if (node->inputs[k] != VALUE_NONE)
				last_use[node->inputs[k]] = i;
		}
	}
	for (int i = 0; i < graph->forward_count; i++) {
		live = saturating_add(live, node_bytes(graph, &graph->nodes[i], false));
		if (live > peak)
			peak = live;
		for (int v = 0; v < graph->value_count; v++) {
			if (graph->values[v].kind == VALUE_ACTIVATION && last_use[v] == i &&
			    live != INT64_MAX)
				live -= value_bytes(graph, v);
		}
	}
	arena_release(&arena);
	return peak;
}

int64_t graph_memory_estimate(const struct graph *graph, bool training)
{
	/* In training, each parameter has a gradient and one number of optimiser state. */
	int64_t copies = training ? 3 : 1;
	int64_t bytes = training ? training_activations(graph) : evaluation_activations(graph);

	for (int i = 0; i < graph->value_count; i++) {
		enum value_kind kind = graph->values[i].kind;

		if (kind == VALUE_ACTIVATION || kind == VALUE_GRADIENT)
			continue;
		bytes = saturating_add(bytes,
				       saturating_multiply(value_bytes(graph, i),
							   kind == VALUE_PARAMETER ? copies : 1));
	}
	return bytes;
}

/* The bytes that every implementation needs for a value that a forward node computed. */
static int64_t kept_bytes(const struct graph *graph, int index, int64_t element_bytes)
{
	const struct value *value = &graph->values[index];

	if (value->dtype != DTYPE_F32)
		element_bytes = (int64_t)dtype_bytes(value->dtype);
	return saturating_multiply(shape_elements(&value->shape), element_bytes);
}

/* Bytes of the forward pass that the backward pass reads: they live when the forward pass ends. */
static int64_t read_backwards(const struct graph *graph, int64_t element_bytes)
{
	int64_t bytes = 0;
	struct arena arena;
	bool *counted;

	for (int i = 0; i < graph->forward_count; i++)
		bytes = saturating_add(bytes, kept_inside(graph, &graph->nodes[i], false));
	arena_init(&arena, 0);
	counted = arena_array(&arena, (size_t)graph->value_count + 1, sizeof(*counted));
	for (int i = graph->forward_count; i < graph->node_count; i++) {
		const struct node *node = &graph->nodes[i];

		for (int k = 0; k < node->input_count && !operator_row(node->op)->keeps_less; k++) {
			int input = node->inputs[k];

			if (input == VALUE_NONE || counted[input] ||
			    graph->values[input].kind != VALUE_ACTIVATION)
				continue;
			counted[input] = true;
			bytes = saturating_add(bytes, kept_bytes(graph, input, element_bytes));
		}
	}
	arena_release(&arena);
	return bytes;
}

/* Bytes of the matrix product or convolution with the largest input and output: neither can be
 * computed in place. */
static int64_t largest_product(const struct graph *graph, int64_t element_bytes)
{
	int64_t largest = 0;

	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		int64_t bytes;

		if (operator_row(node->op)->macs == NULL)
			continue;
		bytes = kept_bytes(graph, node->outputs[0], element_bytes);
		if (graph->values[node->inputs[0]].kind == VALUE_ACTIVATION)
			bytes = saturating_add(bytes,
					       kept_bytes(graph, node->inputs[0], element_bytes));
		if (bytes > largest)
			largest = bytes;
	}
	return largest;
}

int64_t graph_memory_least(const struct graph *graph, int optimiser_copies, int64_t element_bytes)
{
	bool training = graph->node_count > graph->forward_count;
	int64_t copies = training ? 2 + optimiser_copies : 1;
	int64_t bytes = training ? read_backwards(graph, element_bytes)
				 : largest_product(graph, element_bytes);

	for (int i = 0; i < graph->value_count; i++) {
		enum value_kind kind = graph->values[i].kind;

		if (kind == VALUE_PARAMETER || kind == VALUE_STATE)
			bytes = saturating_add(
				bytes, saturating_multiply(value_bytes(graph, i),
							   kind == VALUE_PARAMETER ? copies : 1));
	}
	return bytes;
}
