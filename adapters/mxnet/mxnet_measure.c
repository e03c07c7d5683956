/* Compares the shapes that MXNet infers with the graph's, and counts operations and fused nodes. */
#include "adapters/mxnet/mxnet_symbol.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"

#define FUSED_MAX 16

/* Every output and variable of a symbol with the shape that MXNet infers. */
struct inferred {
	struct mx_symbol *internals;
	uint32_t count;
	const char **names; /* "conv1_output", "conv1.weight" */
	const int *ranks;   /* MXNet's memory, valid until the next inference */
	const int **dims;
};

/* The index of the output `name` + `suffix`; -1 when there is none. */
static int find_output(const struct inferred *inferred, const char *name, const char *suffix)
{
	size_t length = strlen(name);

	for (uint32_t i = 0; i < inferred->count; i++) {
		if (strncmp(inferred->names[i], name, length) == 0 &&
		    strcmp(inferred->names[i] + length, suffix) == 0)
			return (int)i;
	}
	return -1;
}

static enum prony_status list_names(const struct mx_api *api, struct mx_symbol *symbol,
				    struct arena *arena, struct inferred *out, struct error *err)
{
	const char **names = NULL;
	enum prony_status status;

	status = mx_check(api, api->MXSymbolGetInternals(symbol, &out->internals), "list nodes",
			  err);
	if (status == PRONY_OK)
		status =
			mx_check(api, api->MXSymbolListOutputs(out->internals, &out->count, &names),
				 "list outputs", err);
	if (status != PRONY_OK)
		return status;
	out->names = arena_array(arena, out->count, sizeof(out->names[0]));
	for (uint32_t i = 0; i < out->count; i++)
		out->names[i] = arena_strdup(arena, names[i]);
	return PRONY_OK;
}

/* Names and shapes of the arguments that are values of the network, in MXNet's format: the dims are
 * concatenated. MXNet infers the other arguments of recurrent layers. */
struct known {
	uint32_t count;
	const char **names;
	uint32_t *starts;
	int *dims;
};

static enum prony_status list_known(const struct mx_api *api, const struct graph *graph,
				    struct mx_symbol *symbol, struct arena *arena,
				    struct known *known, struct error *err)
{
	const char **names = NULL;
	uint32_t count = 0, used = 0;
	enum prony_status status = mx_check(api, api->MXSymbolListArguments(symbol, &count, &names),
					    "list arguments", err);

	if (status != PRONY_OK)
		return status;
	known->names = arena_array(arena, count, sizeof(known->names[0]));
	known->starts = arena_array(arena, (size_t)count + 1, sizeof(known->starts[0]));
	known->dims = arena_array(arena, (size_t)count * TENSOR_MAX_RANK, sizeof(known->dims[0]));
	for (uint32_t i = 0; i < count; i++) {
		int value = graph_find_value(graph, names[i]);

		if (value == VALUE_NONE)
			continue;
		const struct shape *shape = &graph->values[value].shape;
		known->names[known->count] = graph->values[value].name;
		for (int d = 0; d < shape->rank; d++)
			known->dims[used++] = (int)shape->dims[d];
		if (shape->rank == 0)
			known->dims[used++] = 1; /* see mx_array_new */
		known->starts[++known->count] = used;
	}
	return PRONY_OK;
}

static enum prony_status infer(const struct mx_api *api, const struct graph *graph,
			       struct arena *arena, struct inferred *out, struct error *err)
{
	struct known known = {0};
	uint32_t in_count, out_count, aux_count;
	const int *in_ranks, *aux_ranks, **in_dims, **aux_dims;
	int complete = 0;
	enum prony_status status = list_known(api, graph, out->internals, arena, &known, err);

	if (status == PRONY_OK)
		status = mx_check(
			api,
			api->MXSymbolInferShapeEx(out->internals, known.count, known.names,
						  known.starts, known.dims, &in_count, &in_ranks,
						  &in_dims, &out_count, &out->ranks, &out->dims,
						  &aux_count, &aux_ranks, &aux_dims, &complete),
			"infer shapes", err);
	if (status == PRONY_OK && (!complete || out_count != out->count))
		status = error_set(err, PRONY_INVALID, "MXNet cannot infer all shapes of %s",
				   graph->name);
	return status;
}

