/* Translates an ONNX file into a graph, in one pass over its nodes. Nodes of constants are
 * evaluated; all others are appended to the graph. Nodes that cannot be translated are collected,
 * so that the error names all of them. */
#include "onnx/import.h"

#include <string.h>

#include "base/memory.h"
#include "graph/edit_internal.h"
#include "graph/node_internal.h"
#include "graph/rebatch.h"
#include "onnx/import_internal.h"
#include "onnx/ports_internal.h"

/* A file that leaves its batch open is imported with this batch size. A batch of 1 could not be
 * told from other dimensions of 1. Files rarely have constants of 13. */
#define OPEN_BATCH 13

/* The most bytes that computed constants may take, in addition to those of the file. All weights of
 * a file may come from ConstantOfShape, so this is more than a large network needs. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define NUMBERS_MIN_BYTES ((size_t)32 << 20)
#else
#define NUMBERS_MIN_BYTES ((size_t)4 << 30)
#endif

struct import_row {
	const char *op;
	import_function *import;
};

static const struct import_row rows[] = {
	{"AveragePool", import_pool},
	{"BatchNormalization", import_batch_norm},
	{"Cast", import_cast},
	{"CastLike", import_cast},
	{"Concat", import_concat},
	{"Conv", import_conv},
	{"ConvTranspose", import_conv},
	{"Erf", import_erf},
	{"Expand", import_expand},
	{"Flatten", import_reshape},
	{"Gather", import_gather},
	{"Gemm", import_gemm},
	{"GRU", import_recurrent},
	{"GlobalAveragePool", import_global_pool},
	{"GlobalMaxPool", import_global_pool},
	{"Identity", import_identity},
	{"LSTM", import_recurrent},
	{"LogSoftmax", import_softmax},
	{"MatMul", import_matmul},
	{"MaxPool", import_pool},
	{"Pad", import_pad},
	{"Pow", import_power},
	{"RNN", import_recurrent},
	{"ReduceMean", import_reduce},
	{"ReduceSum", import_reduce},
	{"Reshape", import_reshape},
	{"Resize", import_resize},
	{"Slice", import_slice},
	{"Softmax", import_softmax},
	{"Split", import_split},
	{"Squeeze", import_reshape},
	{"Sum", import_sum},
	{"Transpose", import_transpose},
	{"Unsqueeze", import_reshape},
	{"Upsample", import_resize},
	{"Where", import_where},
};

/* Operators whose row describes their inputs need no entry here. */
static const struct import_row *find_row(const char *op)
{
	static const struct import_row by_row = {NULL, import_by_row};
	enum op known = operator_from_name(op);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(op, rows[i].op) == 0)
			return &rows[i];
	}
	return known != OP_COUNT && operator_row(known)->onnx_inputs ? &by_row : NULL;
}

/* Evaluates Shape, and Size of values that are not constant; all shapes are known. */
static void take_shape(struct importer *im, const struct file_node *node)
{
	const struct slot *slot = import_slot(im, node, 0);
	struct shape shape;
	struct constant out;
	int64_t start, end;

	if (slot == NULL || node->output_count < 1) {
		import_refuse(im, node, "it has no input");
		return;
	}
	shape = slot->kind == SLOT_VALUE    ? *import_shape(im, slot->value)
		: slot->kind == SLOT_LOOKUP ? slot->lookup->from.shape
					    : slot->constant.shape;
	start = onnx_int(node->proto, "start", 0);
	end = onnx_int(node->proto, "end", shape.rank);
	if (strcmp(node->proto->op_type, "Size") == 0) {
		int64_t elements = shape_elements(&shape);

		out = constant_ints(&im->arena, &elements, 1);
		out.shape.rank = 0;
	} else {
		start = start < 0 ? start + shape.rank : start;
		end = end < 0 ? end + shape.rank : end;
		start = start < 0 ? 0 : start > shape.rank ? shape.rank : start;
		end = end < start ? start : end > shape.rank ? shape.rank : end;
		out = constant_ints(&im->arena, shape.dims + start, (int)(end - start));
	}
	import_set_constant(im, node, 0, &out);
}

