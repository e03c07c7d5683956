/* Writes a graph as JSON, and reads it with all checks. */
#include "graph/graph_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "graph/edit_internal.h"
#include "graph/node_internal.h"

#define GRAPH_SCHEMA 1

/* Gradients have no word, because they are never written. */
static const char *const kind_words[] = {
	[VALUE_INPUT] = "input", [VALUE_LABEL] = "label",	    [VALUE_PARAMETER] = "parameter",
	[VALUE_STATE] = "state", [VALUE_ACTIVATION] = "activation",
};

static json_t *ints_to_json(const int64_t *ints, int count)
{
	json_t *array = json_array();

	for (int i = 0; i < count; i++)
		json_array_append_new(array, json_integer(ints[i]));
	return array;
}

static json_t *attribute_to_json(const struct attribute_row *row, const struct attributes *values)
{
	const void *member = (const char *)values + row->offset;
	const struct int_list *list = member;

	switch (row->kind) {
	case ATTRIBUTE_INT:
		return json_integer(*(const int64_t *)member);
	case ATTRIBUTE_REAL:
		return json_real(*(const double *)member);
	case ATTRIBUTE_WORD:
		return json_string(row->words[*(const int64_t *)member]);
	case ATTRIBUTE_BOOL:
		return json_boolean(*(const bool *)member);
	case ATTRIBUTE_INTS2:
		return ints_to_json(member, 2);
	case ATTRIBUTE_INTS4:
		return ints_to_json(member, 4);
	case ATTRIBUTE_INTS:
		return ints_to_json(list->items, list->count);
	}
	return NULL;
}

static json_t *value_name(const struct graph *graph, int index)
{
	return index == VALUE_NONE ? json_null() : json_string(graph->values[index].name);
}

static json_t *value_to_json(const struct value *value)
{
	json_t *shape = json_array();

	for (int i = 0; i < value->shape.rank; i++)
		json_array_append_new(shape, json_integer(value->shape.dims[i]));
	return json_pack("{s:s, s:s, s:s, s:o}", "name", value->name, "kind",
			 kind_words[value->kind], "dtype", dtype_name(value->dtype), "shape",
			 shape);
}

static json_t *node_to_json(const struct graph *graph, const struct node *node)
{
	const struct operator_row *op = operator_row(node->op);
	json_t *inputs = json_array(), *outputs = json_array(), *attributes = json_object();

	for (int i = 0; i < node->input_count; i++)
		json_array_append_new(inputs, value_name(graph, node->inputs[i]));
	for (int i = 0; i < node->output_count; i++)
		json_array_append_new(outputs, value_name(graph, node->outputs[i]));
	for (const struct attribute_row *row = op->attributes; row->name != NULL; row++)
		json_object_set_new(attributes, row->name,
				    attribute_to_json(row, &node->attributes));
	return json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", node->name, "op",
			 operator_name(node->op), "inputs", inputs, "outputs", outputs,
			 "attributes", attributes);
}

static json_t *names_of(const struct graph *graph, enum value_kind kind)
{
	json_t *names = json_array();

	for (int i = 0; i < graph->value_count; i++) {
		if (graph->values[i].kind == kind)
			json_array_append_new(names, json_string(graph->values[i].name));
	}
	return names;
}

/* The name for "input" or "label", which readers of graphs with one input and one label use; null
 * unless there is exactly one. */
static json_t *only_name(const struct graph *graph, enum value_kind kind)
{
	json_t *names = names_of(graph, kind);
	json_t *only =
		json_array_size(names) == 1 ? json_incref(json_array_get(names, 0)) : json_null();

	json_decref(names);
	return only;
}

json_t *graph_to_json(const struct graph *graph)
{
	json_t *values = json_array(), *nodes = json_array();

	for (int i = 0; i < graph->value_count; i++) {
		if (graph->values[i].kind != VALUE_GRADIENT)
			json_array_append_new(values, value_to_json(&graph->values[i]));
	}
	for (int i = 0; i < graph->forward_count; i++)
		json_array_append_new(nodes, node_to_json(graph, &graph->nodes[i]));
	return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", graph->name,
			 "schema", GRAPH_SCHEMA, "inputs", names_of(graph, VALUE_INPUT), "labels",
			 names_of(graph, VALUE_LABEL), "input", only_name(graph, VALUE_INPUT),
			 "label", only_name(graph, VALUE_LABEL), "logits",
			 value_name(graph, graph->logits), "loss", value_name(graph, graph->loss),
			 "values", values, "nodes", nodes);
}

