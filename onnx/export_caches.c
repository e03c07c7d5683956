/* Key-value caches as inputs and outputs of a file. Where caches are only read, a product with a
 * cache and the step's new row becomes two: an engine that copies what it scatters into would copy
 * the whole cache in every step. */
#include <string.h>

#include "onnx/export_internal.h"

static bool is_cache_write(const struct node *node)
{
	return operator_row(node->op)->replaces_state;
}

static const int64_t swapped[] = {0, 1, 3, 2};

/* Whether the node swaps the last two of four dimensions. */
static bool turns(const struct node *node)
{
	const struct int_list *list = &node->attributes.ints;

	return node->op == OP_TRANSPOSE && list->count == 4 &&
	       memcmp(list->items, swapped, sizeof(swapped)) == 0;
}

/* The node that writes the cache that a value is, or is after a swap; NULL for other values. */
static const struct node *cache_of(const struct graph *graph, int value)
{
	int producer = value == VALUE_NONE ? -1 : graph->values[value].producer;

	if (producer >= 0 && turns(&graph->nodes[producer]))
		producer = graph->values[graph->nodes[producer].inputs[0]].producer;
	return producer >= 0 && is_cache_write(&graph->nodes[producer]) ? &graph->nodes[producer]
									: NULL;
}

const char *onnx_cache_refusal(const struct graph *graph, const struct node *scatter)
{
	const struct shape *past = &graph->values[scatter->inputs[0]].shape;
	bool one_row = past->rank == 4 && scatter->attributes.axis == 2 &&
		       scatter->input_count > 2 &&
		       graph->values[scatter->inputs[1]].shape.dims[2] == 1;

	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		for (int k = 0; k < node->input_count; k++) {
			if (cache_of(graph, node->inputs[k]) != scatter)
				continue;
			if (!one_row)
				return "a step that reads it writes other than one row of each "
				       "head";
			if (!(turns(node) && node->inputs[k] == scatter->outputs[0]) &&
			    !(node->op == OP_MATMUL && k == 1))
				return "a node other than a matrix product reads it";
		}
	}
	return NULL;
}

const struct node *export_cache_of(const struct exporter *e, const struct node *node)
{
	return e->form->caches == ONNX_CACHES_READ && node->op == OP_MATMUL
		       ? cache_of(e->graph, node->inputs[1])
		       : NULL;
}

enum prony_status export_mark_caches(struct exporter *e)
{
	const struct graph *graph = e->graph;

	for (int i = 0; i < graph->forward_count && e->form->caches != ONNX_CACHES_CONSTANT; i++) {
		const struct node *node = &graph->nodes[i];
		const char *refusal;

		if (!is_cache_write(node))
			continue;
		if (e->form->caches == ONNX_CACHES_READ) {
			refusal = onnx_cache_refusal(graph, node);
			if (refusal)
				return error_set(e->err, PRONY_UNSUPPORTED,
						 "network '%s': cache of node '%s': %s",
						 graph->name, node->name, refusal);
			e->alias[node->outputs[0]] = node->inputs[0];
		}
		e->needed[e->alias[onnx_cache_output(node, e->form->caches)]] = true;
	}
	return PRONY_OK;
}

int onnx_cache_output(const struct node *scatter, enum onnx_caches caches)
{
	return caches == ONNX_CACHES_READ ? scatter->inputs[1] : scatter->outputs[0];
}

static void set_axis(struct exporter *e, Onnx__NodeProto *node, int64_t axis)
{
	Onnx__AttributeProto *attribute = export_attributes(e, node, 1)[0];

	attribute->name = export_borrow("axis");
	attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
	attribute->has_i = true;
	attribute->i = axis;
}

/* A node with one output, "NODE.SUFFIX", which is returned. */
static char *step_node(struct exporter *e, const struct node *owner, const char *suffix,
		       const char *op, int input_count, char *const inputs[])
{
	char *name = export_free_name(e, owner->name, suffix);
	Onnx__NodeProto *node = export_node(e, name, op, input_count, 1);

	memcpy(node->input, inputs, (size_t)input_count * sizeof(*inputs));
	node->output[0] = name;
	return name;
}