static void fold_node(struct importer *im, const struct file_node *node)
{
	struct error why = ERROR_INIT;
	const struct constant **inputs =
		arena_array(&im->arena, node->input_count + 1, sizeof(const struct constant *));
	struct fold fold = {
		.node = node->proto,
		.inputs = inputs,
		.input_count = node->input_count,
		.output_count = node->output_count,
		.outputs = arena_array(&im->arena, node->output_count + 1, sizeof(struct constant)),
		.arena = im->numbers,
		.err = &why,
	};

	for (size_t i = 0; i < node->input_count; i++)
		inputs[i] = import_constant(im, node, i);
	if (onnx_fold(&fold) != PRONY_OK) {
		import_refuse(im, node, "%s", why.text);
		return;
	}
	for (size_t i = 0; i < node->output_count; i++)
		import_set_constant(im, node, i, &fold.outputs[i]);
}

/* SLOT_LOST if an input is SLOT_LOST: the node that lost it has been refused. */
static enum slot_kind inputs_kind(const struct importer *im, const struct file_node *node)
{
	enum slot_kind kind = SLOT_CONSTANT;

	for (size_t i = 0; i < node->input_count; i++) {
		const struct slot *slot = import_slot(im, node, i);

		if (slot && (slot->kind == SLOT_LOST || slot->kind == SLOT_EMPTY))
			return SLOT_LOST;
		/* A value outweighs a lookup, and that a constant. */
		if (slot && slot->kind > kind)
			kind = slot->kind;
	}
	return kind;
}

/* Shape and Size can be evaluated for any input, because all shapes are known. */
static bool is_shape(const Onnx__NodeProto *proto)
{
	return !onnx_is_foreign(proto) &&
	       (strcmp(proto->op_type, "Shape") == 0 || strcmp(proto->op_type, "Size") == 0);
}

/* Whether the result cannot be constant, even if all inputs could be translated. */
static bool depends_on_data(const struct importer *im, const struct file_node *node)
{
	if (is_shape(node->proto))
		return false;
	for (size_t i = 0; i < node->input_count; i++) {
		const struct slot *slot = import_slot(im, node, i);

		if (slot &&
		    (slot->kind == SLOT_VALUE || slot->kind == SLOT_LOOKUP || slot->from_data))
			return true;
	}
	return false;
}

/* Whether an initializer is repeated for each sample: a learned token, which stays one parameter.
 */
static bool repeats_parameter(const struct importer *im, const struct file_node *node)
{
	const struct constant *from = import_constant(im, node, 0);
	const struct constant *target = import_constant(im, node, 1);

	return strcmp(node->proto->op_type, "Expand") == 0 && from && from->initializer >= 0 &&
	       from->is_float && from->shape.rank > 0 && target && !target->is_float &&
	       target->count > 1 && target->count >= from->shape.rank &&
	       target->ints[0] == im->batch &&
	       (target->count > from->shape.rank || from->shape.dims[0] == 1);
}

/* Translates a node whose row takes values: lookups become values for it. */
static void import_row(struct importer *im, const struct file_node *node,
		       const struct import_row *row)
{
	bool ready = true;

	for (size_t i = 0; i < node->input_count; i++) {
		struct slot *slot = import_has(node, i) ? &im->slots[node->inputs[i]] : NULL;

		/* The condition of a Where stays boolean. */
		if (!ready || !slot || slot->kind != SLOT_LOOKUP ||
		    (row->import == import_where && i == 0))
			continue;
		slot->value = import_looked_up(im, node, slot->lookup);
		ready = slot->value != VALUE_NONE;
		slot->kind = SLOT_VALUE;
	}
	if (ready)
		row->import(im, node);
	for (size_t i = 0; i < node->input_count; i++) {
		struct slot *slot = import_has(node, i) ? &im->slots[node->inputs[i]] : NULL;

		if (slot && slot->kind == SLOT_VALUE && slot->lookup)
			slot->kind = SLOT_LOOKUP;
	}
}

static void translate(struct importer *im, const struct file_node *node)
{
	const char *op = node->proto->op_type;
	bool foreign = onnx_is_foreign(node->proto), shape = is_shape(node->proto);
	const struct import_row *row = foreign ? NULL : find_row(op);
	bool folds = !foreign && onnx_can_fold(op) && !repeats_parameter(im, node) &&
		     !import_slices_table(im, node);
	bool picks = !foreign && import_picks_rows(im, node);
	enum slot_kind kind = inputs_kind(im, node);

	if (!foreign && strcmp(op, "Constant") == 0)
		import_take_constant(im, node);
	else if (kind != SLOT_LOST && shape)
		take_shape(im, node);
	else if (picks)
		import_constant_rows(im, node);
	else if (kind == SLOT_CONSTANT && folds)
		fold_node(im, node);
	else if (kind == SLOT_LOOKUP && !foreign && import_lookup(im, node))
		return;
	else if (kind != SLOT_LOST && row != NULL)
		import_row(im, node, row);
	else if (row == NULL &&
		 (kind != SLOT_LOST || !(shape || (folds && !depends_on_data(im, node)))))
		im->refusals[im->refusal_count++] = (struct refusal){.node = node};
}