enum prony_status graph_digest(const struct graph *graph, char *hex, struct error *err)
{
	json_t *json = graph_to_json(graph);
	char *text;

	/* The values contain the same facts. Without these members, digests stay as they were
	 * before the members were added. */
	json_object_del(json, "inputs");
	json_object_del(json, "labels");
	text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(json);
	if (text == NULL)
		return error_set(err, PRONY_INTERNAL, "network '%s' cannot be written as JSON",
				 graph->name);
	digest_bytes(text, strlen(text), hex);
	free(text);
	return PRONY_OK;
}

/* State of the reader; `names` maps each value's name to its index. */
struct reader {
	struct graph *graph;
	json_t *names;
	struct error *err;
};

static enum prony_status bad(struct reader *r, const char *where, size_t i, const char *what)
{
	return error_set(r->err, PRONY_BAD_INPUT, "graph: %s[%zu]: %s", where, i, what);
}

static enum prony_status read_kind(struct reader *r, const char *word, size_t i,
				   enum value_kind *kind)
{
	for (size_t k = 0; k < sizeof(kind_words) / sizeof(kind_words[0]); k++) {
		if (strcmp(word, kind_words[k]) == 0) {
			*kind = (enum value_kind)k;
			return PRONY_OK;
		}
	}
	return bad(r, "values", i, "\"kind\" must be input, label, parameter, state or activation");
}

static enum prony_status read_shape(struct reader *r, const json_t *json, size_t i,
				    struct shape *shape)
{
	json_t *dims, *dim;
	size_t k;

	if (json_get_array(json, "shape", &dims, r->err) != PRONY_OK)
		return r->err->code;
	if (json_array_size(dims) > TENSOR_MAX_RANK)
		return bad(r, "values", i, "\"shape\" has more than 8 dimensions");
	*shape = (struct shape){.rank = (int)json_array_size(dims)};
	json_array_foreach(dims, k, dim)
	{
		if (!json_is_integer(dim))
			return bad(r, "values", i, "\"shape\" must hold integers");
		shape->dims[k] = json_integer_value(dim);
	}
	return PRONY_OK;
}

/* Whether it is a string without a NUL inside; jansson accepts a NUL, but C would end the string
 * there. */
static bool is_text(const json_t *json)
{
	return json_is_string(json) && strlen(json_string_value(json)) == json_string_length(json);
}

static enum prony_status read_value(struct reader *r, const json_t *json, size_t i)
{
	const char *name, *kind_word, *dtype_word;
	enum value_kind kind = VALUE_INPUT;
	enum dtype dtype;
	struct shape shape;
	int index;

	if (!json_is_object(json))
		return bad(r, "values", i, "must be an object");
	if (json_get_string(json, "name", &name, r->err) != PRONY_OK ||
	    json_get_string(json, "kind", &kind_word, r->err) != PRONY_OK ||
	    json_get_string(json, "dtype", &dtype_word, r->err) != PRONY_OK ||
	    read_kind(r, kind_word, i, &kind) != PRONY_OK ||
	    read_shape(r, json, i, &shape) != PRONY_OK)
		return r->err->code;
	if (dtype_parse(dtype_word, &dtype) != 0)
		return bad(r, "values", i, "\"dtype\" is not known");
	if (!is_text(json_object_get(json, "name")))
		return bad(r, "values", i, "\"name\" holds a zero byte");
	if (graph_check_name("value", name, r->err) != PRONY_OK ||
	    graph_check_shape(name, dtype, &shape, r->err) != PRONY_OK)
		return r->err->code;
	if (json_object_get(r->names, name) != NULL)
		return error_set(r->err, PRONY_BAD_INPUT, "graph: two values have the name '%s'",
				 name);
	index = graph_add_value(r->graph, name, kind, dtype, &shape);
	/* The initial fill is not in the file; graph_initial_weights refuses such a graph. */
	r->graph->values[index].fill = FILL_HE_NORMAL;
	if (json_object_set_new(r->names, name, json_integer(index)) != 0)
		return bad(r, "values", i, "\"name\" is not UTF-8");
	return PRONY_OK;
}

