/* Reads an ONNX file: parses its messages, initializers and input. */
#include "onnx/import_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"
#include "graph/edit_internal.h"
#include "graph/input_fill.h"
#include "onnx/ports_internal.h"

/* The most that protobuf can hold in one message. */
#define MODEL_MAX_BYTES ((size_t)INT32_MAX)

static enum prony_status read_opset(struct onnx_model *model, struct error *err)
{
	const Onnx__ModelProto *proto = model->proto;

	for (size_t i = 0; i < proto->n_opset_import; i++) {
		if (onnx_is_own_domain(proto->opset_import[i]->domain))
			model->facts.opset = proto->opset_import[i]->version;
	}
	if (model->facts.opset < ONNX_MIN_OPSET || model->facts.opset > ONNX_MAX_OPSET)
		return error_set(err, PRONY_UNSUPPORTED,
				 "it uses opset %lld; supported are %d to %d. Export it again, or "
				 "convert it with onnx.version_converter",
				 (long long)model->facts.opset, ONNX_MIN_OPSET, ONNX_MAX_OPSET);
	return PRONY_OK;
}

/* External data is part of the model: its digest is joined to the file's. */
static void add_digest(struct onnx_facts *facts, const struct constant *numbers)
{
	char both[2 * sizeof(facts->digest)];
	size_t size = numbers->is_float ? sizeof(float) : sizeof(int64_t);
	const void *bytes =
		numbers->is_float ? (const void *)numbers->floats : (const void *)numbers->ints;

	memcpy(both, facts->digest, sizeof(facts->digest));
	digest_bytes(bytes, (size_t)numbers->count * size, both + sizeof(facts->digest));
	digest_bytes(both, sizeof(both), facts->digest);
}

/* Limits the external data in all, before any is read. A hostile file may name the same bytes many
 * times, or a sparse file. */
static enum prony_status check_outside(const struct onnx_model *model, struct error *err)
{
	int64_t most = memory_physical_bytes() / 2, sum = 0;

	for (int i = 0; i < model->definition_count; i++) {
		const struct definition *definition = &model->definitions[i];

		if (definition->kind != DEFINED_BY_INITIALIZER || definition->users == 0)
			continue;
		sum += onnx_tensor_outside_bytes(model->graph->initializer[definition->index]);
		/* Each is at most INT64_MAX / 8, so the sum cannot overflow before this test. */
		if (sum > most)
			return error_set(err, PRONY_BAD_INPUT,
					 "its external data exceeds %lld MiB, half of this "
					 "machine's memory, at tensor '%.100s'",
					 (long long)(most >> 20), definition->name);
	}
	return PRONY_OK;
}