static void take_node(struct importer *im, size_t index)
{
	const struct file_node *node = &im->model->nodes[index];

	translate(im, node);
	for (size_t i = 0; i < node->output_count; i++) {
		struct slot *slot;

		if (node->outputs[i] == NAME_OMITTED)
			continue;
		slot = &im->slots[node->outputs[i]];
		if (slot->kind == SLOT_EMPTY) {
			slot->kind = SLOT_LOST;
			slot->from_data = depends_on_data(im, node);
		}
	}
}

static void take_initializers(struct importer *im)
{
	for (int i = 0; i < im->model->definition_count; i++) {
		const struct definition *definition = &im->model->definitions[i];

		if (definition->kind != DEFINED_BY_INITIALIZER || definition->users == 0)
			continue;
		im->slots[i] = (struct slot){
			.kind = SLOT_CONSTANT,
			.constant = im->model->initializers[definition->index],
		};
	}
}

void import_list_missing(const struct onnx_model *model, struct strbuf *out)
{
	struct importer im = {.model = model};

	arena_init(&im.arena, 0);
	im.refusals = arena_array(&im.arena, model->node_count + 1, sizeof(*im.refusals));
	for (size_t i = 0; i < model->node_count; i++) {
		const struct file_node *node = &model->nodes[i];
		const char *op = node->proto->op_type;
		bool known = !onnx_is_foreign(node->proto) &&
			     (find_row(op) || onnx_can_fold(op) || is_shape(node->proto) ||
			      strcmp(op, "Constant") == 0);

		if (node->needed && !known)
			im.refusals[im.refusal_count++] = (struct refusal){.node = node};
	}
	if (im.refusal_count > 0)
		strbuf_puts(out, "; ");
	import_list_operators(&im, out);
	arena_release(&im.arena);
}

/* The graph's name: the file's name without its folder, if it is a valid name. */
static const char *graph_name(struct importer *im)
{
	const char *slash = strrchr(im->model->path, '/');
	const char *name = slash ? slash + 1 : im->model->path;

	return graph_check_name("graph", name, NULL) == PRONY_OK ? name : "model.onnx";
}

/* At most half of a small machine's memory: a file of some hundred bytes may ask for all of it. */
static size_t numbers_room(void)
{
	int64_t half = memory_physical_bytes() / 2;

	return half < (int64_t)NUMBERS_MIN_BYTES ? (size_t)half : NUMBERS_MIN_BYTES;
}

/* Counts the users of each initializer, also behind Identity nodes. */
static bool *find_shared(struct importer *im)
{
	const struct onnx_model *model = im->model;
	size_t names = (size_t)model->definition_count + 1;
	int *users = arena_array(&im->arena, model->graph->n_initializer + 1, sizeof(*users));
	int *origin = arena_array(&im->arena, names, sizeof(*origin)); /* initializer + 1 */
	bool *shared = arena_array(&im->arena, model->graph->n_initializer + 1, sizeof(*shared));

	for (int i = 0; i < model->definition_count; i++)
		if (model->definitions[i].kind == DEFINED_BY_INITIALIZER)
			origin[i] = model->definitions[i].index + 1;
	for (size_t i = 0; i < model->node_count; i++) {
		const struct file_node *node = &model->nodes[i];
		bool same = strcmp(node->proto->op_type, "Identity") == 0;

		for (size_t k = 0; node->needed && k < node->input_count; k++) {
			int from = import_has(node, k) ? origin[node->inputs[k]] : 0;

			if (from > 0 && same && node->outputs[0] != NAME_OMITTED)
				origin[node->outputs[0]] = from;
			else if (from > 0 && ++users[from - 1] > 1)
				shared[from - 1] = true;
		}
	}
	return shared;
}

static void importer_init(struct importer *im, const struct onnx_model *model, int64_t batch,
			  struct graph *graph, struct arena *numbers)
{
	size_t count = (size_t)model->definition_count;

