/* Opens networks of the zoo and of ONNX files, and makes their graphs and weights. */
#include "zoo/source.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cell/cell.h"
#include "graph/batch.h"
#include "onnx/import.h"
#include "onnx/ports.h"

#define DIGITS_SHOWN 8
_Static_assert(ONNX_MAX_INPUTS <= NETWORK_MAX_INPUTS,
	       "a network must hold all inputs of an ONNX file");
#define FILE_MAX_BYTES ((size_t)INT32_MAX) /* what protobuf can hold in one message */

bool network_is_file(const char *word)
{
	size_t length = strlen(word);

	return strchr(word, '/') != NULL || (length > 5 && strcmp(word + length - 5, ".onnx") == 0);
}

enum prony_status network_check_ending(const char *word, struct error *err)
{
	static const struct {
		const char *ending;
		bool pytorch;
	} rows[] = {
		{".pt", true},		{".pth", true},	  {".pt2", true},     {".ckpt", true},
		{".safetensors", true}, {".ipynb", true}, {".bin", true},     {".h5", false},
		{".keras", false},	{".pb", false},	  {".tflite", false},
	};
	const char *end = strrchr(word, '.');

	for (size_t i = 0; end && i < sizeof(rows) / sizeof(*rows); i++) {
		if (strcmp(end, rows[i].ending) != 0)
			continue;
		return error_set(
			err, PRONY_BAD_INPUT, "%.200s is not an ONNX file; %s", word,
			rows[i].pytorch
				? "write model.py with a function that makes and returns "
				  "the torch.nn.Module, with its weights loaded, and run -n "
				  "model.py:FUNCTION, or export it: " CELL_PYTORCH_EXPORT
				  " (docs/models.md)"
				: "write one with tf2onnx, or in Keras 3 with "
				  "model.export(\"model.onnx\", format=\"onnx\")");
	}
	return PRONY_OK;
}

/* The name without its digits. */
static const char *title_of(const struct network_file *file, const char *path)
{
	const char *slash = strrchr(path, '/');

	return file->title ? file->title : slash ? slash + 1 : path;
}

/* Names are part of keys, whose words are separated by blanks and equal signs. */
static void make_name(struct network_file *file, const char *path, const char *digest)
{
	snprintf(file->name, sizeof(file->name) - DIGITS_SHOWN - 1, "%s", title_of(file, path));
	for (char *c = file->name; *c; c++) {
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-' && *c != '_' &&
		    !(*c == ':' && file->title))
			*c = '_';
	}
	snprintf(file->name + strlen(file->name), DIGITS_SHOWN + 2, "@%.*s", DIGITS_SHOWN, digest);
}

/* One line on how prony's network differs from what the author of the file expects. */
static char *make_remark(const struct network_file *file, const struct onnx_notes *notes)
{
	const struct network *network = &file->network;
	struct strbuf text;
	char shape[128];

	strbuf_init(&text, 0);
	if (notes->shared_initializers > 0)
		strbuf_printf(
			&text,
			"; %lld parameters, but %lld in the file: %d tensors of equal numbers "
			"are used more than once, and each use is trained separately",
			(long long)network->parameters, (long long)notes->file_parameters,
			notes->shared_initializers);
	if (notes->softmax_left_out)
		strbuf_puts(&text, "; the final softmax is computed in the loss");
	if (network->label_rank > 0) {
		shape_text(&notes->output, shape, sizeof(shape));
		strbuf_printf(
			&text,
			"; its output for one sample is %s: the loss takes it as %lld rows of "
			"%lld classes",
			shape, (long long)network->label_dims[0], (long long)network->classes);
	}
	if (notes->fixed)
		strbuf_printf(&text,
			      "; these inputs are constants, because no graph expresses what the "
			      "file computes from them: %s",
			      notes->fixed);
	if (strcmp(notes->precision, "fp32") != 0)
		strbuf_printf(
			&text,
			"; the file's numbers are %s, and the graph computes with them in the "
			"precision of the cell",
			notes->precision);
	if (notes->outputs_left_out > 0)
		strbuf_printf(&text, "; only the first of %d outputs is computed",
			      notes->outputs_left_out + 1);
	if (text.length == 0) {
		strbuf_release(&text);
		return NULL;
	}
	return strbuf_take(&text);
}

