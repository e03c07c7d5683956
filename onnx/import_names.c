/* Resolves the names of an ONNX file: finds which node computes what, and broken connections. */
#include "onnx/import_internal.h"

#include <stdlib.h>
#include <string.h>

bool onnx_is_own_domain(const char *domain)
{
	return domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

bool onnx_is_foreign(const Onnx__NodeProto *proto)
{
	return !onnx_is_own_domain(proto->domain);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct definition *)a)->name, ((const struct definition *)b)->name);
}

static int compare_definitions(const void *a, const void *b)
{
	const struct definition *x = a, *y = b;
	int order = compare_names(a, b);

	return order != 0 ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

static const struct definition *find(const struct onnx_model *model, const char *name)
{
	struct definition key = {.name = name};

	if (model->definition_count == 0)
		return NULL;
	return bsearch(&key, model->definitions, (size_t)model->definition_count, sizeof(key),
		       compare_names);
}

static int index_of(const struct onnx_model *model, const struct definition *definition)
{
	return (int)(definition - model->definitions);
}

static enum prony_status name_nodes(struct onnx_model *model, struct error *err)
{
	const Onnx__GraphProto *graph = model->graph;

	if (graph->n_node > ONNX_MAX_NODES)
		return error_set(err, PRONY_BAD_INPUT, "it has %zu nodes; at most %d are supported",
				 graph->n_node, ONNX_MAX_NODES);
	model->node_count = graph->n_node;
	model->nodes = arena_array(&model->arena, graph->n_node + 1, sizeof(*model->nodes));
	for (size_t i = 0; i < graph->n_node; i++) {
		const Onnx__NodeProto *proto = graph->node[i];
		struct file_node *node = &model->nodes[i];

		if (proto->op_type == NULL || proto->op_type[0] == '\0')
			return error_set(err, PRONY_BAD_INPUT, "node %zu ('%.80s') has no operator",
					 i, proto->name ? proto->name : "");
		if (proto->n_input > ONNX_MAX_ARITY || proto->n_output > ONNX_MAX_ARITY)
			return error_set(err, PRONY_BAD_INPUT,
					 "node %zu ('%.80s') has more than %d inputs or outputs", i,
					 proto->name ? proto->name : "", ONNX_MAX_ARITY);
		node->proto = proto;
		node->name = proto->name && proto->name[0]
				     ? proto->name
				     : arena_printf(&model->arena, "%.80s.%zu", proto->op_type, i);
		node->input_count = proto->n_input;
		node->output_count = proto->n_output;
		node->inputs = arena_array(&model->arena, proto->n_input + 1, sizeof(int));
		node->outputs = arena_array(&model->arena, proto->n_output + 1, sizeof(int));
	}
	return PRONY_OK;
}

static void define(struct onnx_model *model, const char *name, enum definition_kind kind,
		   size_t index)
{
	model->definitions[model->definition_count++] =
		(struct definition){.name = name, .kind = kind, .index = (int)index};
}

/* An initializer that is also listed as an input is a default value; it is never replaced here. */
static enum prony_status sort_definitions(struct onnx_model *model, struct error *err)
{
	struct definition *all = model->definitions;
	int kept = 0;

	qsort(all, (size_t)model->definition_count, sizeof(*all), compare_definitions);
	for (int i = 0; i < model->definition_count; i++) {
		bool again = kept > 0 && strcmp(all[kept - 1].name, all[i].name) == 0;

		if (!again) {
			all[kept++] = all[i];
			continue;
		}
		if (all[kept - 1].kind != DEFINED_BY_INITIALIZER || all[i].kind != DEFINED_BY_INPUT)
			return error_set(
				err, PRONY_BAD_INPUT,
				"two inputs, initializers or node outputs have the name '%.200s'",
				all[i].name);
	}
	model->definition_count = kept;
	return PRONY_OK;
}

static enum prony_status collect(struct onnx_model *model, struct error *err)
{
	const Onnx__GraphProto *graph = model->graph;
	size_t room = graph->n_input + graph->n_initializer;

	for (size_t i = 0; i < graph->n_node; i++)
		room += graph->node[i]->n_output;
	if (room > ONNX_MAX_NAMES)
		return error_set(err, PRONY_BAD_INPUT, "it has more than %d names", ONNX_MAX_NAMES);
	model->definitions = arena_array(&model->arena, room + 1, sizeof(*model->definitions));
	for (size_t i = 0; i < graph->n_initializer; i++) {
		if (graph->initializer[i]->name == NULL)
			return error_set(err, PRONY_BAD_INPUT, "initializer %zu has no name", i);
		define(model, graph->initializer[i]->name, DEFINED_BY_INITIALIZER, i);
	}
	for (size_t i = 0; i < graph->n_input; i++) {
		const char *name = graph->input[i]->name;

		if (name == NULL || name[0] == '\0')
			return error_set(err, PRONY_BAD_INPUT, "input %zu has no name", i);
		define(model, name, DEFINED_BY_INPUT, i);
	}
	for (size_t i = 0; i < graph->n_node; i++) {
		for (size_t k = 0; k < graph->node[i]->n_output; k++) {
			const char *name = graph->node[i]->output[k];

			if (name[0] != '\0')
				define(model, name, DEFINED_BY_NODE, i);
		}
	}
	return sort_definitions(model, err);
}

/* ONNX sorts nodes: a node reads only values that are defined before it. Otherwise there is a cycle
 * or the file is invalid. */
static enum prony_status connect(struct onnx_model *model, size_t at, struct error *err)
{
	struct file_node *node = &model->nodes[at];

	for (size_t i = 0; i < node->input_count; i++) {
		const char *name = node->proto->input[i];
		const struct definition *from = name[0] ? find(model, name) : NULL;

		node->inputs[i] = NAME_OMITTED;
		if (name[0] == '\0')
			continue;
		if (from == NULL)
			return error_set(
				err, PRONY_BAD_INPUT,
				"node '%.200s' (%.80s) uses '%.200s', which no node computes",
				node->name, node->proto->op_type, name);
		if (from->kind == DEFINED_BY_NODE && (size_t)from->index >= at)
			return error_set(
				err, PRONY_BAD_INPUT,
				"node '%.200s' (%.80s) uses '%.200s', which the later node "
				"'%.200s' computes: the nodes form a cycle or are out of order",
				node->name, node->proto->op_type, name,
				model->nodes[from->index].name);
		node->inputs[i] = index_of(model, from);
	}
	for (size_t i = 0; i < node->output_count; i++) {
		const char *name = node->proto->output[i];

		node->outputs[i] = name[0] ? index_of(model, find(model, name)) : NAME_OMITTED;
	}
	return PRONY_OK;
}

/* Whether it holds a graph of its own (If, Loop, Scan), which is not read. */
static bool has_graph(const struct file_node *node)
{
	for (size_t i = 0; i < node->proto->n_attribute; i++) {
		Onnx__AttributeProto__AttributeType type = node->proto->attribute[i]->type;

		if (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH ||
		    type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS)
			return true;
	}
	return false;
}

/* Marks the nodes that the output needs, from the last to the first, and counts the users of each
 * name. A node with a graph of its own is refused later. Its graph may read anything before it, so
 * all earlier nodes are needed, and are refused together with it. */
static void mark_needed(struct onnx_model *model)
{
	bool all = false;

	model->definitions[model->output].users++;
	for (size_t i = model->node_count; i-- > 0;) {
		struct file_node *node = &model->nodes[i];

		node->needed = all;
		for (size_t k = 0; k < node->output_count; k++) {
			if (node->outputs[k] != NAME_OMITTED &&
			    model->definitions[node->outputs[k]].users > 0)
				node->needed = true;
		}
		all = all || (node->needed && has_graph(node));
		for (size_t k = 0; node->needed && k < node->input_count; k++) {
			if (node->inputs[k] != NAME_OMITTED)
				model->definitions[node->inputs[k]].users++;
		}
	}
}

/* The definition that Identity nodes pass on to the output: a Softmax before them counts as the
 * last node.
 */
static int behind_identities(const struct onnx_model *model, int output)
{
	while (model->definitions[output].kind == DEFINED_BY_NODE) {
		const struct file_node *node = &model->nodes[model->definitions[output].index];

		if (strcmp(node->proto->op_type, "Identity") != 0 || onnx_is_foreign(node->proto) ||
		    node->input_count != 1 || node->inputs[0] == NAME_OMITTED)
			break;
		output = node->inputs[0];
	}
	return output;
}

/* Finds the inputs that the output depends on. */
static enum prony_status find_inputs(struct onnx_model *model, struct error *err)
{
	int *count = &model->facts.input_count;

	for (int i = 0; i < model->definition_count; i++) {
		const struct definition *definition = &model->definitions[i];

		if (definition->kind != DEFINED_BY_INPUT || definition->users == 0)
			continue;
		if (model->input_total++ < ONNX_MAX_INPUTS)
			model->inputs[(*count)++] = i;
	}
	if (*count == 0)
		return error_set(err, PRONY_BAD_INPUT, "its output does not depend on any input");
	return PRONY_OK;
}

enum prony_status onnx_resolve_names(struct onnx_model *model, struct error *err)
{
	const struct definition *output;
	const char *name;
	enum prony_status status = name_nodes(model, err);

	if (model->graph->n_sparse_initializer > 0)
		return error_set(
			err, PRONY_UNSUPPORTED,
			"sparse initializers are not supported; store them as dense tensors");
	if (status == PRONY_OK)
		status = collect(model, err);
	for (size_t i = 0; status == PRONY_OK && i < model->node_count; i++)
		status = connect(model, i, err);
	if (status != PRONY_OK)
		return status;
	if (model->graph->n_output == 0 || model->graph->output[0]->name == NULL)
		return error_set(err, PRONY_BAD_INPUT, "it has no output");
	name = model->graph->output[0]->name;
	output = find(model, name);
	if (output == NULL)
		return error_set(err, PRONY_BAD_INPUT, "no node computes its output '%.200s'",
				 name);
	model->output = behind_identities(model, index_of(model, output));
	mark_needed(model);
	return find_inputs(model, err);
}
