/* `prony network`: shows the layers and cost of a network; writes its ONNX file or picture. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "draw/picture.h"
#include "frameworks/registry.h"
#include "onnx/about.h"
#include "onnx/onnx.h"
#include "plan/own_model.h"
#include "report/text.h"
#include "zoo/source.h"

struct network_options {
	const char *format, *onnx, *draw;
	struct option_list shapes;
	long long batch, seed, sequence;
} network_options = {.format = "table", .batch = 1, .seed = 1};

const struct option network_option_rows[] = {
	{.letter = 'b',
	 INT_OPTION(struct network_options, batch, "batch", 1, 1 << 20, "N",
		    "batch size for shapes, MACs and memory (default: 1)")},
	{INT_OPTION(struct network_options, sequence, "sequence", 1, 1 << 20, "N",
		    "tokens of a sample, of a network over sequences (default: its own)")},
	{.name = "shape",
	 .kind = OPTION_LIST,
	 .offset = offsetof(struct network_options, shapes),
	 .metavar = "NAME=DIMS",
	 .help = "shape of one sample for an input of an ONNX file that leaves it open"},
	{TEXT_OPTION(struct network_options, onnx, "onnx", "FILE",
		     "write the forward network with its weights as ONNX, opset 17")},
	{TEXT_OPTION(struct network_options, draw, "draw", "FILE",
		     "draw the network; FILE ends in .svg, or in .dot for Graphviz")},
	{INT_OPTION(struct network_options, seed, "seed", 0, INT32_MAX, "N",
		    "seed of the weights in the ONNX file (default: 1)")},
	CLI_OPTION_FORMAT(struct network_options),
	{.name = NULL},
};

static int64_t node_macs(const struct graph *graph, const struct node *node)
{
	const struct operator_row *row = operator_row(node->op);
	return row->macs ? row->macs(graph, node) : 0;
}

/* Number of trained parameters that the node reads. */
static int64_t node_parameters(const struct graph *graph, const struct node *node)
{
	int64_t count = 0;
	for (int i = 0; i < node->input_count; i++) {
		int input = node->inputs[i];
		if (input != VALUE_NONE && graph->values[input].kind == VALUE_PARAMETER)
			count += shape_elements(&graph->values[input].shape);
	}
	return count;
}

static json_t *shape_json(const struct shape *shape)
{
	json_t *dims = json_array();
	for (int i = 0; i < shape->rank; i++)
		json_array_append_new(dims, json_integer(shape->dims[i]));
	return dims;
}

/* "kernel_shape 5x5, strides 2x2": attributes that differ from ONNX's defaults. */
static void attributes_text(const struct node *node, struct strbuf *out)
{
	struct attributes otherwise;
	operator_default_attributes(node->op, &otherwise);
	const char *base = (const char *)&node->attributes, *plain = (const char *)&otherwise;
	for (const struct attribute_row *row = operator_row(node->op)->attributes; row && row->name;
	     row++) {
		const char *at = base + row->offset, *usual = plain + row->offset;
		const struct int_list *list = (const void *)at;
		size_t bytes = row->kind == ATTRIBUTE_REAL    ? sizeof(double)
			       : row->kind == ATTRIBUTE_BOOL  ? sizeof(bool)
			       : row->kind == ATTRIBUTE_INTS4 ? 4 * sizeof(int64_t)
			       : row->kind == ATTRIBUTE_INTS2 ? 2 * sizeof(int64_t)
			       : row->kind == ATTRIBUTE_INTS ? (size_t)list->count * sizeof(int64_t)
							     : sizeof(int64_t);
		if (row->kind == ATTRIBUTE_INTS ? list->count == 0 : !memcmp(at, usual, bytes))
			continue;
		const int64_t *ints = (const int64_t *)(const void *)at;
		strbuf_printf(out, "%s%s ", out->length ? ", " : "", row->name);
		if (row->kind == ATTRIBUTE_REAL)
			strbuf_printf(out, "%g", *(const double *)(const void *)at);
		else if (row->kind == ATTRIBUTE_WORD)
			strbuf_puts(out, row->words[*ints]);
		else if (row->kind == ATTRIBUTE_BOOL)
			strbuf_puts(out, *(const bool *)(const void *)at ? "true" : "false");
		else
			for (size_t i = 0; i < bytes / sizeof *ints; i++)
				strbuf_printf(out, "%s%" PRId64, i ? "x" : "", ints[i]);
	}
}