static bool lacks_normalisation(const struct graph *graph)
{
	bool convolves = false;

	for (int i = 0; i < graph->node_count; i++) {
		enum op op = graph->nodes[i].op;

		if (op == OP_BATCH_NORM || op == OP_LAYER_NORM || op == OP_RMS_NORM ||
		    op == OP_GROUP_NORM || op == OP_INSTANCE_NORM || op == OP_LRN)
			return false;
		convolves |= op == OP_CONV;
	}
	return convolves;
}

static void list_inputs(struct network *network, const struct onnx_facts *facts)
{
	network->input_count = facts->input_count;
	for (int i = 0; i < facts->input_count; i++) {
		const struct onnx_input *input = &facts->inputs[i];

		network->inputs[i] = (struct network_input){
			.name = input->name, .dtype = input->dtype, .rank = input->sample.rank};
		for (int k = 0; k < input->sample.rank; k++)
			network->inputs[i].dims[k] = input->sample.dims[k];
	}
}

/* Imports the file and finds the input, the classes and the cost of one sample. If it is not
 * supported, file->reason tells why.
 */
static enum prony_status describe(struct network_file *file, struct error *err)
{
	const struct onnx_facts *facts = onnx_model_facts(file->model);
	const struct onnx_notes *notes = onnx_model_notes(file->model);
	struct network *network = &file->network;
	struct error why = ERROR_INIT;
	struct graph graph;
	enum prony_status status;

	list_inputs(network, facts);
	status = onnx_model_import(file->model, &why);
	if (status == PRONY_OK)
		status = onnx_model_graph(file->model, facts->batch > 0 ? facts->batch : 1, &graph,
					  &why);
	if (status == PRONY_UNSUPPORTED) {
		file->reason = memory_strdup(why.text);
		return PRONY_OK;
	}
	if (status != PRONY_OK)
		return error_set(err, status, "%s", why.text);
	list_inputs(network, facts);
	network->label_rank = graph.values[graph_label(&graph, 0)].shape.rank - 1;
	if (network->label_rank > 0)
		network->label_dims[0] = graph.values[graph_label(&graph, 0)].shape.dims[1];
	network->classes = graph_classes(&graph);
	network->parameters = graph_parameter_count(&graph);
	network->macs = graph_macs(&graph) / graph_batch(&graph);
	file->file_parameters = notes->file_parameters;
	file->remark = make_remark(file, notes);
	file->softmax_left_out = notes->softmax_left_out;
	file->no_normalisation = notes->by_pytorch && lacks_normalisation(&graph);
	graph_release(&graph);
	return PRONY_OK;
}

/* Makes a graph, or sets file->reason. */
static enum prony_status try_graph(struct network_file *file, const char *path,
				   const struct network_given *given, struct error *err)
{
	char digest[DIGEST_HEX_BYTES];
	struct onnx_given texts = {given->shapes.texts, given->shapes.count, given->fills.texts,
				   given->fills.count};
	enum prony_status status = onnx_model_open(path, &texts, &file->model, err);

	if (status == PRONY_OK) {
		make_name(file, path, onnx_model_facts(file->model)->digest);
		return describe(file, err);
	}
	if (status != PRONY_UNSUPPORTED)
		return status;
	file->reason = memory_strdup(err->text);
	error_clear(err);
	status = digest_file(path, digest, err);
	if (status == PRONY_OK)
		make_name(file, path, digest);
	return status;
}

/* Whether a text "NAME=..." names an input; *value is what follows. */
static bool names_input(const char *text, const struct onnx_ports *ports, const char **name,
			const char **value)
{
	for (size_t i = 0; i < ports->inputs.count; i++) {
		size_t length = strlen(ports->inputs.tensors[i].name);

		if (strncmp(text, ports->inputs.tensors[i].name, length) != 0 ||
		    text[length] != '=')
			continue;
		*name = ports->inputs.tensors[i].name;
		*value = text + length + 1;
		return true;
	}
	return false;
}

/* Reads what inputs are to be filled with. A file of numbers is part of the network's name. */
static enum prony_status read_fills(struct network_file *file, const struct network_texts *texts,
				    struct digest *all, bool *any, struct error *err)
{
	char digest[DIGEST_HEX_BYTES];

	file->fills = arena_array(&file->arena, texts->count + 1, sizeof(*file->fills));
	for (size_t i = 0; i < texts->count; i++) {
		struct network_fill *fill = &file->fills[file->fill_count];
		const char *value;
		enum prony_status status;

		if (!names_input(texts->texts[i], file->ports, &fill->name, &value))
			continue;
		status = input_fill_parse(arena_strdup(&file->arena, value), &fill->fill, err);
		if (status == PRONY_OK && fill->fill.kind == INPUT_FILE)
			status = digest_file(fill->fill.path, digest, err);
		if (status != PRONY_OK)
			return status;
		digest_add_text(all, texts->texts[i]);
		if (fill->fill.kind == INPUT_FILE)
			digest_add_text(all, digest);
		*any = texts->used[i] = true;
		file->fill_count++;
	}
	return PRONY_OK;
}

