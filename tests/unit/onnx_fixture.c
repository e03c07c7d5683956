#include "tests/unit/onnx_fixture.h"

#include "graph/batch.h"
#include "parity/reference.h"
#include "unit_test.h"

void fixture_init(struct onnx_fixture *f, int64_t opset)
{
	memset(f, 0, sizeof(*f));
	arena_init(&f->arena, 0);
	onnx__model_proto__init(&f->model);
	onnx__graph_proto__init(&f->graph);
	onnx__operator_set_id_proto__init(&f->opset);
	f->opset.has_version = true;
	f->opset.version = opset;
	f->opsets[0] = &f->opset;
	f->model.has_ir_version = true;
	f->model.ir_version = 8;
	f->model.n_opset_import = 1;
	f->model.opset_import = f->opsets;
	f->model.graph = &f->graph;
	f->graph.node = f->nodes;
	f->graph.initializer = f->initializers;
	f->graph.input = f->inputs;
	f->graph.output = f->outputs;
}

void onnx_fixture_release(struct onnx_fixture *f)
{
	arena_release(&f->arena);
}

static Onnx__ValueInfoProto *new_info(struct onnx_fixture *f, const char *name, int rank,
				      const int64_t *dims)
{
	Onnx__ValueInfoProto *info = arena_alloc(&f->arena, sizeof(*info));
	Onnx__TypeProto *type = arena_alloc(&f->arena, sizeof(*type));
	Onnx__TypeProto__Tensor *tensor = arena_alloc(&f->arena, sizeof(*tensor));
	Onnx__TensorShapeProto *shape = arena_alloc(&f->arena, sizeof(*shape));

	onnx__value_info_proto__init(info);
	onnx__type_proto__init(type);
	onnx__type_proto__tensor__init(tensor);
	onnx__tensor_shape_proto__init(shape);
	shape->n_dim = (size_t)rank;
	shape->dim = arena_array(&f->arena, (size_t)rank + 1, sizeof(*shape->dim));
	for (int i = 0; i < rank; i++) {
		shape->dim[i] = arena_alloc(&f->arena, sizeof(**shape->dim));
		onnx__tensor_shape_proto__dimension__init(shape->dim[i]);
		if (dims[i] == 0)
			continue;
		shape->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
		shape->dim[i]->dim_value = dims[i];
	}
	tensor->has_elem_type = true;
	tensor->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
	tensor->shape = shape;
	type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	type->tensor_type = tensor;
	info->name = arena_strdup(&f->arena, name);
	info->type = type;
	return info;
}

void fixture_input(struct onnx_fixture *f, const char *name, int rank, const int64_t *dims)
{
	f->inputs[f->graph.n_input++] = new_info(f, name, rank, dims);
}

void fixture_input_type(struct onnx_fixture *f, int32_t type)
{
	f->inputs[f->graph.n_input - 1]->type->tensor_type->elem_type = type;
}

void fixture_output(struct onnx_fixture *f, const char *name)
{
	f->outputs[f->graph.n_output++] = new_info(f, name, 0, NULL);
}

static Onnx__TensorProto *new_tensor(struct onnx_fixture *f, const char *name, int32_t type,
				     int rank, const int64_t *dims)
{
	Onnx__TensorProto *tensor = arena_alloc(&f->arena, sizeof(*tensor));

	assert_true(f->graph.n_initializer < FIXTURE_MAX);
	onnx__tensor_proto__init(tensor);
	tensor->name = arena_strdup(&f->arena, name);
	tensor->has_data_type = true;
	tensor->data_type = type;
	tensor->n_dims = (size_t)rank;
	tensor->dims = arena_array(&f->arena, (size_t)rank + 1, sizeof(*tensor->dims));
	for (int i = 0; i < rank; i++)
		tensor->dims[i] = dims[i];
	f->initializers[f->graph.n_initializer++] = tensor;
	return tensor;
}