static enum prony_status read_initializers(struct onnx_model *model,
					   const struct onnx_folders *folders, struct error *err)
{
	const Onnx__GraphProto *graph = model->graph;

	model->initializers =
		arena_array(&model->arena, graph->n_initializer + 1, sizeof(*model->initializers));
	for (int i = 0; i < model->definition_count; i++) {
		const struct definition *definition = &model->definitions[i];
		struct constant *out;
		enum prony_status status;

		if (definition->kind != DEFINED_BY_INITIALIZER || definition->users == 0)
			continue;
		out = &model->initializers[definition->index];
		status = onnx_tensor_read(graph->initializer[definition->index], definition->name,
					  folders, &model->arena, out, err);
		if (status != PRONY_OK)
			return status;
		if (out->count < 0)
			return error_set(
				err, PRONY_UNSUPPORTED,
				"tensor '%.200s' has element type %d, which is not supported",
				definition->name, out->type);
		if (out->count > 0 && graph->initializer[definition->index]->data_location ==
					      ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
			add_digest(&model->facts, out);
		out->initializer = definition->index;
		model->weight_bytes += 8 * out->count;
	}
	return PRONY_OK;
}

/* Dimension `axis` is the batch; all others must be fixed. Writes a reason to `problems` if a graph
 * cannot have the shape. */
static enum prony_status read_dims(const Onnx__TensorShapeProto *shape, const char *name,
				   size_t axis, int64_t *batch, struct shape *sample,
				   struct strbuf *problems, struct error *err)
{
	/* struct network holds four dimensions of a sample. */
	if (shape->n_dim < 1 || shape->n_dim > 5) {
		strbuf_printf(problems,
			      "; its input '%.100s' has %zu dimensions; 1 to 5 are supported, "
			      "including the batch",
			      name, shape->n_dim);
		return PRONY_OK;
	}
	sample->rank = (int)shape->n_dim - 1;
	for (size_t i = 0; i < shape->n_dim; i++) {
		const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
		/* Some exporters write -1 for open dimensions. */
		bool fixed =
			dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
			dim->dim_value != -1;

		if (fixed && (dim->dim_value < 1 || dim->dim_value > GRAPH_MAX_DIM))
			return error_set(
				err, PRONY_BAD_INPUT,
				"dimension %zu of its input '%.200s' is %lld; it must be 1 "
				"to %d",
				i, name, (long long)dim->dim_value, GRAPH_MAX_DIM);
		if (!fixed && i != axis)
			strbuf_printf(problems,
				      "; dimension %zu of its input '%.100s' is not fixed", i,
				      name);
		if (i == axis)
			*batch = fixed ? dim->dim_value : 0;
		else
			sample->dims[i - (i > axis)] = fixed ? dim->dim_value : 1;
	}
	return PRONY_OK;
}

/* The type of an input in the graph; false for one that a graph cannot have. */
static bool read_type(int32_t type, enum dtype *out)
{
	switch (type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
	case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
	case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
		*out = DTYPE_F32;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
	case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
		*out = DTYPE_I64;
		return true;
	case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
		*out = DTYPE_I32;
		return true;
	default:
		return false;
	}
}

/* What the user fills an input with; the reader of the command line checks the text. */
static struct input_fill find_fill(const char *name, const struct onnx_given *given)
{
	struct input_fill fill = input_fill_by_name(name);
	size_t length = strlen(name);

	for (size_t i = 0; given && i < given->fill_count; i++) {
		const char *text = given->fills[i];

		if (strncmp(text, name, length) == 0 && text[length] == '=')
			input_fill_parse(text + length + 1, &fill, NULL);
	}
	return fill;
}

/* How many integers an input may have: what the file says, or the user. */
static int64_t integer_rows(const struct onnx_model *model, const struct onnx_input *input)
{
	int64_t rows = onnx_table_rows(model->graph, input->file_name);

	if (input->type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL ||
	    (rows == 0 && onnx_named_mask(input->file_name)))
		return 2;
	if (rows == 0 && input->fill.kind == INPUT_RANGE && input->fill.high < ONNX_MAX_INTEGERS)
		return input->fill.high + 1;
	return rows < ONNX_MAX_INTEGERS ? rows : 0;
}

/* The dimension of an input that is the batch; 0 where the inputs could not be read. */
static int batch_axis(const struct onnx_ports *ports, const char *name)
{
	for (size_t i = 0; i < ports->inputs.count; i++)
		if (strcmp(ports->inputs.tensors[i].name, name) == 0)
			return ports->batch[i];
	return 0;
}

static enum prony_status read_input(struct onnx_model *model, const struct onnx_given *given,
				    const struct onnx_ports *ports, int i, struct strbuf *problems,
				    struct error *err)
{
	const struct definition *input = &model->definitions[model->inputs[i]];
	const Onnx__TypeProto *type = model->graph->input[input->index]->type;
	struct onnx_input *out = &model->facts.inputs[i];
	const Onnx__TypeProto__Tensor *tensor;
	int64_t batch = 0;
	enum prony_status status;

	if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
	    type->tensor_type->shape == NULL)
		return error_set(err, PRONY_BAD_INPUT,
				 "its input '%.200s' must be a tensor with a shape", input->name);
	tensor = type->tensor_type;
	/* A single input gets the name that it has in the zoo. */
	out->name = model->facts.input_count == 1 ? "input" : input->name;
	out->file_name = input->name;
	out->fill = find_fill(input->name, given);
	out->type = tensor->elem_type;
	if (!read_type(tensor->elem_type, &out->dtype))
		strbuf_printf(problems,
			      "; its input '%.100s' has the element type %s; supported are float, "
			      "float16, bfloat16, double, int32, int64 and bool",
			      input->name, onnx_type_name(tensor->elem_type));
	if (out->dtype != DTYPE_F32)
		out->rows = integer_rows(model, out);
	out->batch_axis = batch_axis(ports, input->name);
	if (out->batch_axis > 0 && out->dtype != DTYPE_F32)
		strbuf_printf(
			problems,
			"; its input '%.100s', integers, must have the batch as first dimension",
			input->name);
	status = read_dims(tensor->shape, input->name, (size_t)out->batch_axis, &batch,
			   &out->sample, problems, err);
	if (status == PRONY_OK && i > 0 && batch != model->facts.batch)
		strbuf_printf(problems,
			      "; its input '%.100s' has another batch than the "
			      "other inputs",
			      input->name);
	model->facts.batch = batch;
	return status;
}