/* Takes what the user said of the inputs. It is part of the network's name, because other shapes
 * and contents make another network. */
static enum prony_status take_given(struct network_file *file, const char *path,
				    const struct network_given *given, struct error *err)
{
	const struct network_texts *shapes = &given->shapes;
	bool *own = arena_array(&file->arena, shapes->count + 1, sizeof(*own)), any = false;
	char digest[DIGEST_HEX_BYTES];
	struct digest all;
	enum prony_status status =
		onnx_ports_fix(file->ports, shapes->texts, shapes->count, own, err);

	if (status != PRONY_OK)
		return status;
	digest_begin(&all);
	digest_add_text(&all, file->name);
	for (size_t i = 0; i < shapes->count; i++) {
		if (!own[i])
			continue;
		shapes->used[i] = true;
		any |= file->reason || file->ports->left_open;
		digest_add_text(&all, shapes->texts[i]);
	}
	/* Before the batch was found in the second dimension, such a name was other work. */
	for (size_t i = 0; i < file->ports->inputs.count; i++)
		if (file->ports->batch[i] > 0 && !file->ports->marked)
			digest_add_text(&all, "batch second");
	status = read_fills(file, &given->fills, &all, &any, err);
	digest_end(&all, digest);
	if (any)
		make_name(file, path, digest);
	return status;
}

/* Weights in other files are part of the network's name. */
static enum prony_status name_by_data(struct network_file *file, const char *path,
				      struct error *err)
{
	const struct onnx_ports *ports = file->ports;
	char digest[DIGEST_HEX_BYTES];
	enum prony_status status = PRONY_OK;
	struct digest all;

	if (ports->data_count == 0 || !file->reason)
		return PRONY_OK;
	digest_begin(&all);
	digest_add_text(&all, file->name);
	for (size_t i = 0; i < ports->data_count && status == PRONY_OK; i++) {
		status = digest_file(ports->data[i].path, digest, err);
		if (status == PRONY_OK)
			digest_add_text(&all, digest);
	}
	digest_end(&all, digest);
	if (status == PRONY_OK)
		make_name(file, path, digest);
	return status;
}

/* Keeps the bytes of a file that has no graph. If the file cannot be run unchanged either,
 * file->unreadable tells why; that is no error. */
static enum prony_status keep_as_it_is(struct network_file *file, const char *path,
				       const struct network_given *given, struct error *err)
{
	struct error why = ERROR_INIT;
	char *bytes = NULL;
	enum prony_status status = file_read(path, FILE_MAX_BYTES, &bytes, &file->length, err);

	if (status != PRONY_OK)
		return status;
	file->ports = arena_array(&file->arena, 1, sizeof *file->ports);
	status = onnx_ports_read(bytes, file->length, path, &file->arena, file->ports, &why);
	if (status != PRONY_OK) {
		file->unreadable = memory_strdup(why.text);
		status = PRONY_OK;
	} else {
		status = name_by_data(file, path, err);
		if (status == PRONY_OK)
			status = take_given(file, path, given, err);
	}
	if (status == PRONY_OK && file->reason && !file->unreadable)
		file->bytes = bytes;
	if (file->bytes)
		precision_parse(file->ports->precision, &file->precision);
	if (!file->bytes)
		free(bytes);
	return status;
}

enum prony_status network_file_open_as(const char *path, const char *title,
				       const struct network_given *given, struct network_file **out,
				       struct error *err)
{
	static const struct network_given nothing;
	struct network_file *file = memory_alloc(sizeof(*file));
	struct error why = ERROR_INIT;
	enum prony_status status;

