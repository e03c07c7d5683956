/* Attention as one node, Attention of opset 23. */
#include <string.h>

#include "onnx/export_internal.h"

#define ATTENTION_OPSET 23

/* An attention that becomes one node. */
struct export_attention {
	struct attention found;
	/* q, k and v: N x H x T x d, or, if `turned` is set, N x T x H x d. */
	int from[3];
	const struct node *turned; /* it makes the result N x T x H x d; NULL */
	double scale;
	bool causal;
};

/* Whether the node swaps heads and tokens. */
static bool swaps(const struct node *node)
{
	static const int64_t order[] = {0, 2, 1, 3};

	return node->op == OP_TRANSPOSE &&
	       memcmp(node->attributes.ints.items, order, sizeof(order)) == 0;
}

/* N x T x H x d of a value that is N x H x T x d; VALUE_NONE if it was never so. */
static int tokens_first(const struct graph *graph, int value)
{
	int producer = graph->values[value].producer;

	return producer >= 0 && swaps(&graph->nodes[producer]) ? graph->nodes[producer].inputs[0]
							       : VALUE_NONE;
}

/* The node that makes the result N x T x H x d, if nothing else reads it; else -1. */
static int find_turned(const struct graph *graph, int output)
{
	if (output == graph->logits || graph_forward_readers(graph, output) != 1)
		return -1;
	for (int i = graph->values[output].producer + 1; i < graph->forward_count; i++)
		if (graph->nodes[i].inputs[0] == output)
			return swaps(&graph->nodes[i]) ? i : -1;
	return -1;
}

/* Sets `from` and `turned`; false if the dimensions of k are in an order that the node lacks. */
static bool find_order(const struct graph *graph, struct export_attention *a)
{
	const struct attention *found = &a->found;
	bool heads_first = found->key_order[1] == 1 && found->key_order[2] == 2;
	bool key_is_tokens_first = found->key_order[1] == 2 && found->key_order[2] == 1;
	int turned = find_turned(graph, found->output);
	int from[3] = {tokens_first(graph, found->q),
		       heads_first	     ? tokens_first(graph, found->k)
		       : key_is_tokens_first ? found->k
					     : VALUE_NONE,
		       tokens_first(graph, found->v)};

	if (turned >= 0 && from[0] != VALUE_NONE && from[1] != VALUE_NONE &&
	    from[2] != VALUE_NONE) {
		a->turned = &graph->nodes[turned];
		memcpy(a->from, from, sizeof(from));
		return true;
	}
	a->from[0] = found->q;
	a->from[1] = found->k;
	a->from[2] = found->v;
	return heads_first;
}

/* Takes the numbers of scales and mask out of the weights; false if the node lacks such a mask. */
static bool read_states(const struct exporter *e, struct export_attention *a)
{
	const struct graph *graph = e->graph;
	const struct shape *q = &graph->values[a->found.q].shape;
	int64_t queries = q->dims[2], keys = graph->values[a->found.v].shape.dims[2];
	const struct tensor *state;

	a->scale = 1;
	for (int i = 0; i < a->found.scale_count; i++) {
		const struct node *node = &graph->nodes[a->found.scales[i]];
		int operand = attention_scale_operand(graph, a->found.scales[i]);

		state = tensor_find(e->weights, graph->values[node->inputs[operand]].name);
		if (!state || state->dtype != DTYPE_F32)
			return false;
		if (node->op == OP_DIV)
			a->scale /= (double)*(const float *)state->data;
		else
			a->scale *= (double)*(const float *)state->data;
	}
	if (a->found.mask == VALUE_NONE)
		return true;
	state = tensor_find(e->weights, graph->values[a->found.mask].name);
	if (!state || state->dtype != DTYPE_F32 || shape_elements(&state->shape) != queries * keys)
		return false;
	a->causal = queries == keys && attention_mask_is_causal(state->data, queries, keys);
	return a->causal || state->shape.rank == 2;
}

static void fuse(struct exporter *e, const struct export_attention *found)
{
	const struct graph *graph = e->graph;
	struct export_attention *a = arena_alloc(&e->arena, sizeof(*a));

	*a = *found;
	e->attention[graph->values[a->found.output].producer] = a;
	if (a->turned)
		e->attention[a->turned - graph->nodes] = a;
	/* Scales above q and k pass their other operand on. */
	for (int i = 0; i < a->found.scale_count; i++) {
		const struct node *node = &graph->nodes[a->found.scales[i]];
		int other = 1 - attention_scale_operand(graph, a->found.scales[i]);

		e->alias[node->outputs[0]] = e->alias[node->inputs[other]];
	}
	e->form->fused++;
}

