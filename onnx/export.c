/* Writes a graph for evaluation, with its weights, as an ONNX file. */
#include <stdlib.h>
#include <string.h>

#include "onnx/export_internal.h"

/* A file has the lowest opset from 17 on with all its operators, and this IR version. */
#define ONNX_OPSET 17
static int ir_version(int opset)
{
	return opset < 19 ? 8 : opset < 21 ? 9 : 10;
}

/* The most that protobuf can hold in one message. */
#define ONNX_MAX_BYTES INT32_MAX

/* Whether the logits depend on an output from `first` on. */
static bool is_needed(const struct exporter *e, const struct node *node, int first)
{
	for (int i = first; i < node->output_count; i++) {
		if (node->outputs[i] != VALUE_NONE && e->needed[node->outputs[i]])
			return true;
	}
	return false;
}

/* Marks the values that the logits depend on, from the last node to the first. A value that is left
 * out gets the value that replaces it. */
static enum prony_status find_needed(struct exporter *e)
{
	const struct graph *graph = e->graph;

	e->alias = arena_array(&e->arena, (size_t)graph->value_count, sizeof(*e->alias));
	e->needed = arena_array(&e->arena, (size_t)graph->value_count, sizeof(*e->needed));
	for (int i = 0; i < graph->value_count; i++)
		e->alias[i] = i;
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (operator_row(node->op)->onnx_export == ONNX_EXPORT_NOTHING)
			e->alias[node->outputs[0]] = e->alias[node->inputs[0]];
	}
	export_find_attention(e);
	if (export_mark_caches(e) != PRONY_OK)
		return e->err->code;
	e->needed[e->alias[graph->logits]] = true;
	for (int i = graph->forward_count - 1; i >= 0; i--) {
		const struct node *node = &graph->nodes[i];
		/* Recurrent nodes write their weights themselves. */
		bool recurrent = operator_row(node->op)->onnx_export == ONNX_EXPORT_RECURRENT;

		if (!is_needed(e, node, 0))
			continue;
		if (e->attention[i] && node->op == OP_MATMUL) {
			export_mark_attention(e, e->attention[i]);
			continue;
		}
		for (int k = 0; k < (recurrent ? 1 : node->input_count); k++) {
			if (node->inputs[k] != VALUE_NONE)
				e->needed[e->alias[node->inputs[k]]] = true;
		}
	}
	return PRONY_OK;
}

static Onnx__AttributeProto *new_attribute(struct exporter *e, const struct attribute_row *row,
					   const struct attributes *values)
{
	Onnx__AttributeProto *attribute = arena_alloc(&e->arena, sizeof(*attribute));
	const void *member = (const char *)values + row->offset;
	const struct int_list *list = member;

	onnx__attribute_proto__init(attribute);
	attribute->name = export_borrow(row->name);
	attribute->has_type = true;
	switch (row->kind) {
	case ATTRIBUTE_INT:
	case ATTRIBUTE_BOOL:
		attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
		attribute->has_i = true;
		attribute->i = row->kind == ATTRIBUTE_INT ? *(const int64_t *)member
							  : *(const bool *)member;
		break;
	case ATTRIBUTE_WORD:
		attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
		attribute->has_s = true;
		attribute->s.data = (uint8_t *)export_borrow(row->words[*(const int64_t *)member]);
		attribute->s.len = strlen(row->words[*(const int64_t *)member]);
		break;
	case ATTRIBUTE_REAL:
		attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
		attribute->has_f = true;
		attribute->f = (float)*(const double *)member;
		break;
	case ATTRIBUTE_INTS2:
	case ATTRIBUTE_INTS4:
		attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
		attribute->n_ints = row->kind == ATTRIBUTE_INTS2 ? 2 : 4;
		attribute->ints = (int64_t *)(uintptr_t)member;
		break;
	case ATTRIBUTE_INTS:
		attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
		attribute->n_ints = (size_t)list->count;
		attribute->ints = (int64_t *)(uintptr_t)list->items;
		break;
	}
	return attribute;
}