	*im = (struct importer){
		.model = model,
		.batch = batch,
		.builder = {.graph = graph, .error = ERROR_INIT},
		.numbers = numbers,
	};
	arena_init(&im->arena, 0);
	arena_init(numbers, numbers_room() + 2 * (size_t)model->weight_bytes);
	graph_init(graph, graph_name(im));
	im->slots = arena_array(&im->arena, count + 1, sizeof(*im->slots));
	im->done = arena_array(&im->arena, model->node_count + 1, sizeof(*im->done));
	/* Each node is refused at most once, and once for each of its outputs. */
	im->refusals = arena_array(&im->arena, 2 * (count + model->node_count) + 16,
				   sizeof(*im->refusals));
	im->uses = arena_array(&im->arena, model->graph->n_initializer + 1, sizeof(*im->uses));
	im->tied = arena_array(&im->arena, model->graph->n_initializer + 1, sizeof(*im->tied));
	for (size_t i = 0; i < model->graph->n_initializer; i++)
		im->tied[i] = VALUE_NONE;
	im->shared = find_shared(im);
}

/* Gives an input of the graph the shape that it has in the file. */
static int file_order(struct importer *im, const struct onnx_input *input, int value)
{
	const char *name = arena_printf(&im->arena, "%s.turned", input->name);
	struct attributes attributes;

	operator_default_attributes(OP_TRANSPOSE, &attributes);
	attributes.ints.count = input->sample.rank + 1;
	for (int i = 0; i <= input->sample.rank; i++)
		attributes.ints.items[i] = i == input->batch_axis  ? 0
					   : i < input->batch_axis ? i + 1
								   : i;
	return input->batch_axis > 0
		       ? build_node(&im->builder, OP_TRANSPOSE, name, &value, 1, &attributes)
		       : value;
}

/* Translates all nodes; the output's slot and the refusals give the result. */
static void run_pass(struct importer *im)
{
	const struct onnx_model *model = im->model;

	for (int i = 0; i < model->facts.input_count; i++) {
		const struct onnx_input *input = &model->facts.inputs[i];
		int value = VALUE_NONE;

		if (!im->fixed || !import_can_fix(input)) {
			value = build_input(&im->builder, input->name, input->dtype, im->batch,
					    input->sample.rank, input->sample.dims);
			if (value == VALUE_NONE)
				return;
			value = file_order(im, input, value);
		}
		im->inputs[i] = value;
		im->slots[model->inputs[i]] =
			input->dtype == DTYPE_F32
				? (struct slot){.kind = SLOT_VALUE, .value = value}
				: import_integers(im, i);
	}
	take_initializers(im);
	for (size_t i = 0; i < model->node_count; i++) {
		if (model->nodes[i].needed && !im->done[i])
			take_node(im, i);
	}
}

static enum prony_status finish(struct importer *im, struct error *err)
{
	struct error why = ERROR_INIT;
	int logits = VALUE_NONE;
	int64_t per_sample = 1; /* rows of the logits */
	enum prony_status status;

	if (im->builder.error.code != PRONY_OK)
		return error_set(err, PRONY_BAD_INPUT, "%s: %s", im->model->path,
				 im->builder.error.text);
	if (im->refusal_count > 0)
		return import_report(im, err);
	status = import_find_logits(im, &logits, err);
	if (status == PRONY_OK && im->refusal_count > 0)
		return import_report(im, err);
	if (status == PRONY_OK)
		per_sample = import_shape(im, logits)->dims[0] / im->batch;
	if (status == PRONY_OK &&
	    build_finish(&im->builder, logits, per_sample > 1, &per_sample, &why) != PRONY_OK)
		status = error_set(err, PRONY_UNSUPPORTED, "%s: %s", im->model->path, why.text);
	return status;
}

/* Lists the graph's parameters and states in graph order. Their numbers are borrowed. */
static void list_weights(const struct importer *im, struct arena *arena, struct tensor_set *out)
{
	const struct graph *graph = im->builder.graph;

	*out = (struct tensor_set){.tensors = arena_array(arena, (size_t)graph->value_count + 1,
							  sizeof(struct tensor))};
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind != VALUE_PARAMETER && value->kind != VALUE_STATE)
			continue;
		out->tensors[out->count++] =
			(struct tensor){.name = value->name,
					.dtype = DTYPE_F32,
					.shape = value->shape,
					.data = (void *)(uintptr_t)im->weights[i].floats};
	}
}