/* Sets the dimensions that the user gave. If the inputs cannot be read at all, the reason is found
 * later. */
static enum prony_status fix_dims(struct onnx_model *model, const struct onnx_given *given,
				  struct onnx_ports *ports, struct strbuf *hint, struct error *err)
{
	bool *used = arena_array(&model->arena, given ? given->shape_count + 1 : 1, sizeof(*used));
	enum prony_status status;

	if (onnx_ports_of(model->graph, &model->arena, ports, NULL) != PRONY_OK)
		return PRONY_OK;
	status = given ? onnx_ports_fix(ports, given->shapes, given->shape_count, used, err)
		       : PRONY_OK;
	if (status == PRONY_OK)
		onnx_ports_apply(ports, model->graph);
	onnx_ports_hint(ports, hint);
	return status;
}

/* All that a graph cannot have is named at once: inputs, and operators. */
static enum prony_status read_inputs(struct onnx_model *model, const struct onnx_given *given,
				     struct error *err)
{
	struct onnx_ports ports = {0};
	struct strbuf problems, hint;
	enum prony_status status;

	strbuf_init(&problems, 0);
	strbuf_init(&hint, 0);
	status = fix_dims(model, given, &ports, &hint, err);
	if (model->input_total > ONNX_MAX_INPUTS)
		strbuf_printf(&problems, "; it has %d inputs; at most %d are supported",
			      model->input_total, ONNX_MAX_INPUTS);
	for (int i = 0; status == PRONY_OK && i < model->facts.input_count; i++)
		status = read_input(model, given, &ports, i, &problems, err);
	if (hint.length > 0 && problems.length > 0)
		strbuf_printf(&problems, ": give the shapes for one sample, for example%s",
			      strbuf_text(&hint));
	if (status == PRONY_OK && problems.length > 0) {
		import_list_missing(model, &problems);
		status = error_set(err, PRONY_UNSUPPORTED, "%s", strbuf_text(&problems) + 2);
	}
	strbuf_release(&problems);
	strbuf_release(&hint);
	return status;
}

/* protobuf-c reports lack of memory as a damaged message; memory_alloc ends the program instead. */
static void *allocate(void *context, size_t bytes)
{
	(void)context;
	return memory_alloc(bytes);
}

static void release(void *context, void *memory)
{
	(void)context;
	free(memory);
}

/* Parses the messages. The raw data of initializers stays in the file's bytes. */
static void unpack(struct onnx_model *model, size_t length)
{
	ProtobufCAllocator allocator = {.alloc = allocate, .free = release};
	size_t thin_length;
	uint8_t *thin =
		onnx_detach_raw(model->bytes, length, &model->arena, &model->raws, &thin_length);
	const struct raw_list *raws = &model->raws;

	model->proto = onnx__model_proto__unpack(&allocator, thin ? thin_length : length,
						 thin ? thin : model->bytes);
	free(thin);
	for (size_t i = 0; model->proto && i < raws->count; i++) {
		const struct raw *raw = &raws->items[i];
		Onnx__TensorProto *tensor = model->proto->graph->initializer[raw->initializer];

		/* Raw data may occur twice; a small one was copied. */
		if (i == 0 || raws->items[i - 1].initializer != raw->initializer)
			free(tensor->raw_data.data);
		tensor->has_raw_data = 1;
		tensor->raw_data = (ProtobufCBinaryData){raw->length, raw->bytes};
	}
	if (raws->count == 0) {
		free(model->bytes);
		model->bytes = NULL;
	}
}