Onnx__TensorProto *fixture_floats(struct onnx_fixture *f, const char *name, int rank,
				  const int64_t *dims)
{
	struct shape shape = shape_make(rank, dims);
	size_t count = (size_t)shape_elements(&shape);
	Onnx__TensorProto *tensor =
		new_tensor(f, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, rank, dims);

	tensor->n_float_data = count;
	tensor->float_data = arena_array(&f->arena, count + 1, sizeof(float));
	for (size_t i = 0; i < count; i++)
		tensor->float_data[i] = 0.01f * (float)(i % 100 + 1);
	return tensor;
}

Onnx__TensorProto *fixture_ints(struct onnx_fixture *f, const char *name, int count,
				const int64_t *values)
{
	Onnx__TensorProto *tensor = new_tensor(f, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1,
					       (const int64_t[]){count});

	tensor->has_raw_data = true;
	tensor->raw_data.len = (size_t)count * sizeof(int64_t);
	tensor->raw_data.data = arena_alloc(&f->arena, tensor->raw_data.len + 1);
	memcpy(tensor->raw_data.data, values, tensor->raw_data.len);
	return tensor;
}

void fixture_number(struct onnx_fixture *f, const char *name, float value)
{
	fixture_floats(f, name, 0, NULL)->float_data[0] = value;
}

/* Splits at commas; "" is an omitted input. */
static char **split(struct onnx_fixture *f, const char *text, size_t *count)
{
	char **list = arena_array(&f->arena, strlen(text) + 1, sizeof(*list));

	*count = 0;
	for (;;) {
		size_t length = strcspn(text, ",");

		list[(*count)++] = arena_strndup(&f->arena, text, length);
		if (text[length] == '\0')
			return list;
		text += length + 1;
	}
}

Onnx__NodeProto *fixture_node(struct onnx_fixture *f, const char *op, const char *inputs,
			      const char *outputs)
{
	Onnx__NodeProto *node = arena_alloc(&f->arena, sizeof(*node));

	assert_true(f->graph.n_node < FIXTURE_MAX);
	onnx__node_proto__init(node);
	node->op_type = arena_strdup(&f->arena, op);
	node->name = arena_printf(&f->arena, "n.%s.%zu", op, f->graph.n_node);
	if (inputs[0] != '\0')
		node->input = split(f, inputs, &node->n_input);
	node->output = split(f, outputs, &node->n_output);
	node->attribute = arena_array(&f->arena, 8, sizeof(*node->attribute));
	f->nodes[f->graph.n_node++] = node;
	return node;
}

static Onnx__AttributeProto *new_attribute(struct onnx_fixture *f, const char *name)
{
	Onnx__NodeProto *node = f->nodes[f->graph.n_node - 1];
	Onnx__AttributeProto *attribute = arena_alloc(&f->arena, sizeof(*attribute));

	onnx__attribute_proto__init(attribute);
	attribute->name = arena_strdup(&f->arena, name);
	node->attribute[node->n_attribute++] = attribute;
	return attribute;
}

void fixture_int(struct onnx_fixture *f, const char *name, int64_t value)
{
	Onnx__AttributeProto *attribute = new_attribute(f, name);

	attribute->has_i = true;
	attribute->i = value;
}

void fixture_real(struct onnx_fixture *f, const char *name, float value)
{
	Onnx__AttributeProto *attribute = new_attribute(f, name);

	attribute->has_f = true;
	attribute->f = value;
}

void fixture_list(struct onnx_fixture *f, const char *name, int count, const int64_t *values)
{
	Onnx__AttributeProto *attribute = new_attribute(f, name);

	attribute->n_ints = (size_t)count;
	attribute->ints = arena_array(&f->arena, (size_t)count + 1, sizeof(int64_t));
	for (int i = 0; i < count; i++)
		attribute->ints[i] = values[i];
}

void fixture_text(struct onnx_fixture *f, const char *name, const char *value)
{
	Onnx__AttributeProto *attribute = new_attribute(f, name);

	attribute->has_s = true;
	attribute->s.len = strlen(value);
	attribute->s.data = (uint8_t *)arena_strdup(&f->arena, value);
}

