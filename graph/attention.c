#include "graph/attention.h"

#include <stdlib.h>

#define FORBIDDEN (-1e4F)

/* The node that computes a value which only one node reads; -1 if there is none. */
static int inner_producer(const struct graph *graph, int value)
{
	if (value == graph->logits || graph_forward_readers(graph, value) != 1)
		return -1;
	return graph->values[value].producer;
}

static bool has_op(const struct graph *graph, int node, enum op op)
{
	return node >= 0 && graph->nodes[node].op == op;
}

static bool is_number(const struct graph *graph, int value)
{
	return graph->values[value].kind == VALUE_STATE &&
	       shape_elements(&graph->values[value].shape) == 1;
}

int attention_scale_operand(const struct graph *graph, int node)
{
	return is_number(graph, graph->nodes[node].inputs[1]) ? 1 : 0;
}

static bool is_scale(const struct graph *graph, int node)
{
	if (has_op(graph, node, OP_DIV))
		return is_number(graph, graph->nodes[node].inputs[1]);
	return has_op(graph, node, OP_MUL) && (is_number(graph, graph->nodes[node].inputs[0]) ||
					       is_number(graph, graph->nodes[node].inputs[1]));
}

/* Covers the node that computes `value` if it scales; returns the value to go on with. */
static int skip_scale(const struct graph *graph, struct attention *a, int value)
{
	int node = inner_producer(graph, value);

	if (!is_scale(graph, node))
		return value;
	a->scales[a->scale_count++] = node;
	a->inner_scales++;
	a->nodes[a->node_count++] = node;
	return graph->nodes[node].inputs[1 - attention_scale_operand(graph, node)];
}

/* Notes the node that scales q or k, if only nodes that move elements are between. */
static void find_outer_scale(const struct graph *graph, struct attention *a, int value)
{
	int node = inner_producer(graph, value);

	while (has_op(graph, node, OP_RESHAPE) || has_op(graph, node, OP_TRANSPOSE))
		node = inner_producer(graph, graph->nodes[node].inputs[0]);
	if (is_scale(graph, node))
		a->scales[a->scale_count++] = node;
}

/* The Transpose of k to N x H x d x T. */
static bool find_key(const struct graph *graph, struct attention *a, int value)
{
	int node = inner_producer(graph, skip_scale(graph, a, value));
	const int64_t *perm;

	if (!has_op(graph, node, OP_TRANSPOSE))
		return false;
	perm = graph->nodes[node].attributes.ints.items;
	a->nodes[a->node_count++] = node;
	a->k = graph->nodes[node].inputs[0];
	for (int i = 0; i < 2; i++)
		a->key_order[i] = perm[i];
	a->key_order[2] = perm[3];
	a->key_order[3] = perm[2];
	return true;
}

/* From the Softmax up to q and k. */
static bool find_scores(const struct graph *graph, struct attention *a, int value)
{
	int node = inner_producer(graph, value);

	if (has_op(graph, node, OP_ADD)) {
		const int *inputs = graph->nodes[node].inputs;
		int state = graph->values[inputs[1]].kind == VALUE_STATE ? 1 : 0;

		a->mask = inputs[state];
		if (graph->values[a->mask].kind != VALUE_STATE)
			return false;
		a->nodes[a->node_count++] = node;
		value = inputs[1 - state];
	}
	node = inner_producer(graph, skip_scale(graph, a, value));
	if (!has_op(graph, node, OP_MATMUL))
		return false;
	a->nodes[a->node_count++] = node;
	a->q = graph->nodes[node].inputs[0];
	return find_key(graph, a, graph->nodes[node].inputs[1]);
}

/* The only node that reads a value; -1 if there are others. */
static int only_reader(const struct graph *graph, int value)
{
	if (value == graph->logits || graph_forward_readers(graph, value) != 1)
		return -1;
	for (int i = graph->values[value].producer + 1; i < graph->forward_count; i++) {
		for (int k = 0; k < graph->nodes[i].input_count; k++) {
			if (graph->nodes[i].inputs[k] == value)
				return i;
		}
	}
	return -1;
}

/* From the Softmax down to the result. */
static bool find_result(const struct graph *graph, struct attention *a, int value)
{
	int node = only_reader(graph, value);

	if (has_op(graph, node, OP_DROPOUT)) {
		a->nodes[a->node_count++] = a->dropout = node;
		value = graph->nodes[node].outputs[0];
		node = only_reader(graph, value);
	}
	if (!has_op(graph, node, OP_MATMUL) || graph->nodes[node].inputs[0] != value)
		return false;
	a->nodes[a->node_count++] = node;
	a->v = graph->nodes[node].inputs[1];
	a->output = graph->nodes[node].outputs[0];
	return true;
}

/* Heads and samples are the same in q, k and v. */
static bool shapes_agree(const struct graph *graph, const struct attention *a)
{
	const struct shape *q = &graph->values[a->q].shape, *k = &graph->values[a->k].shape,
			   *v = &graph->values[a->v].shape;

	if (q->rank != 4 || k->rank != 4 || v->rank != 4)
		return false;
	for (int i = 0; i < 2; i++) {
		if (q->dims[i] != k->dims[a->key_order[i]] || q->dims[i] != v->dims[i])
			return false;
	}
	return true;
}

static int compare_nodes(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

bool graph_attention(const struct graph *graph, int softmax_node, struct attention *out)
{
	const struct node *softmax = &graph->nodes[softmax_node];
	struct attention a = {.mask = VALUE_NONE, .dropout = -1};

	if (softmax->op != OP_SOFTMAX || softmax->attributes.axis != 3 ||
	    graph->values[softmax->inputs[0]].shape.rank != 4)
		return false;
	a.nodes[a.node_count++] = softmax_node;
	if (!find_scores(graph, &a, softmax->inputs[0]) ||
	    !find_result(graph, &a, softmax->outputs[0]) || !shapes_agree(graph, &a))
		return false;
	find_outer_scale(graph, &a, a.q);
	find_outer_scale(graph, &a, a.k);
	qsort(a.nodes, (size_t)a.node_count, sizeof(*a.nodes), compare_nodes);
	*out = a;
	return true;
}

bool attention_mask_is_causal(const float *mask, int64_t rows, int64_t columns)
{
	for (int64_t i = 0; i < rows; i++) {
		for (int64_t k = 0; k < columns; k++) {
			float at = mask[i * columns + k];

			if (k <= i ? at != 0 : !(at <= FORBIDDEN))
				return false;
		}
	}
	return true;
}