/* Padding, ceil mode and strides have the same meaning in both only if the shapes agree. */
static enum prony_status compare_shapes(const struct graph *graph, const struct inferred *inferred,
					struct error *err)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		const struct shape *want = &graph->values[node->outputs[0]].shape;
		int found = find_output(inferred, node->name, "_output");
		struct shape have = {0};
		char have_text[96], want_text[96];

		/* The loss and omitted dropout have no output of this name and shape. */
		if (found < 0 || operator_row(node->op)->is_loss)
			continue;
		have.rank = inferred->ranks[found] <= TENSOR_MAX_RANK ? inferred->ranks[found] : 0;
		for (int d = 0; d < have.rank; d++)
			have.dims[d] = inferred->dims[found][d];
		if (shape_equal(&have, want))
			continue;
		shape_text(&have, have_text, sizeof(have_text));
		shape_text(want, want_text, sizeof(want_text));
		return error_set(err, PRONY_MISMATCH,
				 "%s has the shape %s in MXNet, but %s in the network", node->name,
				 have_text, want_text);
	}
	return PRONY_OK;
}

/* The product of the dimensions from `first` on of the output or variable `name` + `suffix`; -1
 * when there is none. */
static int64_t inferred_elements(const struct inferred *inferred, const char *name,
				 const char *suffix, int first)
{
	int found = find_output(inferred, name, suffix);
	int64_t elements = 1;

	if (found < 0)
		return -1;
	for (int d = first; d < inferred->ranks[found]; d++)
		elements *= inferred->dims[found][d];
	return elements;
}

/* Each time step of each sample uses all weights of a recurrent layer except its two biases. */
static int64_t layer_macs(const json_t *node, const char *weights, const struct inferred *inferred)
{
	const json_t *options = json_object_get(node, "attrs");
	int64_t hidden = strtoll(json_string_or(options, "state_size", "0"), NULL, 10);
	const char *mode = json_string_or(options, "mode", "");
	int64_t gates = strcmp(mode, "lstm") == 0 ? 4 : strcmp(mode, "gru") == 0 ? 3 : 1;
	/* time x batch x hidden */
	int64_t outputs =
		inferred_elements(inferred, json_string_or(node, "name", ""), "_output", 0);
	int64_t packed = inferred_elements(inferred, weights, "", 0);

	if (packed < 0)
		packed = inferred_elements(inferred, weights, "_output", 0);
	if (outputs < 0 || packed < 0 || hidden < 1)
		return -1;
	return outputs / hidden * (packed - 2 * hidden * gates);
}

/* MACs of a product y = a b, transposed or not: b has inner x columns elements from dimension
 * `first` on. */
static int64_t product_macs(const json_t *node, const char *b, int first,
			    const struct inferred *inferred)
{
	int y = find_output(inferred, json_string_or(node, "name", ""), "_output");
	int64_t elements =
		inferred_elements(inferred, json_string_or(node, "name", ""), "_output", 0);
	/* A variable or the output of another node. */
	int64_t factor = inferred_elements(inferred, b, "", first);

	if (factor < 0)
		factor = inferred_elements(inferred, b, "_output", first);
	if (y < 0 || factor < 0 || inferred->ranks[y] < 1 || elements < 1)
		return -1;
	return elements * (factor / inferred->dims[y][inferred->ranks[y] - 1]);
}

/* Each input element of a transposed convolution uses one row of the weight. */
static int64_t transposed_macs(const json_t *nodes, const json_t *node, int64_t row,
			       const struct inferred *inferred)
{
	const json_t *entry = json_array_get(json_array_get(json_object_get(node, "inputs"), 0), 0);
	const json_t *input = json_array_get(nodes, (size_t)json_integer_value(entry));
	const char *name = json_string_or(input, "name", "");
	int64_t x = inferred_elements(inferred, name, "", 0);

	if (x < 0)
		x = inferred_elements(inferred, name, "_output", 0);
	return x < 0 || row < 0 ? -1 : x * row;
}