void fixture_texts(struct onnx_fixture *f, const char *name, int times, const char *values)
{
	Onnx__AttributeProto *attribute = new_attribute(f, name);

	attribute->strings = arena_array(&f->arena, FIXTURE_MAX, sizeof(*attribute->strings));
	for (int i = 0; i < times; i++) {
		const char *at = arena_strdup(&f->arena, values);

		for (; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0'))
			attribute->strings[attribute->n_strings++] =
				(ProtobufCBinaryData){strcspn(at, ","), (uint8_t *)(uintptr_t)at};
	}
}

const uint8_t *fixture_pack(struct onnx_fixture *f, size_t *length)
{
	uint8_t *bytes;

	*length = onnx__model_proto__get_packed_size(&f->model);
	bytes = arena_alloc(&f->arena, *length + 1);
	onnx__model_proto__pack(&f->model, bytes);
	return bytes;
}

enum prony_status fixture_parse(struct onnx_fixture *f, struct onnx_model **out, struct error *err)
{
	size_t length;
	const uint8_t *bytes = fixture_pack(f, &length);

	return onnx_model_parse(bytes, length, "model.onnx", NULL, out, err);
}

enum prony_status fixture_build(struct onnx_fixture *f, int64_t batch, struct graph *graph,
				struct onnx_notes *notes, struct error *err)
{
	struct onnx_model *model = NULL;
	enum prony_status status = fixture_parse(f, &model, err);

	if (status == PRONY_OK)
		status = onnx_model_import(model, err);
	if (status == PRONY_OK)
		status = onnx_model_graph(model, batch, graph, err);
	if (status == PRONY_OK && notes)
		*notes = *onnx_model_notes(model);
	onnx_model_free(model);
	return status;
}

static void fill(const struct graph *graph, int index, struct arena *arena, struct tensor *x)
{
	const struct value *value = &graph->values[index];
	int64_t bound = graph_index_bound(graph, index);
	struct error err = ERROR_INIT;

	check(tensor_new(arena, value->name, value->dtype, &value->shape, x, &err), &err);
	for (int64_t i = 0; i < shape_elements(&x->shape); i++) {
		if (value->dtype == DTYPE_F32)
			((float *)x->data)[i] = (float)sin((double)i + 1);
		else
			((int64_t *)x->data)[i] = bound > 0 ? i % bound : i;
	}
}

static void feed(struct reference *reference, const struct graph *graph, struct arena *arena)
{
	struct error err = ERROR_INIT;
	struct tensor inputs[ONNX_MAX_INPUTS];
	int count = graph_inputs(graph, NULL, 0);

	for (int i = 0; i < count; i++)
		fill(graph, graph_input(graph, i), arena, &inputs[i]);
	check(reference_feed(reference, (struct batch){inputs, NULL, count, 0}, &err), &err);
}

const double *fixture_logits(struct onnx_fixture *f, int64_t batch, int64_t *count)
{
	struct error err = ERROR_INIT;
	struct onnx_model *model = NULL;
	struct reference reference;
	struct recipe recipe;
	struct graph graph;
	double *copy;

	if (fixture_parse(f, &model, &err) != PRONY_OK ||
	    onnx_model_import(model, &err) != PRONY_OK ||
	    onnx_model_graph(model, batch, &graph, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	check(reference_init(&reference, &graph, onnx_model_weights(model), &err), &err);
	feed(&reference, &graph, &f->arena);
	check(reference_step(&reference, &recipe, false, &err), &err);
	const double *logits = reference_value(&reference, graph.logits, count);

	copy = arena_array(&f->arena, (size_t)*count, sizeof(*copy));
	memcpy(copy, logits, (size_t)*count * sizeof(*copy));
	reference_release(&reference);
	graph_release(&graph);
	onnx_model_free(model);
	return copy;
}

void fixture_expect_refusal(struct onnx_fixture *f, int64_t batch, enum prony_status expected,
			    const char *const *parts, size_t count)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	enum prony_status status = fixture_build(f, batch, &graph, NULL, &err);

	if (status == PRONY_OK)
		graph_release(&graph);
	if (status != expected)
		fail_msg("status %d instead of %d: %s", status, expected, err.text);
	for (size_t i = 0; i < count; i++) {
		if (strstr(err.text, parts[i]) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", err.text, parts[i]);
	}
}