/* Reads the index of the value that `json` names; null gives VALUE_NONE. */
static enum prony_status read_reference(struct reader *r, const json_t *json, const char *where,
					int *index)
{
	const json_t *found;

	if (json == NULL || json_is_null(json)) {
		*index = VALUE_NONE;
		return PRONY_OK;
	}
	if (!is_text(json))
		return error_set(r->err, PRONY_BAD_INPUT,
				 "graph: %s must be the name of a value, or null", where);
	found = json_object_get(r->names, json_string_value(json));
	if (found == NULL)
		return error_set(r->err, PRONY_BAD_INPUT, "graph: %s: there is no value '%s'",
				 where, json_string_value(json));
	*index = (int)json_integer_value(found);
	return PRONY_OK;
}

static enum prony_status read_references(struct reader *r, const json_t *node, const char *key,
					 const char *name, int capacity, int *out, int *count)
{
	json_t *array, *item;
	size_t i;

	if (json_get_array(node, key, &array, r->err) != PRONY_OK)
		return r->err->code;
	if (json_array_size(array) > (size_t)capacity)
		return error_set(r->err, PRONY_BAD_INPUT, "graph: node '%s' has more than %d %s",
				 name, capacity, key);
	json_array_foreach(array, i, item)
	{
		if (read_reference(r, item, name, &out[i]) != PRONY_OK)
			return r->err->code;
	}
	*count = (int)json_array_size(array);
	return PRONY_OK;
}

static bool read_ints(const json_t *json, int count, int64_t *out)
{
	if (!json_is_array(json) || json_array_size(json) != (size_t)count)
		return false;
	for (int i = 0; i < count; i++) {
		const json_t *item = json_array_get(json, (size_t)i);

		if (!json_is_integer(item))
			return false;
		out[i] = json_integer_value(item);
	}
	return true;
}

/* Reads one attribute as its row says; false if the type is wrong. */
static bool read_attribute(const struct attribute_row *row, const json_t *json,
			   struct attributes *out)
{
	void *member = (char *)out + row->offset;
	struct int_list *list = member;

	switch (row->kind) {
	case ATTRIBUTE_INT:
		if (!json_is_integer(json))
			return false;
		*(int64_t *)member = json_integer_value(json);
		return true;
	case ATTRIBUTE_REAL:
		if (!json_is_number(json))
			return false;
		*(double *)member = json_number_value(json);
		return true;
	case ATTRIBUTE_BOOL:
		if (!json_is_boolean(json))
			return false;
		*(bool *)member = json_is_true(json);
		return true;
	case ATTRIBUTE_WORD:
		for (int64_t i = 0; is_text(json) && row->words[i] != NULL; i++) {
			if (strcmp(row->words[i], json_string_value(json)) != 0)
				continue;
			*(int64_t *)member = i;
			return true;
		}
		return false;
	case ATTRIBUTE_INTS2:
		return read_ints(json, 2, member);
	case ATTRIBUTE_INTS4:
		return read_ints(json, 4, member);
	case ATTRIBUTE_INTS:
		list->count = (int)json_array_size(json);
		return json_array_size(json) <= ATTRIBUTE_MAX_INTS &&
		       read_ints(json, list->count, list->items);
	}
	return false;
}

static enum prony_status read_attributes(struct reader *r, const json_t *json, struct node *node)
{
	static const char *const types[] = {
		[ATTRIBUTE_INT] = "an integer",
		[ATTRIBUTE_INTS2] = "two integers",
		[ATTRIBUTE_INTS4] = "four integers",
		[ATTRIBUTE_REAL] = "a number",
		[ATTRIBUTE_BOOL] = "true or false",
		[ATTRIBUTE_INTS] = "at most 16 integers",
		[ATTRIBUTE_WORD] = "a value that ONNX defines",
	};
	const json_t *attributes = json_object_get(json, "attributes");
	const char *key;
	json_t *item;