/* Leaves out the inputs that became constants; returns their names. */
static const char *drop_fixed(struct onnx_model *model)
{
	struct onnx_facts *facts = &model->facts;
	struct strbuf names;
	int kept = 0;
	const char *copy;

	strbuf_init(&names, 0);
	for (int i = 0; i < facts->input_count; i++) {
		static const char *const words[] = {[INPUT_ZEROS] = "zeros",
						    [INPUT_ONES] = "ones",
						    [INPUT_POSITIONS] = "positions"};
		const struct onnx_input *input = &facts->inputs[i];

		if (import_can_fix(input)) {
			strbuf_printf(&names, "%s%.60s (%s)", names.length ? ", " : "",
				      input->file_name, words[input->fill.kind]);
			continue;
		}
		facts->inputs[kept] = *input;
		model->inputs[kept++] = model->inputs[i];
	}
	facts->input_count = kept;
	copy = arena_strdup(&model->arena, strbuf_text(&names));
	strbuf_release(&names);
	return copy;
}

static enum prony_status import_with(struct onnx_model *model, int64_t batch, bool fixed,
				     struct error *err)
{
	struct importer im;
	struct graph graph;
	struct arena numbers;
	enum prony_status status;

	importer_init(&im, model, batch, &graph, &numbers);
	im.fixed = fixed;
	run_pass(&im);
	status = finish(&im, err);
	if (status == PRONY_OK) {
		list_weights(&im, &model->arena, &model->weights);
		model->notes = im.notes;
		model->notes.fixed = fixed ? drop_fixed(model) : NULL;
		model->notes.precision = onnx_file_precision(model->graph);
		model->notes.outputs_left_out = (int)model->graph->n_output - 1;
		model->notes.by_pytorch = model->proto->producer_name &&
					  strcmp(model->proto->producer_name, "pytorch") == 0;
		model->network = graph;
		model->numbers = numbers;
	} else {
		graph_release(&graph);
		arena_release(&numbers);
	}
	arena_release(&im.arena);
	return status;
}

/* Imports with the file's batch, or with one that suits every batch; else with a batch of 1, which
 * a constant of the file may fix although its input leaves it open. */
static enum prony_status import_for(struct onnx_model *model, bool fixed, struct error *err)
{
	struct error why = ERROR_INIT;
	struct graph one;
	enum prony_status status;

	if (model->facts.batch > 0)
		return import_with(model, model->facts.batch, fixed, err);
	status = import_with(model, OPEN_BATCH, fixed, &why);
	if (status == PRONY_OK) {
		status = onnx_model_graph(model, 1, &one, err);
		if (status == PRONY_OK)
			graph_release(&one);
		return status;
	}
	if (status != PRONY_UNSUPPORTED && status != PRONY_BAD_INPUT)
		return error_set(err, status, "%s", why.text);
	status = import_with(model, 1, fixed, err);
	if (status == PRONY_OK)
		model->facts.batch = 1;
	return status;
}

enum prony_status onnx_model_import(struct onnx_model *model, struct error *err)
{
	enum prony_status status = import_for(model, false, err);
	int fixable = 0;

	for (int i = 0; i < model->facts.input_count; i++)
		fixable += import_can_fix(&model->facts.inputs[i]);
	if (status == PRONY_UNSUPPORTED && fixable > 0 && fixable < model->facts.input_count &&
	    import_for(model, true, NULL) == PRONY_OK) {
		if (err)
			error_clear(err);
		return PRONY_OK;
	}
	return status;
}

enum prony_status onnx_model_graph(const struct onnx_model *model, int64_t batch, struct graph *out,
				   struct error *err)
{
	const struct graph *network = &model->network;
	struct error why = ERROR_INIT;
	enum prony_status status = PRONY_OK;

	if (batch == graph_batch(network)) {
		graph_copy_forward(network, out);
		return PRONY_OK;
	}
	if (model->facts.batch > 0 && (status = graph_samples_apart(network, &why)) != PRONY_OK)
		return error_set(err, status,
				 "%s: %s; the file has a fixed batch, and batch %lld would change "
				 "what it computes",
				 model->path, why.text, (long long)batch);
	status = graph_rebatch(network, batch, out, &why);
	return status == PRONY_OK ? status
				  : error_set(err, status, "%s: %s", model->path, why.text);
}

const struct onnx_notes *onnx_model_notes(const struct onnx_model *model)
{
	return &model->notes;
}

const struct tensor_set *onnx_model_weights(const struct onnx_model *model)
{
	return &model->weights;
}
