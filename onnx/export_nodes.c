/* Adds nodes, attributes and initializers to the message tree of an export. */
#include <string.h>

#include "onnx/export_internal.h"

char *export_borrow(const char *text)
{
	return (char *)(uintptr_t)text;
}

Onnx__NodeProto *export_node(struct exporter *e, const char *name, const char *op, int input_count,
			     int output_count)
{
	Onnx__NodeProto *node = arena_alloc(&e->arena, sizeof(*node));

	onnx__node_proto__init(node);
	node->name = export_borrow(name);
	node->op_type = export_borrow(op);
	node->n_input = (size_t)input_count;
	node->input = arena_array(&e->arena, node->n_input, sizeof(*node->input));
	node->n_output = (size_t)output_count;
	node->output = arena_array(&e->arena, node->n_output, sizeof(*node->output));
	e->out->node[e->out->n_node++] = node;
	return node;
}

char *export_name(const struct exporter *e, int value)
{
	return export_borrow(value == VALUE_NONE ? "" : e->graph->values[e->alias[value]].name);
}

void export_initializer(struct exporter *e, const char *name, int type, const struct shape *shape,
			const void *data, size_t bytes)
{
	Onnx__TensorProto *tensor = arena_alloc(&e->arena, sizeof(*tensor));

	onnx__tensor_proto__init(tensor);
	tensor->name = export_borrow(name);
	tensor->has_data_type = true;
	tensor->data_type = type;
	tensor->n_dims = (size_t)shape->rank;
	tensor->dims = arena_array(&e->arena, tensor->n_dims, sizeof(*tensor->dims));
	if (shape->rank > 0)
		memcpy(tensor->dims, shape->dims, tensor->n_dims * sizeof(*tensor->dims));
	tensor->has_raw_data = true;
	tensor->raw_data.len = bytes;
	tensor->raw_data.data = (uint8_t *)(uintptr_t)data;
	e->out->initializer[e->out->n_initializer++] = tensor;
}

char *export_free_name(struct exporter *e, const char *node, const char *suffix)
{
	char *name = arena_printf(&e->arena, "%s.%s", node, suffix);

	while (graph_find_value(e->graph, name) != VALUE_NONE)
		name = arena_printf(&e->arena, "%s_", name);
	return name;
}

Onnx__AttributeProto **export_attributes(struct exporter *e, Onnx__NodeProto *node, size_t count)
{
	node->attribute = arena_array(&e->arena, count, sizeof(*node->attribute));
	node->n_attribute = count;
	for (size_t i = 0; i < count; i++) {
		node->attribute[i] = arena_alloc(&e->arena, sizeof(**node->attribute));
		onnx__attribute_proto__init(node->attribute[i]);
		node->attribute[i]->has_type = true;
	}
	return node->attribute;
}

enum prony_status export_find_weight(struct exporter *e, const struct value *value,
				     const struct tensor **out)
{
	const struct tensor *weight = tensor_find(e->weights, value->name);

	if (weight == NULL)
		return error_set(e->err, PRONY_BAD_INPUT,
				 "network '%s': there are no weights for '%s'", e->graph->name,
				 value->name);
	if (weight->dtype != DTYPE_F32 || !shape_equal(&weight->shape, &value->shape))
		return error_set(e->err, PRONY_BAD_INPUT,
				 "network '%s': the weights for '%s' have another type or shape",
				 e->graph->name, value->name);
	*out = weight;
	return PRONY_OK;
}