	operator_default_attributes(node->op, &node->attributes);
	if (attributes == NULL)
		return PRONY_OK;
	if (!json_is_object(attributes))
		return node_error(node, r->err, "\"attributes\" must be an object");
	json_object_foreach((json_t *)(uintptr_t)attributes, key, item)
	{
		const struct attribute_row *row = operator_row(node->op)->attributes;

		while (row->name != NULL && strcmp(row->name, key) != 0)
			row++;
		if (row->name == NULL)
			return node_error(node, r->err, "the operator has no attribute '%.64s'",
					  key);
		if (!read_attribute(row, item, &node->attributes))
			return node_error(node, r->err, "attribute '%s' must be %s", key,
					  types[row->kind]);
	}
	return PRONY_OK;
}

/* Checks the edges that infer relies on: inputs exist already, and outputs are activations that no
 * other node computes. */
static enum prony_status check_order(struct reader *r, const struct node *node)
{
	struct graph *graph = r->graph;

	for (int i = 0; i < node->input_count; i++) {
		const struct value *value;

		if (node->inputs[i] == VALUE_NONE)
			continue;
		value = &graph->values[node->inputs[i]];
		if (value->kind == VALUE_ACTIVATION && value->producer < 0)
			return node_error(
				node, r->err,
				"it uses '%s' before it is computed (a cycle, or nodes out "
				"of order)",
				value->name);
	}
	for (int i = 0; i < node->output_count; i++) {
		if (node->outputs[i] == VALUE_NONE)
			continue;
		if (graph->values[node->outputs[i]].kind != VALUE_ACTIVATION)
			return node_error(node, r->err, "output '%s' is not an activation",
					  graph->values[node->outputs[i]].name);
		for (int k = 0; k < i; k++) {
			if (node->outputs[k] == node->outputs[i])
				return node_error(node, r->err, "output '%s' is listed twice",
						  graph->values[node->outputs[i]].name);
		}
		if (graph->values[node->outputs[i]].producer >= 0)
			return node_error(node, r->err, "output '%s' is computed twice",
					  graph->values[node->outputs[i]].name);
	}
	return PRONY_OK;
}

static enum prony_status infer_and_compare(struct reader *r, struct node *node)
{
	struct shape declared[NODE_MAX_OUTPUTS];
	enum prony_status status;

	for (int i = 0; i < node->output_count; i++) {
		if (node->outputs[i] != VALUE_NONE)
			declared[i] = r->graph->values[node->outputs[i]].shape;
	}
	status = operator_row(node->op)->infer(r->graph, node, r->err);
	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < node->output_count; i++) {
		char declared_text[128], inferred_text[128];
		const struct value *value;

		if (node->outputs[i] == VALUE_NONE)
			continue;
		value = &r->graph->values[node->outputs[i]];
		if (shape_equal(&declared[i], &value->shape))
			continue;
		shape_text(&declared[i], declared_text, sizeof(declared_text));
		shape_text(&value->shape, inferred_text, sizeof(inferred_text));
		return node_error(node, r->err,
				  "output '%s' is declared as %s, but the operator computes %s",
				  value->name, declared_text, inferred_text);
	}
	return PRONY_OK;
}

static enum prony_status read_node(struct reader *r, const json_t *json, size_t i)
{
	struct node node = {.differentiates = -1};
	const char *op;

	if (!json_is_object(json))
		return bad(r, "nodes", i, "must be an object");
	if (json_get_string(json, "name", &node.name, r->err) != PRONY_OK ||
	    json_get_string(json, "op", &op, r->err) != PRONY_OK)
		return r->err->code;
	if (!is_text(json_object_get(json, "name")))
		return bad(r, "nodes", i, "\"name\" holds a zero byte");
	if (graph_check_name("node", node.name, r->err) != PRONY_OK)
		return r->err->code;
	node.op = operator_from_name(op);
	if (node.op == OP_COUNT || operator_row(node.op)->is_gradient)
		return error_set(r->err, PRONY_BAD_INPUT,
				 "graph: node '%s': unknown operator '%.64s'", node.name, op);
	if (read_references(r, json, "inputs", node.name, NODE_MAX_INPUTS, node.inputs,
			    &node.input_count) != PRONY_OK ||
	    read_references(r, json, "outputs", node.name, NODE_MAX_OUTPUTS, node.outputs,
			    &node.output_count) != PRONY_OK ||
	    read_attributes(r, json, &node) != PRONY_OK ||
	    graph_check_row(&node, r->err) != PRONY_OK || check_order(r, &node) != PRONY_OK ||
	    infer_and_compare(r, &node) != PRONY_OK)
		return r->err->code;
	graph_add_node(r->graph, &node);
	return PRONY_OK;
}