static void add_row(struct table *table, const struct graph *graph, const struct node *node)
{
	const struct shape *shape = &graph->values[node->outputs[0]].shape;
	int64_t parameters = node_parameters(graph, node), macs = node_macs(graph, node);
	char text[128];
	struct strbuf attributes;
	strbuf_init(&attributes, 0);
	attributes_text(node, &attributes);
	table_row(table);
	table_cell(table, node->name, NULL);
	table_cell(table, operator_name(node->op), NULL);
	shape_text(shape, text, sizeof text);
	table_cell(table, text, shape_json(shape));
	snprintf(text, sizeof text, "%" PRId64, parameters);
	table_cell(table, parameters ? text : "", json_integer(parameters));
	snprintf(text, sizeof text, "%" PRId64, macs);
	table_cell(table, macs ? text : "", json_integer(macs));
	table_cell(table, strbuf_text(&attributes), NULL);
	strbuf_release(&attributes);
}

static struct table *layers_table(const struct graph *graph)
{
	static const struct table_column columns[] = {
		{.title = "layer", .key = "name"},
		{.title = "operator", .key = "operator"},
		{.title = "output", .key = "shape"},
		{.title = "parameters", .key = "parameters", .align = TABLE_RIGHT},
		{.title = "MACs", .key = "macs", .align = TABLE_RIGHT},
		{.title = "attributes", .key = "attributes"},
	};
	struct table *table = table_new(columns, sizeof columns / sizeof *columns);
	for (int i = 0; i < graph->forward_count; i++)
		add_row(table, graph, &graph->nodes[i]);
	return table;
}

/* Memory in fp32 in bytes: an estimate and a lower bound. */
struct memory {
	int64_t forward, train, forward_least;
	int64_t train_least; /* with SGD and momentum; -1: it cannot be trained */
};

/* Appends the backward pass to the graph. */
static struct memory find_memory(struct graph *graph)
{
	struct error why = ERROR_INIT;
	struct memory memory = {.forward = graph_memory_estimate(graph, false),
				.train = graph_memory_estimate(graph, true),
				.forward_least = graph_memory_least(graph, 0, sizeof(float)),
				.train_least = -1};
	if (graph_add_backward(graph, &why) == PRONY_OK)
		memory.train_least = graph_memory_least(graph, 1, sizeof(float));
	return memory;
}

/* Name, type and shape of the inputs, or of the labels. */
static json_t *values_json(const struct graph *graph, enum value_kind kind)
{
	json_t *values = json_array();
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		if (value->kind == kind)
			json_array_append_new(values,
					      json_pack("{s:s, s:s, s:o}", "name", value->name,
							"dtype", dtype_name(value->dtype), "shape",
							shape_json(&value->shape)));
	}
	return values;
}

/* "8x1x28x28", or of several "tokens I64 8x16, features F32 8x16x8". */
static void inputs_text(const struct graph *graph, struct strbuf *text)
{
	int count = graph_inputs(graph, NULL, 0);
	char shape[128];
	for (int i = 0; i < count; i++) {
		const struct value *value = &graph->values[graph_input(graph, i)];
		shape_text(&value->shape, shape, sizeof shape);
		if (count == 1)
			strbuf_puts(text, shape);
		else
			strbuf_printf(text, "%s%s %s %s", i ? ", " : "", value->name,
				      dtype_name(value->dtype), shape);
	}
}