static enum prony_status read_model(struct onnx_model *model, size_t length,
				    const struct onnx_folders *folders,
				    const struct onnx_given *given, struct error *err)
{
	enum prony_status status = onnx_check_wire(model->bytes, length, err);

	if (status != PRONY_OK)
		return status;
	unpack(model, length);
	if (model->proto == NULL)
		return error_set(err, PRONY_BAD_INPUT,
				 "it is not an ONNX model, or it is truncated or damaged");
	model->graph = model->proto->graph;
	if (model->graph == NULL)
		return error_set(err, PRONY_BAD_INPUT,
				 "it contains no graph; is it a complete ONNX model?");
	status = read_opset(model, err);
	if (status == PRONY_OK)
		status = onnx_upgrade(model, err);
	if (status == PRONY_OK)
		status = onnx_resolve_names(model, err);
	if (status == PRONY_OK)
		status = check_outside(model, err);
	if (status == PRONY_OK)
		status = read_initializers(model, folders, err);
	if (status == PRONY_OK)
		status = read_inputs(model, given, err);
	return status;
}

/* Takes ownership of the bytes, also on error. */
static enum prony_status parse(void *bytes, size_t length, const char *path,
			       const struct onnx_folders *folders, const struct onnx_given *given,
			       struct onnx_model **out, struct error *err)
{
	struct error why = ERROR_INIT;
	struct onnx_model *model = memory_alloc(sizeof(*model));
	enum prony_status status;

	*model = (struct onnx_model){.bytes = bytes};
	arena_init(&model->arena, 0);
	model->path = arena_strdup(&model->arena, path);
	digest_bytes(bytes, length, model->facts.digest);
	status = length > MODEL_MAX_BYTES
			 ? error_set(&why, PRONY_BAD_INPUT, "it is larger than 2 GiB")
			 : read_model(model, length, folders, given, &why);
	if (status != PRONY_OK) {
		onnx_model_free(model);
		return status == PRONY_USAGE ? error_set(err, status, "%s", why.text)
					     : error_set(err, status, "%s: %s", path, why.text);
	}
	*out = model;
	return PRONY_OK;
}

enum prony_status onnx_model_parse(const void *bytes, size_t length, const char *path,
				   const char *folder, struct onnx_model **out, struct error *err)
{
	void *copy = memory_alloc(length);
	const struct onnx_folders folders = {.beside = folder};

	if (length > 0)
		memcpy(copy, bytes, length);
	return parse(copy, length, path, folder ? &folders : NULL, NULL, out, err);
}

enum prony_status onnx_model_open(const char *path, const struct onnx_given *given,
				  struct onnx_model **out, struct error *err)
{
	struct arena arena;
	struct onnx_folders folders;
	char *bytes = NULL;
	size_t length = 0;
	enum prony_status status = file_read(path, MODEL_MAX_BYTES, &bytes, &length, err);

	arena_init(&arena, 0);
	folders = onnx_folders_of(path, &arena);
	if (status == PRONY_OK)
		status = parse(bytes, length, path, &folders, given, out, err);
	arena_release(&arena);
	return status;
}

void onnx_model_free(struct onnx_model *model)
{
	if (model == NULL)
		return;
	for (size_t i = 0; model->proto && i < model->raws.count; i++)
		model->proto->graph->initializer[model->raws.items[i].initializer]->raw_data.data =
			NULL;
	if (model->proto != NULL)
		onnx__model_proto__free_unpacked(model->proto, NULL);
	graph_release(&model->network);
	arena_release(&model->numbers);
	arena_release(&model->arena);
	free(model->bytes);
	free(model);
}

const struct onnx_facts *onnx_model_facts(const struct onnx_model *model)
{
	return &model->facts;
}