static enum prony_status read_lists(struct reader *r, const json_t *json)
{
	json_t *values, *nodes, *item;
	size_t i;

	if (json_get_array(json, "values", &values, r->err) != PRONY_OK ||
	    json_get_array(json, "nodes", &nodes, r->err) != PRONY_OK)
		return r->err->code;
	if (json_array_size(values) > GRAPH_MAX_VALUES || json_array_size(nodes) > GRAPH_MAX_NODES)
		return error_set(r->err, PRONY_BAD_INPUT,
				 "graph: it has more than %d values or %d nodes", GRAPH_MAX_VALUES,
				 GRAPH_MAX_NODES);
	json_array_foreach(values, i, item)
	{
		if (read_value(r, item, i) != PRONY_OK)
			return r->err->code;
	}
	json_array_foreach(nodes, i, item)
	{
		if (read_node(r, item, i) != PRONY_OK)
			return r->err->code;
	}
	r->graph->forward_count = r->graph->node_count;
	return PRONY_OK;
}

/* The kinds of the values already tell the inputs and labels. "inputs" and "labels" must name the
 * same values in the same order. So must "input" and "label" if there is one of each, and in graphs
 * written before the lists existed. */
static enum prony_status check_names_of(struct reader *r, const json_t *json, const char *list,
					const char *single, enum value_kind kind)
{
	const json_t *named = json_object_get(json, list);
	const json_t *only = json_object_get(json, single);
	json_t *names = names_of(r->graph, kind);
	bool agrees = named == NULL || json_equal(named, names);

	if (only != NULL && !json_is_null(only))
		agrees = agrees && json_array_size(names) == 1 &&
			 json_equal(only, json_array_get(names, 0));
	else if (named == NULL)
		agrees = json_array_size(names) == 0;
	json_decref(names);
	if (agrees)
		return PRONY_OK;
	return error_set(
		r->err, PRONY_BAD_INPUT,
		"graph: \"%s\" must list the values of kind \"%s\" in the order of \"values\"",
		list, single);
}

static enum prony_status read_graph(struct reader *r, const json_t *json)
{
	struct graph *graph = r->graph;

	if (read_lists(r, json) != PRONY_OK ||
	    check_names_of(r, json, "inputs", "input", VALUE_INPUT) != PRONY_OK ||
	    check_names_of(r, json, "labels", "label", VALUE_LABEL) != PRONY_OK ||
	    read_reference(r, json_object_get(json, "logits"), "\"logits\"", &graph->logits) ||
	    read_reference(r, json_object_get(json, "loss"), "\"loss\"", &graph->loss))
		return r->err->code;
	return graph_check(graph, r->err);
}

enum prony_status graph_from_json(const json_t *json, struct graph *out, struct error *err)
{
	struct error local = ERROR_INIT;
	struct graph graph;
	struct reader reader = {.graph = &graph, .err = &local};
	const char *name;
	int64_t schema;

	if (!json_is_object(json))
		return error_set(err, PRONY_BAD_INPUT, "graph: it must be an object");
	if (json_get_string(json, "name", &name, &local) != PRONY_OK ||
	    json_get_int(json, "schema", &schema, &local) != PRONY_OK ||
	    graph_check_name("graph", name, &local) != PRONY_OK)
		return error_set(err, local.code, "graph: %s", local.text);
	if (schema != GRAPH_SCHEMA)
		return error_set(err, PRONY_BAD_INPUT,
				 "graph: unknown schema %lld; this prony reads schema %d",
				 (long long)schema, GRAPH_SCHEMA);
	graph_init(&graph, name);
	reader.names = json_object();
	read_graph(&reader, json);
	json_decref(reader.names);
	if (local.code != PRONY_OK) {
		graph_release(&graph);
		return error_set(err, local.code, "%s", local.text);
	}
	*out = graph;
	return PRONY_OK;
}