static void print_json(const struct network *network, const struct graph *graph,
		       const struct memory *memory, const struct table *table, const char *digest)
{
	json_t *json = json_pack(
		"{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:o}, s:s, "
		"s:o}",
		"name", network->name, "summary", network->summary, "dataset", network->dataset,
		"batch", (json_int_t)graph_batch(graph), "input",
		shape_json(&graph->values[graph_input(graph, 0)].shape), "inputs",
		values_json(graph, VALUE_INPUT), "labels", values_json(graph, VALUE_LABEL),
		"classes", (json_int_t)graph_classes(graph), "parameters",
		(json_int_t)graph_parameter_count(graph), "macs", (json_int_t)graph_macs(graph),
		"memory_bytes", "forward", (json_int_t)memory->forward, "train",
		(json_int_t)memory->train, "forward_least", (json_int_t)memory->forward_least,
		"train_least",
		memory->train_least < 0 ? json_null() : json_integer(memory->train_least),
		"graph_sha256", digest, "layers", table_to_json(table));
	if (network->file) {
		json_object_set_new(json, "file_parameters",
				    json_integer(network->file->file_parameters));
		json_object_set_new(json, "remark",
				    network->file->remark ? json_string(network->file->remark)
							  : json_null());
	}
	cli_print_json(json);
	json_decref(json);
}

/* `table`: of the layers; NULL: leave them out. */
static void print_text(const struct network *network, const struct graph *graph,
		       const struct memory *memory, const struct table *table, const char *digest)
{
	const double mib = 1024.0 * 1024.0;
	struct strbuf text;
	/* The name of a file is its path; a line feed in it would forge a line. */
	char *name = text_line(network->name), *summary = text_line(network->summary);
	cli_out("%s: %s\n", name, summary);
	free(name);
	free(summary);
	strbuf_init(&text, 0);
	inputs_text(graph, &text);
	cli_out("input %s (data set %s), %" PRId64 " classes\n\n", strbuf_text(&text),
		network->dataset, graph_classes(graph));
	strbuf_release(&text);
	if (table) {
		cli_print_table(table, "table");
		cli_out("\n");
	}
	cli_out("parameters  %" PRId64 "\n", graph_parameter_count(graph));
	if (network->file)
		cli_out("in the file %" PRId64 "\n", network->file->file_parameters);
	cli_out("MACs        %" PRId64 " in a forward pass of %" PRId64 " sample%s\n",
		graph_macs(graph), graph_batch(graph), graph_batch(graph) == 1 ? "" : "s");
	cli_out("memory      about %.1f MiB forward, %.1f MiB train, in fp32\n",
		(double)memory->forward / mib, (double)memory->train / mib);
	cli_out("at least    %.1f MiB forward", (double)memory->forward_least / mib);
	if (memory->train_least < 0)
		cli_out("; it cannot be trained\n");
	else
		cli_out(", %.1f MiB train\n", (double)memory->train_least / mib);
	cli_out("graph       SHA-256 %s\n", digest);
	if (network->file && network->file->remark)
		cli_out("\n%s\n", network->file->remark);
}

static enum prony_status export_onnx(const struct network *network, const struct graph *graph,
				     const struct network_options *o, struct error *err)
{
	struct arena arena;
	struct tensor_set weights;
	void *bytes = NULL;
	size_t length = 0;
	arena_init(&arena, 0);
	enum prony_status status =
		network_weights(network, graph, (uint64_t)o->seed, &arena, &weights, err);
	if (status == PRONY_OK)
		status = onnx_export(graph, &weights, &bytes, &length, err);
	if (status == PRONY_OK)
		status = file_write_atomic(o->onnx, bytes, length, err);
	if (status == PRONY_OK)
		cli_say("wrote %s, %zu bytes\n", o->onnx, length);
	free(bytes);
	arena_release(&arena);
	return status;
}