void export_find_attention(struct exporter *e)
{
	size_t nodes = (size_t)e->graph->forward_count;

	e->attention = arena_array(&e->arena, nodes, sizeof(*e->attention));
	for (int i = 0; i < e->graph->forward_count; i++) {
		struct export_attention a = {.turned = NULL};

		if (!graph_attention(e->graph, i, &a.found))
			continue;
		e->form->attentions++;
		if (e->form->fuse && find_order(e->graph, &a) && read_states(e, &a))
			fuse(e, &a);
	}
}

void export_mark_attention(struct exporter *e, const struct export_attention *a)
{
	for (int i = 0; i < 3; i++)
		e->needed[e->alias[a->from[i]]] = true;
	if (a->found.mask != VALUE_NONE && !a->causal)
		e->needed[a->found.mask] = true;
	e->opset = e->opset < ATTENTION_OPSET ? ATTENTION_OPSET : e->opset;
}

/* A Reshape of `input` to a constant shape. */
static void reshape(struct exporter *e, char *name, char *input, int rank, const int64_t *dims)
{
	const struct shape list = {.rank = 1, .dims = {rank}};
	char *constant = export_free_name(e, name, "shape");
	int64_t *copy = arena_array(&e->arena, (size_t)rank, sizeof(*copy));
	Onnx__NodeProto *out = export_node(e, name, "Reshape", 2, 1);

	memcpy(copy, dims, (size_t)rank * sizeof(*copy));
	export_initializer(e, constant, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &list, copy,
			   (size_t)rank * sizeof(*copy));
	out->input[0] = input;
	out->input[1] = constant;
	out->output[0] = name;
}

static void set_attributes(struct exporter *e, Onnx__NodeProto *out,
			   const struct export_attention *a)
{
	static const char *const names[] = {"is_causal", "q_num_heads", "kv_num_heads"};
	int64_t heads = e->graph->values[a->found.q].shape.dims[1];
	const int64_t numbers[] = {a->causal, heads, heads};
	size_t count = a->turned ? 3 : 1;
	Onnx__AttributeProto **attributes = export_attributes(e, out, 1 + count);

	attributes[0]->name = export_borrow("scale");
	attributes[0]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
	attributes[0]->has_f = true;
	attributes[0]->f = (float)a->scale;
	for (size_t i = 0; i < count; i++) {
		attributes[1 + i]->name = export_borrow(names[i]);
		attributes[1 + i]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
		attributes[1 + i]->has_i = true;
		attributes[1 + i]->i = numbers[i];
	}
}

/* An input, or the same with the features of all heads in one dimension. */
static char *operand(struct exporter *e, const struct export_attention *a, int i)
{
	static const char *const suffixes[] = {"query", "key", "value"};
	const int64_t *dims = e->graph->values[a->from[i]].shape.dims;
	const int64_t rows[] = {dims[0], dims[1], dims[2] * dims[3]};
	char *name = export_name(e, a->from[i]), *flat;

	if (!a->turned)
		return name;
	flat = export_free_name(e, e->graph->values[a->found.output].name, suffixes[i]);
	reshape(e, flat, name, 3, rows);
	return flat;
}

void export_attention_node(struct exporter *e, const struct export_attention *a)
{
	bool masked = a->found.mask != VALUE_NONE && !a->causal;
	char *name = export_name(e, a->found.output), *inputs[3];
	Onnx__NodeProto *out;

	for (int i = 0; i < 3; i++)
		inputs[i] = operand(e, a, i);
	out = export_node(e, name, "Attention", masked ? 4 : 3, 1);
	memcpy(out->input, inputs, sizeof(inputs));
	if (masked)
		out->input[3] = export_name(e, a->found.mask);
	out->output[0] = name;
	set_attributes(e, out, a);
	if (a->turned)
		reshape(e, export_name(e, a->turned->outputs[0]), name, 4,
			e->graph->values[a->turned->outputs[0]].shape.dims);
}