/* Writes an attribute that ONNX has as a constant input: an initializer "NODE.ATTRIBUTE". */
static char *constant_input(struct exporter *e, const struct node *node,
			    const struct attribute_row *row)
{
	char *name = export_free_name(e, node->name, row->name);
	const void *member = (const char *)&node->attributes + row->offset;
	const struct int_list *list = member;
	bool is_list = row->kind == ATTRIBUTE_INTS;
	struct shape shape = {.rank = 1, .dims = {is_list ? list->count : 1}};
	float *number;

	if (row->kind != ATTRIBUTE_REAL) {
		export_initializer(e, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &shape,
				   is_list ? list->items : member,
				   (size_t)shape.dims[0] * sizeof(int64_t));
		return name;
	}
	number = arena_alloc(&e->arena, sizeof(*number));
	*number = (float)*(const double *)member;
	shape.rank = 0;
	export_initializer(e, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &shape, number,
			   sizeof(*number));
	return name;
}

/* Outputs that only training reads (statistics of BatchNormalization) are left out at the end. */
static int outputs_in_use(const struct exporter *e, const struct node *node)
{
	int count = node->output_count;

	while (count > 1 && !is_needed(e, node, count - 1))
		count--;
	return count;
}

/* Before opset 22, ONNX's ceil_mode adds a window even if it lies wholly in the padding behind the
 * input. prony and the frameworks do not add it. If the results differ, the export writes explicit
 * padding as wide as prony's windows reach; this padding must not count then. */
static enum prony_status write_out_ceil_mode(struct exporter *e, struct node *node)
{
	const struct shape *x = &e->graph->values[node->inputs[0]].shape;
	const struct shape *y = &e->graph->values[node->outputs[0]].shape;
	struct attributes *a = &node->attributes;
	int64_t over[2];
	bool same = true;

	for (int i = 0; i < 2; i++) {
		int64_t reach = (y->dims[2 + i] - 1) * a->strides[i] +
				(a->kernel[i] - 1) * a->dilations[i] + 1;

		over[i] = reach - x->dims[2 + i] - a->pads[i] - a->pads[2 + i];
		same = same && over[i] >= 0;
	}
	if (same)
		return PRONY_OK;
	a->ceil_mode = false;
	for (int i = 0; i < 2; i++) {
		if (over[i] > 0 && a->count_include_pad)
			return error_set(e->err, PRONY_UNSUPPORTED,
					 "network '%s': ceil_mode of node '%s' cannot be expressed "
					 "in ONNX opset %d",
					 e->graph->name, node->name, ONNX_OPSET);
		if (over[i] > 0)
			a->pads[2 + i] += over[i];
	}
	return PRONY_OK;
}

/* The input that is this attribute in ONNX; 0 if it is an attribute there, too. */
static int constant_place(const struct exporter *e, const struct attribute_row *row)
{
	return e->opset >= row->input_since ? row->input : 0;
}

static enum prony_status add_node(struct exporter *e, const struct node *node)
{
	const struct operator_row *op = operator_row(node->op);
	int input_count = node->input_count;
	Onnx__NodeProto *out;
	size_t count = 0;

	if (op->is_gradient || op->is_loss)
		return error_set(e->err, PRONY_UNSUPPORTED,
				 "network '%s': ONNX has no %s (node '%s')", e->graph->name,
				 operator_name(node->op), node->name);
	for (const struct attribute_row *row = op->attributes; row->name != NULL; row++) {
		if (constant_place(e, row) >= input_count)
			input_count = constant_place(e, row) + 1;
		count++;
	}
	out = export_node(e, node->name, operator_name(node->op), input_count,
			  outputs_in_use(e, node));
	for (int i = 0; i < node->input_count; i++)
		out->input[i] = export_name(e, node->inputs[i]);
	for (size_t i = 0; i < out->n_output; i++)
		out->output[i] = export_name(e, node->outputs[i]);
	out->attribute = arena_array(&e->arena, count, sizeof(*out->attribute));
	for (const struct attribute_row *row = op->attributes; row->name != NULL; row++) {
		if (constant_place(e, row) > 0)
			out->input[constant_place(e, row)] = constant_input(e, node, row);
		else
			out->attribute[out->n_attribute++] =
				new_attribute(e, row, &node->attributes);
	}
	return PRONY_OK;
}