	memset(file, 0, sizeof(*file));
	arena_init(&file->arena, 0);
	file->title = title ? arena_strdup(&file->arena, title) : NULL;
	given = given ? given : &nothing;
	status = network_check_ending(path, &why);
	if (status == PRONY_OK)
		status = try_graph(file, path, given, &why);
	if (status == PRONY_OK &&
	    (file->reason || given->shapes.count > 0 || given->fills.count > 0))
		status = keep_as_it_is(file, path, given, &why);
	if (status != PRONY_OK) {
		network_file_free(file);
		return error_set(err, status, "%s", why.text);
	}
	if (file->remark) {
		char *named = memory_printf("%s%s", file->name, file->remark);

		free(file->remark);
		file->remark = named;
	}
	if (title && file->reason && strncmp(file->reason, path, strlen(path)) == 0) {
		char *reason = memory_printf("%s%s", title, file->reason + strlen(path));

		free(file->reason);
		file->reason = reason;
	}
	snprintf(file->summary, sizeof(file->summary), "%s %s", title ? "model" : "ONNX model",
		 title_of(file, path));
	file->network.name = file->name;
	file->network.summary = file->summary;
	file->network.dataset = "synthetic";
	file->network.gate_learning_rate = 0.001;
	file->network.file = file;
	*out = file;
	return PRONY_OK;
}

enum prony_status network_file_open(const char *path, const struct network_given *given,
				    struct network_file **out, struct error *err)
{
	return network_file_open_as(path, NULL, given, out, err);
}

void network_file_free(struct network_file *file)
{
	if (file == NULL)
		return;
	onnx_model_free(file->model);
	free(file->reason);
	free(file->remark);
	free(file->unreadable);
	free(file->bytes);
	arena_release(&file->arena);
	free(file);
}

bool network_is_as_it_is(const struct network *network)
{
	return network->file && network->file->bytes;
}

enum prony_status network_model_ports(const struct network *network, int64_t batch,
				      struct arena *arena, struct model_file *out,
				      struct error *err)
{
	const struct network_file *file = network->file;

	*out = (struct model_file){.outputs = file->ports->outputs};
	return onnx_ports_inputs(file->ports, batch, arena, &out->inputs, err);
}

/* What the user gave for an input, or what its name says. */
static struct input_fill find_fill(const struct network_file *file, const char *name)
{
	for (size_t i = file->fill_count; i-- > 0;)
		if (strcmp(file->fills[i].name, name) == 0)
			return file->fills[i].fill;
	return input_fill_by_name(name);
}

struct input_fill network_model_fill(const struct network *network, size_t input, int64_t *rows)
{
	const struct network_file *file = network->file;

	*rows = file->ports->rows[input];
	return find_fill(file, file->ports->inputs.tensors[input].name);
}

enum prony_status network_fill_inputs(const struct network *network, const struct graph *graph,
				      int64_t first, uint64_t seed, const struct tensor_set *inputs,
				      struct error *err)
{
	size_t count = (size_t)graph_inputs(graph, NULL, 0);
	enum prony_status status = PRONY_OK;

	for (size_t k = 0; network->file && status == PRONY_OK && k < inputs->count; k++) {
		int input = (int)(k % count);
		const struct onnx_facts *facts = onnx_model_facts(network->file->model);
		struct input_fill fill = find_fill(network->file, facts->inputs[input].file_name);
		char stream[96];

		snprintf(stream, sizeof(stream), "fill/%lld/%d",
			 (long long)(first + (int64_t)(k / count)), input);
		status = input_fill_apply(&fill, &inputs->tensors[k],
					  graph_index_bound(graph, graph_input(graph, input)), seed,
					  stream, err);
	}
	return status;
}

const char *network_input_name(const struct network *network, int i)
{
	return onnx_model_facts(network->file->model)->inputs[i].file_name;
}

enum prony_status network_model_bytes(const struct network *network, struct model_file *model,
				      struct error *err)
{
	const struct network_file *file = network->file;
	void *bytes = NULL;
	enum prony_status status = onnx_ports_write(file->bytes, file->length, &model->inputs,
						    &bytes, &model->length, err);

	model->bytes = bytes;
	model->data = file->ports->data;
	model->data_count = file->ports->data_count;
	return status;
}

enum prony_status network_build(const struct network *network, int64_t batch, struct graph *out,
				struct error *err)
{
	const struct network_file *file = network->file;

	if (file == NULL)
		return zoo_build(network, batch, out, err);
	if (file->reason != NULL)
		return error_set(err, PRONY_UNSUPPORTED, "%s", file->reason);
	return onnx_model_graph(file->model, batch, out, err);
}

enum prony_status network_weights(const struct network *network, const struct graph *graph,
				  uint64_t seed, struct arena *arena, struct tensor_set *out,
				  struct error *err)
{
	if (network->file == NULL)
		return graph_initial_weights(graph, seed, arena, out, err);
	*out = *onnx_model_weights(network->file->model);
	return PRONY_OK;
}