static enum prony_status draw(const struct graph *graph, enum picture_format format,
			      const struct network_options *o, struct error *err)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	enum prony_status status = picture_write(graph, format, &text, err);
	if (status == PRONY_OK)
		status = file_write_atomic(o->draw, strbuf_text(&text), text.length, err);
	if (status == PRONY_OK)
		cli_say("wrote %s, %zu bytes\n", o->draw, text.length);
	strbuf_release(&text);
	return status;
}

static enum prony_status show_network(const struct network *network,
				      const struct network_options *o, struct error *err)
{
	struct graph graph;
	struct network other;
	char digest[65];
	enum picture_format format = PICTURE_SVG;
	enum prony_status status = o->draw ? picture_format_of(o->draw, &format, err) : PRONY_OK;
	if (status == PRONY_OK && o->draw)
		status = file_check_output(o->draw, err);
	if (status == PRONY_OK && o->onnx)
		status = file_check_output(o->onnx, err);
	if (status == PRONY_OK && o->sequence > network->tokens_max)
		status = network->tokens_max == 0
				 ? error_set(err, PRONY_USAGE,
					     "--sequence: the length of %s's samples is fixed",
					     network->name)
				 : error_set(err, PRONY_USAGE,
					     "--sequence: %s has at most %" PRId64 " tokens",
					     network->name, network->tokens_max);
	if (status == PRONY_OK && o->sequence > 0) {
		status = network_at_length(network, o->sequence, &other, err);
		network = &other;
	}
	if (status == PRONY_OK)
		status = network_build(network, o->batch, &graph, err);
	if (status != PRONY_OK)
		return status;
	status = graph_digest(&graph, digest, err);
	if (status == PRONY_OK && o->onnx)
		status = export_onnx(network, &graph, o, err);
	if (status == PRONY_OK && o->draw)
		status = draw(&graph, format, o, err);
	if (status == PRONY_OK) {
		struct table *table = layers_table(&graph);
		struct memory memory = find_memory(&graph);
		if (!strcmp(o->format, "json"))
			print_json(network, &graph, &memory, table, digest);
		else
			print_text(network, &graph, &memory, o->draw || o->onnx ? NULL : table,
				   digest);
		table_free(table);
	}
	graph_release(&graph);
	return status;
}

static enum prony_status open_own_model(const char *word, const struct network_given *given,
					struct network_file **file, struct error *err)
{
	struct registry registry;
	enum prony_status status = registry_load(&registry, err);

	if (status != PRONY_OK)
		return status;
	status = own_model_open(&registry, word, given, file, err);
	registry_release(&registry);
	return status;
}

/* If the word is a path, `file` must be released with network_file_free. */
static enum prony_status find_network(const char **words, size_t count, const struct network **out,
				      struct network_file **file, struct error *err)
{
	struct strbuf known;
	const char *nearest = NULL;
	if (count == 1 && network_check_ending(words[0], err) != PRONY_OK)
		return PRONY_BAD_INPUT;
	if (count == 1 && (own_model_is(words[0]) || network_is_file(words[0]))) {
		struct option_list *texts = &network_options.shapes;
		bool used[OPTION_LIST_MAX] = {false};
		const struct network_given given = {.shapes = {texts->values, texts->count, used}};
		enum prony_status status = own_model_is(words[0])
						   ? open_own_model(words[0], &given, file, err)
						   : network_file_open(words[0], &given, file, err);
		for (size_t i = 0; status == PRONY_OK && i < texts->count; i++)
			if (!used[i])
				status = error_set(err, PRONY_USAGE,
						   "--shape %.100s: %.100s has no such input",
						   texts->values[i], words[0]);
		if (status == PRONY_OK)
			*out = &(*file)->network;
		return status;
	}
	*out = count == 1 ? zoo_find(words[0], &nearest) : NULL;
	if (*out && network_options.shapes.count > 0)
		return error_set(err, PRONY_USAGE,
				 "--shape %.100s: the shapes of %s are fixed; --shape is for files",
				 network_options.shapes.values[0], words[0]);
	if (*out)
		return PRONY_OK;
	strbuf_init(&known, 0);
	for (size_t i = 0; i < zoo_network_count; i++)
		strbuf_printf(&known, "%s%s", i ? ", " : "", zoo_networks[i]->name);
	if (count == 1)
		error_set(err, PRONY_USAGE, "no network '%s'%s%s%s; known: %s", words[0],
			  nearest ? " (did you mean '" : "", nearest ? nearest : "",
			  nearest ? "'?)" : "", strbuf_text(&known));
	else
		error_set(err, PRONY_USAGE,
			  "prony network takes one FILE.onnx, one FILE.py:NAME or one NAME of %s",
			  strbuf_text(&known));
	strbuf_release(&known);
	return PRONY_USAGE;
}