static void set_text(Onnx__AttributeProto *attribute, const struct attribute_row *row,
		     const struct attributes *values)
{
	const char *word = row->words[*(const int64_t *)((const char *)values + row->offset)];

	attribute->name = export_borrow(row->name);
	attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
	attribute->has_s = true;
	attribute->s.data = (uint8_t *)export_borrow(word);
	attribute->s.len = strlen(word);
}

/* ONNX has the scales of all axes as real numbers in input 2. */
static enum prony_status add_resize(struct exporter *e, const struct node *node)
{
	Onnx__NodeProto *out = export_node(e, node->name, "Resize", 3, 1);
	Onnx__AttributeProto **attributes = export_attributes(e, out, 2);
	const struct shape shape = {.rank = 1, .dims = {4}};
	float *scales = arena_array(&e->arena, 4, sizeof(*scales));

	for (int i = 0; i < 4; i++)
		scales[i] = i < 2 ? 1 : (float)node->attributes.strides[i - 2];
	for (int i = 0; i < 2; i++)
		set_text(attributes[i], &operator_row(OP_RESIZE)->attributes[1 + i],
			 &node->attributes);
	out->input[0] = export_name(e, node->inputs[0]);
	out->input[1] = export_borrow("");
	out->input[2] = export_free_name(e, node->name, "scales");
	export_initializer(e, out->input[2], ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &shape, scales,
			   4 * sizeof(*scales));
	out->output[0] = export_name(e, node->outputs[0]);
	return PRONY_OK;
}

static enum prony_status add_any_node(struct exporter *e, const struct node *node)
{
	const struct export_attention *attention = e->attention[node - e->graph->nodes];
	const struct node *scatter = export_cache_of(e, node);
	struct node *copy;

	if (attention) {
		if (node->op == OP_MATMUL)
			export_attention_node(e, attention);
		return PRONY_OK;
	}

	if (scatter) {
		export_cached_product(e, node, scatter);
		return PRONY_OK;
	}
	if (operator_row(node->op)->onnx_export == ONNX_EXPORT_RECURRENT)
		return export_recurrent(e, node);
	if (operator_row(node->op)->onnx_export == ONNX_EXPORT_RESIZE)
		return add_resize(e, node);
	if (!node->attributes.ceil_mode)
		return add_node(e, node);
	/* Attributes are borrowed until the file is packed. */
	copy = arena_alloc(&e->arena, sizeof(*copy));
	*copy = *node;
	if (write_out_ceil_mode(e, copy) != PRONY_OK)
		return e->err->code;
	return add_node(e, copy);
}

static enum prony_status add_nodes(struct exporter *e)
{
	const struct graph *graph = e->graph;

	/* A recurrent node becomes four nodes and four constants, a product with a cache seven
	 * nodes and three constants; one more node is the Identity below. */
	e->out->node =
		arena_array(&e->arena, 7 * (size_t)graph->forward_count + 1, sizeof(*e->out->node));
	e->out->initializer = arena_array(
		&e->arena, (size_t)graph->value_count + 4 * (size_t)graph->forward_count,
		sizeof(*e->out->initializer));
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];
		const struct operator_row *row = operator_row(node->op);

		if (row->training_outputs && is_needed(e, node, 1))
			return error_set(e->err, PRONY_UNSUPPORTED,
					 "network '%s': the %s of node '%s' is used, but an ONNX "
					 "file for inference does not contain it",
					 graph->name, row->training_outputs, node->name);
		if (row->onnx_export == ONNX_EXPORT_NOTHING || !is_needed(e, node, 0))
			continue;
		if (add_any_node(e, node) != PRONY_OK)
			return e->err->code;
	}
	if (e->alias[graph->logits] != graph->logits) {
		/* The output keeps its name if dropout is the last layer. */
		Onnx__NodeProto *identity =
			export_node(e, graph->values[graph->logits].name, "Identity", 1, 1);

		identity->input[0] = export_name(e, graph->logits);
		identity->output[0] = export_borrow(graph->values[graph->logits].name);
	}
	return PRONY_OK;
}

