#include "graph/extract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/attention.h"

static bool is_weight(const struct graph *graph, int value)
{
	return value == VALUE_NONE || graph->values[value].kind == VALUE_PARAMETER ||
	       graph->values[value].kind == VALUE_STATE;
}

/* Whether libraries compute the node in the one that gives it its operand. */
static bool follows(const struct graph *graph, const struct node *node, int value)
{
	switch (node->op) {
	case OP_BATCH_NORM:
	case OP_ADD:
	case OP_DROPOUT:
#define X(id, name) case OP_##id:
		PRONY_ELEMENTWISE(X)
#undef X
		break;
	default:
		return false;
	}
	for (int i = 0; i < node->input_count; i++)
		if (node->inputs[i] != value && !is_weight(graph, node->inputs[i]))
			return false;
	return true;
}

static int only_reader(const struct graph *graph, int value)
{
	if (graph_forward_readers(graph, value) != 1)
		return -1;
	for (int i = 0; i < graph->forward_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++)
			if (graph->nodes[i].inputs[k] == value)
				return i;
	return -1;
}

static void extend(const struct graph *graph, struct layer *layer)
{
	for (;;) {
		int next = only_reader(graph, layer->output);

		if (next < 0 || layer->count == LAYER_NODES_MAX ||
		    !follows(graph, &graph->nodes[next], layer->output))
			return;
		layer->nodes[layer->count++] = next;
		layer->output = graph->nodes[next].outputs[0];
	}
}

static bool is_no_layer(enum op op)
{
	return op == OP_RESHAPE || op == OP_FLATTEN || op == OP_IDENTITY || op == OP_DROPOUT ||
	       op == OP_TENSOR_SCATTER || op == OP_SOFTMAX_CROSS_ENTROPY || op == OP_HALF_SQUARES;
}

/* The attention that ends at the node, as a layer. */
static bool take_attention(const struct graph *graph, int node, struct layer *layer)
{
	struct attention attention;

	if (graph->nodes[node].op != OP_SOFTMAX || !graph_attention(graph, node, &attention))
		return false;
	*layer = (struct layer){.count = attention.node_count, .output = attention.output};
	memcpy(layer->nodes, attention.nodes, sizeof(attention.nodes));
	return true;
}

int graph_layers(const struct graph *graph, struct layer *out)
{
	bool *covered = memory_alloc((size_t)graph->forward_count + 1);
	int count = 0;

	memset(covered, 0, (size_t)graph->forward_count + 1);
	for (int i = 0; i < graph->forward_count; i++) {
		if (!take_attention(graph, i, &out[count]))
			continue;
		for (int k = 0; k < out[count].count; k++)
			covered[out[count].nodes[k]] = true;
		count++;
	}
	for (int i = 0; i < graph->forward_count; i++) {
		if (covered[i] || is_no_layer(graph->nodes[i].op))
			continue;
		out[count] = (struct layer){{i}, 1, graph->nodes[i].outputs[0]};
		extend(graph, &out[count]);
		for (int k = 0; k < out[count].count; k++)
			covered[out[count].nodes[k]] = true;
		count++;
	}
	free(covered);
	return count;
}

/* What is in the new graph instead of the values of the old one. */
struct extraction {
	const struct graph *graph;
	struct builder *builder;
	int *values; /* VALUE_NONE: nothing yet */
	int weights, inputs;
};

static int copy_weight(struct extraction *e, const struct value *value)
{
	char name[16];
	int copy;

	snprintf(name, sizeof(name), "w%d", e->weights++);
	copy = value->kind == VALUE_STATE
		       ? build_state(e->builder, name, value->shape.rank, value->shape.dims,
				     value->fill)
		       : build_parameter(e->builder, name, value->shape.rank, value->shape.dims,
					 value->fill, value->fan_in);
	if (e->builder->error.code == PRONY_OK) {
		e->builder->graph->values[copy].fan_in = value->fan_in;
		e->builder->graph->values[copy].fill_scale = value->fill_scale;
	}
	return copy;
}

static int make_input(struct extraction *e, const struct value *value)
{
	const struct shape *shape = &value->shape;
	int64_t batch = graph_batch(e->graph), dims[TENSOR_MAX_RANK + 1];
	bool whole = shape->rank > 0 && shape->dims[0] == batch;
	char name[16], reshaped[24];

	if (shape->rank == 0 || shape->dims[0] % batch != 0 || shape->rank > TENSOR_MAX_RANK) {
		error_set(&e->builder->error, PRONY_UNSUPPORTED,
			  "%s does not depend on the batch alone", value->name);
		return VALUE_NONE;
	}
	snprintf(name, sizeof(name), "x%d", e->inputs++);
	snprintf(reshaped, sizeof(reshaped), "%s.rows", name);
	dims[0] = shape->dims[0] / batch;
	memcpy(dims + 1, shape->dims + 1, (size_t)(shape->rank - 1) * sizeof(*dims));
	int input = build_input(e->builder, name, value->dtype, batch, shape->rank - whole,
				dims + whole);
	return whole ? input : build_reshape(e->builder, reshaped, input, shape->rank, shape->dims);
}

static int operand(struct extraction *e, int value)
{
	if (value == VALUE_NONE)
		return VALUE_NONE;
	if (e->values[value] == VALUE_NONE)
		e->values[value] = is_weight(e->graph, value)
					   ? copy_weight(e, &e->graph->values[value])
					   : make_input(e, &e->graph->values[value]);
	return e->values[value];
}

/* The result as a row for each sample, which importers take for logits as it is. */
static int as_rows(struct builder *b, int value, int64_t batch)
{
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	const struct shape shape = b->graph->values[value].shape;
	if (shape.rank == 0 || shape.dims[0] % batch != 0) {
		error_set(&b->error, PRONY_UNSUPPORTED, "its result is not of the batch");
		return VALUE_NONE;
	}
	if (shape.dims[0] == batch)
		return shape.rank == 2 ? value : build_flatten(b, "y", value);
	return build_reshape(b, "y", value, 2,
			     (const int64_t[]){batch, shape_elements(&shape) / batch});
}

enum prony_status graph_extract(const struct graph *graph, const struct layer *layer,
				struct graph *out, struct error *err)
{
	struct builder builder = {.graph = out};
	struct extraction e = {.graph = graph, .builder = &builder};

	graph_init(out, "layer");
	e.values = memory_alloc((size_t)graph->value_count * sizeof(*e.values));
	for (int i = 0; i < graph->value_count; i++)
		e.values[i] = VALUE_NONE;
	for (int i = 0; i < layer->count && builder.error.code == PRONY_OK; i++) {
		const struct node *node = &graph->nodes[layer->nodes[i]];
		int inputs[NODE_MAX_INPUTS];
		char name[16];

		for (int k = 0; k < node->input_count; k++)
			inputs[k] = operand(&e, node->inputs[k]);
		snprintf(name, sizeof(name), "n%d", i);
		int made = build_node(&builder, node->op, name, inputs, node->input_count,
				      &node->attributes);
		e.values[node->outputs[0]] = made;
	}
	if (builder.error.code == PRONY_OK && e.inputs == 0)
		error_set(&builder.error, PRONY_UNSUPPORTED, "it reads nothing of the batch");
	out->logits = as_rows(&builder, e.values[layer->output], graph_batch(graph));
	out->loss = VALUE_NONE;
	out->forward_count = out->node_count;
	free(e.values);
	if (builder.error.code == PRONY_OK && graph_check(out, &builder.error) == PRONY_OK)
		return PRONY_OK;
	graph_release(out);
	return error_set(err, builder.error.code, "%s", builder.error.text);
}
