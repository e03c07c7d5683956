/*
 * The way of an ONNX file into the IR: one pass over its nodes in order. What is constant is
 * computed; everything else is appended to the graph. What cannot be is collected, so that the user
 * hears of all of it at once.
 */
#include "onnx/import.h"

#include <string.h>

#include "base/memory.h"
#include "graph/edit_internal.h"
#include "graph/operator_rows_internal.h"
#include "onnx/import_internal.h"

/*
 * What computed constants may take beside what the file itself holds. A file may have all its
 * weights from ConstantOfShape, so this is what a large network has, and no bound that one meets.
 */
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
	{"Clip", import_clip},
	{"Concat", import_concat},
	{"Conv", import_conv},
	{"Dropout", import_dropout},
	{"Expand", import_expand},
	{"Flatten", import_reshape},
	{"Gather", import_gather},
	{"Gemm", import_gemm},
	{"GlobalAveragePool", import_global_pool},
	{"GlobalMaxPool", import_global_pool},
	{"Identity", import_identity},
	{"LRN", import_lrn},
	{"LogSoftmax", import_softmax},
	{"MatMul", import_matmul},
	{"MaxPool", import_pool},
	{"Pad", import_pad},
	{"Pow", import_power},
	{"ReduceMean", import_reduce_mean},
	{"Reshape", import_reshape},
	{"Slice", import_slice},
	{"Softmax", import_softmax},
	{"Split", import_split},
	{"Squeeze", import_reshape},
	{"Sum", import_sum},
	{"Transpose", import_transpose},
	{"Unsqueeze", import_reshape},
};

/* Functions of one element, or two that are broadcast, need no row here: the operator's own says
 * so.
 */
static const struct import_row *find_row(const char *op)
{
	static const struct import_row unary = {NULL, import_unary};
	static const struct import_row binary = {NULL, import_elementwise};
	enum op known = operator_from_name(op);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(op, rows[i].op) == 0)
			return &rows[i];
	}
	if (known != OP_COUNT && operator_row(known)->elementwise)
		return &unary;
	return known != OP_COUNT && operator_row(known)->broadcast ? &binary : NULL;
}

/* Constant: one of several attributes holds the numbers. */
static enum prony_status read_constant(struct importer *im, const struct file_node *node,
				       struct constant *out, struct error *err)
{
	const Onnx__AttributeProto *a =
		node->proto->n_attribute == 1 ? node->proto->attribute[0] : NULL;
	const char *name = a && a->name ? a->name : "";
	struct constant c = {.type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, .initializer = -1};

	if (strcmp(name, "value") == 0 && a->t != NULL)
		return onnx_tensor_read(a->t, node->name, NULL, &im->numbers, out, err);
	c.is_float = strncmp(name, "value_float", 11) == 0;
	if (strcmp(name, "value_float") == 0 && a->has_f) {
		c.floats = &a->f;
		c.count = 1;
	} else if (strcmp(name, "value_floats") == 0) {
		c.floats = a->floats;
		c.count = (int64_t)a->n_floats;
	} else if (strcmp(name, "value_int") == 0 && a->has_i) {
		c.ints = &a->i;
		c.count = 1;
	} else if (strcmp(name, "value_ints") == 0) {
		c.ints = a->ints;
		c.count = (int64_t)a->n_ints;
	} else {
		return error_set(err, PRONY_BAD_INPUT,
				 "its value is neither numbers nor a dense tensor of them");
	}
	if (!c.is_float)
		c.type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
	c.shape.rank = name[strlen(name) - 1] == 's';
	c.shape.dims[0] = c.count;
	*out = c;
	return PRONY_OK;
}

static void set_constant(struct importer *im, const struct file_node *node, size_t i,
			 const struct constant *constant)
{
	if (node->outputs[i] != NAME_OMITTED)
		im->slots[node->outputs[i]] =
			(struct slot){.kind = SLOT_CONSTANT, .constant = *constant};
}

static void take_constant(struct importer *im, const struct file_node *node)
{
	struct error why = ERROR_INIT;
	struct constant constant;

	if (read_constant(im, node, &constant, &why) != PRONY_OK)
		import_refuse(im, node, "%s", why.text);
	else if (constant.count < 0)
		import_refuse(im, node, "its type (%d) has no numbers", constant.type);
	else if (node->output_count > 0)
		set_constant(im, node, 0, &constant);
}