static enum prony_status add_initializer(struct exporter *e, const struct value *value)
{
	const struct tensor *weight = NULL;
	enum prony_status status = export_find_weight(e, value, &weight);

	if (status == PRONY_OK)
		export_initializer(e, value->name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
				   &value->shape, weight->data, (size_t)tensor_bytes(weight));
	return status;
}

static enum prony_status add_initializers(struct exporter *e)
{
	for (int i = 0; i < e->graph->value_count; i++) {
		const struct value *value = &e->graph->values[i];

		if (!e->needed[i] || (value->kind != VALUE_PARAMETER && value->kind != VALUE_STATE))
			continue;
		if (e->form->caches != ONNX_CACHES_CONSTANT &&
		    graph_state_present(e->graph, i) != VALUE_NONE)
			continue;
		if (add_initializer(e, value) != PRONY_OK)
			return e->err->code;
	}
	return PRONY_OK;
}

/* A list of one: the graph's input or output. */
static Onnx__ValueInfoProto *new_value_info(struct exporter *e, int index)
{
	static const int types[DTYPE_COUNT] = {
		[DTYPE_F32] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
		[DTYPE_F16] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
		[DTYPE_I32] = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
		[DTYPE_I64] = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
		[DTYPE_BOOL] = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
	};
	const struct value *value = &e->graph->values[index];
	size_t rank = (size_t)value->shape.rank;
	Onnx__ValueInfoProto *info = arena_alloc(&e->arena, sizeof(*info));
	Onnx__TypeProto *type = arena_alloc(&e->arena, sizeof(*type));
	Onnx__TypeProto__Tensor *tensor = arena_alloc(&e->arena, sizeof(*tensor));
	Onnx__TensorShapeProto *shape = arena_alloc(&e->arena, sizeof(*shape));

	onnx__tensor_shape_proto__init(shape);
	shape->dim = arena_array(&e->arena, rank, sizeof(*shape->dim));
	shape->n_dim = rank;
	for (size_t i = 0; i < rank; i++) {
		shape->dim[i] = arena_alloc(&e->arena, sizeof(**shape->dim));
		onnx__tensor_shape_proto__dimension__init(shape->dim[i]);
		shape->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
		shape->dim[i]->dim_value = value->shape.dims[i];
	}
	onnx__type_proto__tensor__init(tensor);
	tensor->has_elem_type = true;
	tensor->elem_type = types[value->dtype];
	tensor->shape = shape;
	onnx__type_proto__init(type);
	type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	type->tensor_type = tensor;
	onnx__value_info_proto__init(info);
	info->name = export_borrow(value->name);
	info->type = type;
	return info;
}

static Onnx__StringStringEntryProto *new_entry(struct exporter *e, const char *key,
					       const char *value)
{
	Onnx__StringStringEntryProto *entry = arena_alloc(&e->arena, sizeof(*entry));

	onnx__string_string_entry_proto__init(entry);
	entry->key = export_borrow(key);
	entry->value = export_borrow(value);
	return entry;
}

/* Makes the initializers that lie in the data file external data. */
static void move_weights(struct exporter *e)
{
	const char *bytes = e->form->data_file.bytes;

	for (size_t i = 0; i < e->out->n_initializer; i++) {
		Onnx__TensorProto *tensor = e->out->initializer[i];
		const char *data = (const char *)tensor->raw_data.data;
		size_t length = tensor->raw_data.len;

		if (data < bytes || data + length > bytes + e->form->data_file.length)
			continue;
		tensor->has_raw_data = false;
		tensor->has_data_location = true;
		tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
		tensor->n_external_data = 3;
		tensor->external_data = arena_array(&e->arena, 3, sizeof(*tensor->external_data));
		tensor->external_data[0] = new_entry(e, "location", e->form->data_file.name);
		tensor->external_data[1] = new_entry(
			e, "offset", arena_printf(&e->arena, "%zu", (size_t)(data - bytes)));
		tensor->external_data[2] =
			new_entry(e, "length", arena_printf(&e->arena, "%zu", length));
		e->form->external = true;
	}
}