static json_t *ports_json(const struct onnx_port_about *ports, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s}", "name", ports[i].name, "type",
						ports[i].type, "shape", ports[i].shape));
	return list;
}

static void print_ports(const char *word, const struct onnx_port_about *ports, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *name = text_line(ports[i].name), *shape = text_line(ports[i].shape);
		cli_out("%-11s %s  %s  %s\n", i == 0 ? word : "", name, ports[i].type, shape);
		free(name);
		free(shape);
	}
}

static void print_about(const char *path, const struct onnx_about *about)
{
	char *title = text_line(path), *producer = text_line(about->producer);
	cli_out("%s: opset %" PRId64 ", %s%s%s\n", title, about->opset, about->precision,
		*producer ? ", written by " : "", producer);
	free(title);
	free(producer);
	print_ports("inputs", about->inputs, about->input_count);
	print_ports("outputs", about->outputs, about->output_count);
	for (size_t i = 0; i < about->operator_count; i++) {
		char *name = text_line(about->operators[i].name);
		cli_out("%s%s %d", i == 0 ? "operators   " : ", ", name, about->operators[i].count);
		free(name);
	}
	cli_out("%sparameters  %" PRId64 " in %zu tensors\n", about->operator_count ? "\n" : "",
		about->parameters, about->tensors);
}

/* What is in a file that has no graph; why it has none follows as the error. */
static void show_file(const char *path, const struct network_file *file)
{
	struct onnx_about about;
	struct arena arena;
	arena_init(&arena, 0);
	if (onnx_about(path, &arena, &about, NULL) != PRONY_OK) {
		arena_release(&arena);
		return;
	}
	if (strcmp(network_options.format, "json") != 0) {
		print_about(path, &about);
	} else {
		json_t *operators = json_object();
		for (size_t i = 0; i < about.operator_count; i++)
			json_object_set_new(operators, about.operators[i].name,
					    json_integer(about.operators[i].count));
		json_t *json = json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o, s:o, s:I}", "network",
					 file->name, "reason", file->reason, "opset",
					 (json_int_t)about.opset, "precision", about.precision,
					 "producer", about.producer, "inputs",
					 ports_json(about.inputs, about.input_count), "outputs",
					 ports_json(about.outputs, about.output_count), "operators",
					 operators, "parameters", (json_int_t)about.parameters);
		if (json)
			cli_print_json(json);
		json_decref(json);
	}
	arena_release(&arena);
}

int command_network(const struct cli_call *call, struct error *err)
{
	const struct network *network = NULL;
	struct network_file *file = NULL;
	enum prony_status status = find_network(call->words, call->count, &network, &file, err);
	if (status == PRONY_OK && file && file->reason && !own_model_is(call->words[0]))
		show_file(call->words[0], file);
	if (status == PRONY_OK)
		status = show_network(network, &network_options, err);
	/* In a run such a cell is `unsupported`; here the user asked only about this file. */
	if (status == PRONY_UNSUPPORTED)
		err->code = PRONY_BAD_INPUT;
	network_file_free(file);
	return 0;
}