/* Shape, and Size of what is not constant: all shapes are known. */
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
	shape = slot->kind == SLOT_VALUE ? *import_shape(im, slot->value) : slot->constant.shape;
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
	set_constant(im, node, 0, &out);
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
		.arena = &im->numbers,
		.err = &why,
	};

	for (size_t i = 0; i < node->input_count; i++)
		inputs[i] = import_constant(im, node, i);
	if (onnx_fold(&fold) != PRONY_OK) {
		import_refuse(im, node, "%s", why.text);
		return;
	}
	for (size_t i = 0; i < node->output_count; i++)
		set_constant(im, node, i, &fold.outputs[i]);
}

/* LOST when an input is: whoever is to blame has been noted. */
static enum slot_kind inputs_kind(const struct importer *im, const struct file_node *node)
{
	enum slot_kind kind = SLOT_CONSTANT;

	for (size_t i = 0; i < node->input_count; i++) {
		const struct slot *slot = import_slot(im, node, i);

		if (slot && (slot->kind == SLOT_LOST || slot->kind == SLOT_EMPTY))
			return SLOT_LOST;
		if (slot && slot->kind == SLOT_VALUE)
			kind = SLOT_VALUE;
	}
	return kind;
}

/* Of anything: all shapes are known. */
static bool is_shape(const Onnx__NodeProto *proto)
{
	return !onnx_is_foreign(proto) &&
	       (strcmp(proto->op_type, "Shape") == 0 || strcmp(proto->op_type, "Size") == 0);
}

/* Then its result can never be computed beforehand, whatever becomes of its inputs. */
static bool depends_on_data(const struct importer *im, const struct file_node *node)
{
	if (is_shape(node->proto))
		return false;
	for (size_t i = 0; i < node->input_count; i++) {
		const struct slot *slot = import_slot(im, node, i);

		if (slot && (slot->kind == SLOT_VALUE || slot->from_data))
			return true;
	}
	return false;
}

static void translate(struct importer *im, const struct file_node *node)
{
	const char *op = node->proto->op_type;
	bool foreign = onnx_is_foreign(node->proto), shape = is_shape(node->proto);
	const struct import_row *row = foreign ? NULL : find_row(op);
	bool folds = !foreign && onnx_can_fold(op);
	enum slot_kind kind = inputs_kind(im, node);

	if (!foreign && strcmp(op, "Constant") == 0)
		take_constant(im, node);
	else if (kind != SLOT_LOST && shape)
		take_shape(im, node);
	else if (kind == SLOT_CONSTANT && folds)
		fold_node(im, node);
	else if (kind != SLOT_LOST && row != NULL)
		row->import(im, node);
	else if (row == NULL &&
		 (kind != SLOT_LOST || !(shape || (folds && !depends_on_data(im, node)))))
		im->refusals[im->refusal_count++] = (struct refusal){.node = node};
}

/*
 * What is computed must grow with the batch, or a constant of the file holds the old one somewhere.
 */