static enum prony_status pack(struct exporter *e, void **bytes, size_t *length)
{
	Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
	Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
	Onnx__OperatorSetIdProto *opsets[] = {&opset};
	size_t size, most;

	opset.domain = export_borrow("");
	opset.has_version = true;
	opset.version = e->opset;
	model.has_ir_version = true;
	model.ir_version = ir_version(e->opset);
	model.producer_name = export_borrow("prony");
	model.producer_version = export_borrow(PRONY_VERSION);
	model.graph = e->out;
	model.n_opset_import = 1;
	model.opset_import = opsets;
	most = e->form->most ? e->form->most : ONNX_MAX_BYTES;
	size = onnx__model_proto__get_packed_size(&model);
	if (size > most && e->form->data_file.name) {
		move_weights(e);
		size = onnx__model_proto__get_packed_size(&model);
	}
	if (size > most)
		return error_set(e->err, PRONY_UNSUPPORTED,
				 "network '%s' needs %zu bytes; an ONNX file holds at most %zu",
				 e->graph->name, size, most);
	*bytes = malloc(size);
	if (*bytes == NULL)
		return error_set(e->err, PRONY_NOMEM,
				 "not enough memory for an ONNX file of %zu bytes", size);
	*length = onnx__model_proto__pack(&model, *bytes);
	return PRONY_OK;
}

/* The graph's inputs and caches, its logits and what becomes of the caches. */
static void add_ends(struct exporter *e)
{
	const struct graph *graph = e->graph;
	size_t inputs = (size_t)graph_inputs(graph, NULL, 0), room = (size_t)graph->forward_count;

	e->out->input = arena_array(&e->arena, inputs + room, sizeof(*e->out->input));
	e->out->output = arena_array(&e->arena, 1 + room, sizeof(*e->out->output));
	for (size_t i = 0; i < inputs; i++)
		e->out->input[e->out->n_input++] = new_value_info(e, graph_input(graph, (int)i));
	e->out->output[e->out->n_output++] = new_value_info(e, graph->logits);
	for (int i = 0; i < graph->forward_count && e->form->caches != ONNX_CACHES_CONSTANT; i++) {
		const struct node *node = &graph->nodes[i];

		if (!operator_row(node->op)->replaces_state)
			continue;
		if (e->needed[node->inputs[0]])
			e->out->input[e->out->n_input++] = new_value_info(e, node->inputs[0]);
		e->out->output[e->out->n_output++] =
			new_value_info(e, e->alias[onnx_cache_output(node, e->form->caches)]);
	}
}

enum prony_status onnx_export_form(const struct graph *graph, const struct tensor_set *weights,
				   struct onnx_form *form, void **bytes, size_t *length,
				   struct error *err)
{
	struct error local = ERROR_INIT;
	struct exporter e = {.graph = graph,
			     .weights = weights,
			     .form = form,
			     .err = &local,
			     .opset = ONNX_OPSET};

	arena_init(&e.arena, 0);
	e.out = arena_alloc(&e.arena, sizeof(*e.out));
	onnx__graph_proto__init(e.out);
	e.out->name = export_borrow(graph->name);
	if (find_needed(&e) != PRONY_OK)
		goto out;
	for (int i = 0; i < graph->forward_count; i++) {
		int since = operator_row(graph->nodes[i].op)->opset;

		e.opset = is_needed(&e, &graph->nodes[i], 0) && since > e.opset ? since : e.opset;
	}
	if (add_nodes(&e) != PRONY_OK || add_initializers(&e) != PRONY_OK)
		goto out;
	add_ends(&e);
	pack(&e, bytes, length);
out:
	arena_release(&e.arena);
	return local.code == PRONY_OK ? PRONY_OK : error_set(err, local.code, "%s", local.text);
}

enum prony_status onnx_export(const struct graph *graph, const struct tensor_set *weights,
			      void **bytes, size_t *length, struct error *err)
{
	struct onnx_form form = {.caches = ONNX_CACHES_CONSTANT};

	return onnx_export_form(graph, weights, &form, bytes, length, err);
}