static char *numbers(struct exporter *e, const struct node *owner, const char *suffix,
		     const int64_t *data, int64_t count)
{
	const struct shape shape = {.rank = 1, .dims = {count}};
	char *name = export_free_name(e, owner->name, suffix);
	int64_t *copy = arena_array(&e->arena, (size_t)count, sizeof(*copy));

	memcpy(copy, data, (size_t)count * sizeof(*copy));
	export_initializer(e, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &shape, copy,
			   (size_t)count * sizeof(*copy));
	return name;
}

/* The step's row of each sample, as the indices of the scores' column: samples x heads x queries
 * x 1. */
static char *row_index(struct exporter *e, const struct node *owner, const struct node *scatter,
		       const struct shape *queries)
{
	const int64_t one[] = {-1, 1, 1, 1};
	const int64_t all[] = {queries->dims[0], queries->dims[1], queries->dims[2], 1};
	char *inputs[2] = {export_name(e, scatter->inputs[2]), numbers(e, owner, "rank", one, 4)};

	inputs[0] = step_node(e, owner, "row", "Reshape", 2, inputs);
	inputs[1] = numbers(e, owner, "sizes", all, 4);
	return step_node(e, owner, "rows", "Expand", 2, inputs);
}

static Onnx__NodeProto *last_node(const struct exporter *e)
{
	return e->out->node[e->out->n_node - 1];
}

/* Scores with the cache, where the column of the step's row is replaced by that with the row. */
static void cached_scores(struct exporter *e, const struct node *matmul, const struct node *scatter)
{
	char *queries = export_name(e, matmul->inputs[0]),
	     *row = export_name(e, scatter->inputs[1]);
	char *past = step_node(e, matmul, "past", "MatMul", 2,
			       (char *[]){queries, export_name(e, matmul->inputs[1])});
	char *index = row_index(e, matmul, scatter, &e->graph->values[matmul->inputs[0]].shape);
	char *turned = step_node(e, matmul, "turned", "Transpose", 1, &row);
	Onnx__AttributeProto *perm = export_attributes(e, last_node(e), 1)[0];
	Onnx__NodeProto *out;

	perm->name = export_borrow("perm");
	perm->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
	perm->ints = (int64_t *)(uintptr_t)swapped;
	perm->n_ints = 4;
	row = step_node(e, matmul, "new", "MatMul", 2, (char *[]){queries, turned});
	out = export_node(e, matmul->name, "ScatterElements", 3, 1);
	set_axis(e, out, 3);
	out->input[0] = past;
	out->input[1] = index;
	out->input[2] = row;
	out->output[0] = export_name(e, matmul->outputs[0]);
}

/* The cache's rows by their weights, of which the step's row has none, and that row by its own. */
static void cached_mix(struct exporter *e, const struct node *matmul, const struct node *scatter)
{
	const struct shape *weights = &e->graph->values[matmul->inputs[0]].shape;
	struct shape column = *weights;
	char *given = export_name(e, matmul->inputs[0]), *zero, *past, *index, *row;
	Onnx__NodeProto *out;

	column.dims[3] = 1;
	zero = export_free_name(e, matmul->name, "zero");
	export_initializer(e, zero, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &column,
			   arena_array(&e->arena, (size_t)shape_elements(&column), sizeof(float)),
			   (size_t)shape_elements(&column) * sizeof(float));
	index = row_index(e, matmul, scatter, weights);
	past = step_node(e, matmul, "without", "ScatterElements", 3,
			 (char *[]){given, index, zero});
	set_axis(e, last_node(e), 3);
	past = step_node(e, matmul, "past", "MatMul", 2,
			 (char *[]){past, export_name(e, matmul->inputs[1])});
	row = step_node(e, matmul, "weight", "GatherElements", 2, (char *[]){given, index});
	set_axis(e, last_node(e), 3);
	row = step_node(e, matmul, "new", "MatMul", 2,
			(char *[]){row, export_name(e, scatter->inputs[1])});
	out = export_node(e, matmul->name, "Add", 2, 1);
	out->input[0] = past;
	out->input[1] = row;
	out->output[0] = export_name(e, matmul->outputs[0]);
}

void export_cached_product(struct exporter *e, const struct node *matmul,
			   const struct node *scatter)
{
	if (matmul->inputs[1] == scatter->outputs[0])
		cached_mix(e, matmul, scatter);
	else
		cached_scores(e, matmul, scatter);
}
