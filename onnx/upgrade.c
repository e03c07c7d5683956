/*
 * Upgrades older files to the form of opset 18: attributes that later opsets have as inputs become
 * inputs, so that the importer knows one form only.
 *
 * Which attribute moved when: https://onnx.ai/onnx/operators/, "Differences with previous version".
 */
#include "onnx/import_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct moved_attribute {
	const char *op, *attribute;
	int64_t since; /* the first opset that has it as an input */
	size_t input;
};

static const struct moved_attribute moved[] = {
	{"Slice", "starts", 10, 1},    {"Slice", "ends", 10, 2},      {"Slice", "axes", 10, 3},
	{"Clip", "min", 11, 1},	       {"Clip", "max", 11, 2},	      {"Pad", "pads", 11, 1},
	{"Pad", "value", 11, 2},       {"Dropout", "ratio", 12, 1},   {"ReduceSum", "axes", 13, 1},
	{"Split", "split", 13, 1},     {"Squeeze", "axes", 13, 1},    {"Unsqueeze", "axes", 13, 1},
	{"ReduceMean", "axes", 18, 1}, {"ReduceProd", "axes", 18, 1},
};

/* protobuf-c frees these arrays with the message, so they come from malloc. */
static bool grow(void *array, size_t count, size_t size)
{
	void **place = array;
	void *larger = realloc(*place, count * size);

	if (larger != NULL)
		*place = larger;
	return larger != NULL;
}

static Onnx__AttributeProto *take_attribute(Onnx__NodeProto *node, const char *name)
{
	for (size_t i = 0; i < node->n_attribute; i++) {
		Onnx__AttributeProto *attribute = node->attribute[i];

		if (attribute->name == NULL || strcmp(attribute->name, name) != 0)
			continue;
		node->attribute[i] = node->attribute[--node->n_attribute];
		return attribute;
	}
	return NULL;
}

/* Makes a tensor of the attribute's numbers; a list of whole numbers is moved to it. NULL without
 * memory.
 */
static Onnx__TensorProto *as_tensor(Onnx__AttributeProto *attribute, char *name)
{
	bool is_float = attribute->has_f;
	Onnx__TensorProto *tensor = malloc(sizeof(*tensor));
	float *number = is_float ? malloc(sizeof(*number)) : NULL;
	int64_t *dims = is_float ? NULL : malloc(sizeof(*dims));

	if (tensor == NULL || (is_float ? number == NULL : dims == NULL)) {
		free(tensor);
		free(number);
		free(dims);
		return NULL;
	}
	onnx__tensor_proto__init(tensor);
	tensor->name = name;
	tensor->has_data_type = true;
	if (is_float) {
		*number = attribute->f;
		tensor->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
		tensor->n_float_data = 1;
		tensor->float_data = number;
		return tensor;
	}
	*dims = (int64_t)attribute->n_ints;
	tensor->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
	tensor->n_dims = 1;
	tensor->dims = dims;
	tensor->n_int64_data = attribute->n_ints;
	tensor->int64_data = attribute->ints;
	attribute->n_ints = 0;
	attribute->ints = NULL;
	return tensor;
}

/* Sets input `index` of the node to `name`; missing inputs before it are left out (""). */
static bool set_input(Onnx__NodeProto *node, size_t index, const char *name)
{
	if (index >= node->n_input && !grow(&node->input, index + 1, sizeof(*node->input)))
		return false;
	while (node->n_input <= index) {
		node->input[node->n_input] = strdup(node->n_input == index ? name : "");
		if (node->input[node->n_input] == NULL)
			return false;
		node->n_input++;
	}
	return true;
}

static bool move_attribute(Onnx__GraphProto *graph, size_t node_index,
			   const struct moved_attribute *row)
{
	Onnx__NodeProto *node = graph->node[node_index];
	Onnx__AttributeProto *attribute = take_attribute(node, row->attribute);
	Onnx__TensorProto *tensor = NULL;
	char *name = NULL;
	bool done = true;

	/* If a file has both forms, the input is kept. */
	if (attribute == NULL || node->n_input > row->input)
		goto out;
	if (asprintf(&name, "prony:%zu:%s", node_index, row->attribute) < 0)
		name = NULL;
	tensor = name ? as_tensor(attribute, name) : NULL;
	done = tensor != NULL && set_input(node, row->input, name) &&
	       grow(&graph->initializer, graph->n_initializer + 1, sizeof(*graph->initializer));
	if (done)
		graph->initializer[graph->n_initializer++] = tensor;
	else if (tensor != NULL)
		onnx__tensor_proto__free_unpacked(tensor, NULL);
	else
		free(name);
out:
	if (attribute != NULL)
		onnx__attribute_proto__free_unpacked(attribute, NULL);
	return done;
}

enum prony_status onnx_upgrade(struct onnx_model *model, struct error *err)
{
	Onnx__GraphProto *graph = model->proto->graph;

	for (size_t n = 0; n < graph->n_node; n++) {
		if (graph->node[n]->op_type == NULL || onnx_is_foreign(graph->node[n]))
			continue;
		for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
			if (model->facts.opset < moved[i].since &&
			    strcmp(graph->node[n]->op_type, moved[i].op) == 0 &&
			    !move_attribute(graph, n, &moved[i]))
				return error_set(err, PRONY_NOMEM, "not enough memory");
		}
	}
	return PRONY_OK;
}