static void check_batch(struct importer *im, const struct file_node *node, size_t i)
{
	struct slot *slot = &im->slots[node->outputs[i]];
	const struct shape *before = &im->file_shapes[node->outputs[i]];
	const struct shape *now = import_shape(im, slot->value);
	char before_text[128], now_text[128];

	/* Both are bounded by what a tensor may have, and the batches by GRAPH_MAX_DIM. */
	if (before->rank == now->rank &&
	    saturating_multiply(shape_elements(before), im->batch) ==
		    saturating_multiply(shape_elements(now), im->file_batch))
		return;
	shape_text(before, before_text, sizeof(before_text));
	shape_text(now, now_text, sizeof(now_text));
	import_refuse(im, node,
		      "the file fixes batch %lld, and its result does not follow batch %lld: %s "
		      "becomes %s",
		      (long long)im->file_batch, (long long)im->batch, before_text, now_text);
	*slot = (struct slot){.kind = SLOT_LOST, .from_data = true};
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
		if (slot->kind == SLOT_VALUE && im->file_shapes != NULL)
			check_batch(im, node, i);
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

/* The graph's name: the file's, without its folder and what names may not hold. */
static const char *graph_name(struct importer *im)
{
	const char *slash = strrchr(im->model->path, '/');
	const char *name = slash ? slash + 1 : im->model->path;

	return graph_check_name("graph", name, NULL) == PRONY_OK ? name : "model.onnx";
}

/* Half of a small machine: a file of some hundred bytes may ask for all of it. */
static size_t numbers_room(void)
{
	int64_t half = memory_physical_bytes() / 2;

	return half < (int64_t)NUMBERS_MIN_BYTES ? (size_t)half : NUMBERS_MIN_BYTES;
}

static void importer_init(struct importer *im, const struct onnx_model *model, int64_t batch,
			  struct graph *graph)
{
	size_t count = (size_t)model->definition_count;

	*im = (struct importer){
		.model = model,
		.batch = batch,
		.builder = {.graph = graph, .error = ERROR_INIT},
	};
	arena_init(&im->arena, 0);
	arena_init(&im->numbers, numbers_room() + 2 * (size_t)model->weight_bytes);
	graph_init(graph, graph_name(im));
	im->slots = arena_array(&im->arena, count + 1, sizeof(*im->slots));
	im->done = arena_array(&im->arena, model->node_count + 1, sizeof(*im->done));
	/* A node refuses at most itself and each of its outputs. */
	im->refusals = arena_array(&im->arena, 2 * (count + model->node_count) + 16,
				   sizeof(*im->refusals));
	im->uses = arena_array(&im->arena, model->graph->n_initializer + 1, sizeof(*im->uses));
}

static void importer_release(struct importer *im)
{
	arena_release(&im->arena);
	arena_release(&im->numbers);
}

/* One pass; the output's slot and the refusals say how it went. */
static void run_pass(struct importer *im)
{
	const struct onnx_model *model = im->model;
	int input = build_input(&im->builder, im->batch, model->facts.sample.rank,
				model->facts.sample.dims);

	take_initializers(im);
	if (input == VALUE_NONE)
		return;
	im->slots[model->input] = (struct slot){.kind = SLOT_VALUE, .value = input};
	for (size_t i = 0; i < model->node_count; i++) {
		if (model->nodes[i].needed && !im->done[i])
			take_node(im, i);
	}
}

static int64_t largest_dim(const struct shape *shape, int from)
{
	int64_t largest = 0;

	for (int i = from; i < shape->rank; i++)
		largest = shape->dims[i] > largest ? shape->dims[i] : largest;
	return largest;
}

/* N x classes, or something that is so but for ones. */
static enum prony_status find_logits(struct importer *im, int *logits, struct error *err)
{
	const struct onnx_model *model = im->model;
	const struct slot *slot = &im->slots[model->output];
	const struct definition *definition = &model->definitions[model->output];
	struct shape shape, flat = {.rank = 2};
	char text[128];

	if (slot->kind != SLOT_VALUE || slot->value == im->builder.graph->input)
		return error_set(err, PRONY_UNSUPPORTED,
				 "%s: its output '%.100s' is not computed from the data",
				 model->path, definition->name);
	shape = *import_shape(im, slot->value);
	flat.dims[0] = im->batch;
	flat.dims[1] = largest_dim(&shape, 1);
	if (shape.rank < 2 || shape.dims[0] != im->batch ||
	    shape_elements(&flat) != shape_elements(&shape)) {
		shape_text(&shape, text, sizeof(text));
		return error_set(err, PRONY_UNSUPPORTED,
				 "%s: its output '%.100s' is %s; the loss needs batch x classes",
				 model->path, definition->name, text);
	}
	/* The node that computes the output gives its name to the Flatten behind it. */
	*logits = import_reshaped(im, &model->nodes[definition->index], slot->value, &flat);
	return PRONY_OK;
}

static enum prony_status finish(struct importer *im, struct error *err)
{
	struct error why = ERROR_INIT;
	int logits = VALUE_NONE;
	enum prony_status status;

	if (im->builder.error.code != PRONY_OK)
		return error_set(err, PRONY_BAD_INPUT, "%s: %s", im->model->path,
				 im->builder.error.text);
	if (im->refusal_count > 0)
		return import_report(im, err);
	status = find_logits(im, &logits, err);
	if (status == PRONY_OK && im->refusal_count > 0)
		return import_report(im, err);
	if (status == PRONY_OK && build_finish(&im->builder, logits, &why) != PRONY_OK)
		status = error_set(err, PRONY_UNSUPPORTED, "%s: %s", im->model->path, why.text);
	return status;
}

static enum prony_status check_samples(const struct onnx_model *model, const struct graph *graph,
				       struct error *err)
{
	struct error why = ERROR_INIT;

	if (onnx_samples_apart(graph, &why) != PRONY_OK)
		return error_set(err, PRONY_UNSUPPORTED, "%s: %s", model->path, why.text);
	return PRONY_OK;
}

/* The shapes of everything with the file's own batch. */
static enum prony_status find_file_shapes(const struct onnx_model *model, struct shape *shapes,
					  struct error *err)
{
	struct importer im;
	struct graph graph;
	enum prony_status status;

	importer_init(&im, model, model->facts.batch, &graph);
	run_pass(&im);
	for (int i = 0; i < model->definition_count; i++) {
		if (im.slots[i].kind == SLOT_VALUE)
			shapes[i] = *import_shape(&im, im.slots[i].value);
	}
	status = finish(&im, err);
	if (status == PRONY_OK)
		status = check_samples(model, &graph, err);
	importer_release(&im);
	graph_release(&graph);
	return status;
}

/* Builds; `im` has the numbers of the weights then, and is to be released with the graph. */
static enum prony_status build(const struct onnx_model *model, int64_t batch, struct importer *im,
			       struct graph *graph, struct arena *arena, struct error *err)
{
	int64_t fixed = model->facts.batch;
	struct shape *shapes = NULL;
	enum prony_status status = PRONY_OK;

	if (fixed > 0 && fixed != batch) {
		shapes = arena_array(arena, (size_t)model->definition_count + 1, sizeof(*shapes));
		status = find_file_shapes(model, shapes, err);
	}
	if (status != PRONY_OK)
		return status;
	importer_init(im, model, batch, graph);
	im->file_shapes = shapes;
	im->file_batch = fixed;
	run_pass(im);
	status = finish(im, err);
	if (status == PRONY_OK && shapes != NULL)
		status = check_samples(model, graph, err);
	if (status != PRONY_OK) {
		importer_release(im);
		graph_release(graph);
	}
	return status;
}

enum prony_status onnx_model_build(const struct onnx_model *model, int64_t batch, struct graph *out,
				   struct onnx_notes *notes, struct error *err)
{
	struct importer im;
	struct graph graph;
	struct arena arena;
	enum prony_status status;

	arena_init(&arena, 0);
	status = build(model, batch, &im, &graph, &arena, err);
	if (status == PRONY_OK) {
		im.notes.outputs_left_out = (int)model->graph->n_output - 1;
		if (notes != NULL)
			*notes = im.notes;
		*out = graph;
		importer_release(&im);
	}
	arena_release(&arena);
	return status;
}

static enum prony_status copy_weights(const struct importer *im, const struct graph *built,
				      const struct graph *graph, struct arena *arena,
				      struct tensor_set *out, struct error *err)
{
	struct tensor_set set = {.count = 0};

	set.tensors = arena_array(arena, (size_t)built->value_count + 1, sizeof(*set.tensors));
	for (int i = 0; i < built->value_count; i++) {
		const struct value *value = &built->values[i];
		struct tensor *tensor = &set.tensors[set.count];
		enum prony_status status;

		if (value->kind != VALUE_PARAMETER && value->kind != VALUE_STATE)
			continue;
		if (i >= graph->value_count || strcmp(graph->values[i].name, value->name) != 0 ||
		    !shape_equal(&graph->values[i].shape, &value->shape))
			return error_set(err, PRONY_INTERNAL, "%s: weights of another graph",
					 im->model->path);
		status = tensor_new(arena, value->name, DTYPE_F32, &value->shape, tensor, err);
		if (status != PRONY_OK)
			return status;
		memcpy(tensor->data, im->weights[i].floats, (size_t)tensor_bytes(tensor));
		set.count++;
	}
	*out = set;
	return PRONY_OK;
}

enum prony_status onnx_model_weights(const struct onnx_model *model, const struct graph *graph,
				     struct arena *arena, struct tensor_set *out, struct error *err)
{
	struct importer im;
	struct graph built;
	struct arena scratch;
	enum prony_status status;

	arena_init(&scratch, 0);
	status = build(model, graph_batch(graph), &im, &built, &scratch, err);
	if (status == PRONY_OK) {
		status = copy_weights(&im, &built, graph, arena, out, err);
		importer_release(&im);
		graph_release(&built);
	}
	arena_release(&scratch);
	return status;
}