/* Each output element of a convolution or matrix product uses one row of the weight. */
static int64_t node_macs(const json_t *nodes, const json_t *node, const struct inferred *inferred)
{
	const char *op = json_string_or(node, "op", "");
	const json_t *inputs = json_object_get(node, "inputs");
	const json_t *weight_entry = json_array_get(json_array_get(inputs, 1), 0);
	bool layer = strcmp(op, "RNN") == 0, batched = strcmp(op, "batch_dot") == 0;
	bool product = strcmp(op, "dot") == 0;

	if (!layer && !product && !batched && strcmp(op, "Convolution") != 0 &&
	    strcmp(op, "FullyConnected") != 0 && strcmp(op, "Deconvolution") != 0)
		return 0;
	const json_t *weight = json_array_get(nodes, (size_t)json_integer_value(weight_entry));
	const char *weights = json_string_or(weight, "name", "");
	if (layer)
		return layer_macs(node, weights, inferred);
	if (product || batched)
		return product_macs(node, weights, batched ? 1 : 0, inferred);
	int64_t y = inferred_elements(inferred, json_string_or(node, "name", ""), "_output", 0);
	int64_t row = inferred_elements(inferred, weights, "", 1);
	if (strcmp(op, "Deconvolution") == 0)
		return transposed_macs(nodes, node, row, inferred);
	return y < 0 || row < 0 ? -1 : y * row;
}

static int64_t count_macs(const json_t *document, const struct inferred *inferred)
{
	const json_t *nodes = json_object_get(document, "nodes");
	int64_t total = 0;

	for (size_t i = 0; i < json_array_size(nodes); i++) {
		int64_t macs = node_macs(nodes, json_array_get(nodes, i), inferred);

		if (macs < 0)
			return -1;
		total += macs;
	}
	return total;
}

static enum prony_status symbol_json(const struct mx_api *api, struct mx_symbol *symbol,
				     json_t **out, struct error *err)
{
	const char *text = NULL;
	enum prony_status status =
		mx_check(api, api->MXSymbolSaveToJSON(symbol, &text), "save the symbol", err);

	if (status != PRONY_OK)
		return status;
	return json_parse(text, strlen(text), "MXNet's symbol", out, err);
}

enum prony_status mx_symbol_measure(const struct mx_api *api, const struct graph *graph,
				    struct mx_symbol *symbol, int64_t *macs, struct error *err)
{
	struct inferred inferred = {0};
	struct arena arena;
	json_t *document = NULL;
	enum prony_status status;

	arena_init(&arena, 0);
	status = list_names(api, symbol, &arena, &inferred, err);
	if (status == PRONY_OK)
		status = symbol_json(api, symbol, &document, err);
	if (status == PRONY_OK)
		status = infer(api, graph, &arena, &inferred, err);
	if (status == PRONY_OK)
		status = compare_shapes(graph, &inferred, err);
	if (status == PRONY_OK)
		*macs = count_macs(document, &inferred);
	json_decref(document);
	if (inferred.internals)
		api->MXSymbolFree(inferred.internals);
	arena_release(&arena);
	return status;
}

/* Counts the operators whose names show that a subgraph became one node. */
static void write_fused(const json_t *document, char *out, size_t out_bytes)
{
	const json_t *nodes = json_object_get(document, "nodes");
	const char *names[FUSED_MAX];
	int counts[FUSED_MAX] = {0}, kinds = 0;
	size_t used = 0;

	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const char *op = json_string_or(json_array_get(nodes, i), "op", "");
		int kind = 0;

		if (strncmp(op, "_sg_", 4) != 0)
			continue;
		while (kind < kinds && strcmp(names[kind], op) != 0)
			kind++;
		if (kind == FUSED_MAX)
			continue;
		if (kind == kinds)
			names[kinds++] = op;
		counts[kind]++;
	}
	snprintf(out, out_bytes, "none");
	for (int kind = 0; kind < kinds && used < out_bytes; kind++) {
		int length = snprintf(out + used, out_bytes - used, "%s%d %s", kind > 0 ? ", " : "",
				      counts[kind], names[kind]);
		used += length > 0 ? (size_t)length : 0;
	}
}

enum prony_status mx_executor_symbol(const struct mx_api *api, struct mx_executor *executor,
				     json_t **out, struct error *err)
{
	struct mx_symbol *symbol = NULL;
	enum prony_status status =
		mx_check(api, api->MXExecutorGetOptimizedSymbol(executor, &symbol),
			 "get the optimised symbol", err);

	if (status == PRONY_OK)
		status = symbol_json(api, symbol, out, err);
	if (symbol)
		api->MXSymbolFree(symbol);
	return status;
}

enum prony_status mx_fused_nodes(const struct mx_api *api, struct mx_executor *executor, char *out,
				 size_t out_bytes, struct error *err)
{
	json_t *document = NULL;
	enum prony_status status = mx_executor_symbol(api, executor, &document, err);

	if (status == PRONY_OK)
		write_fused(document, out, out_bytes);
	json_decref(document);
	return status;
}
