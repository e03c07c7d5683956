/* Writes recurrent layers: ONNX has the time first, a dimension for the direction and two biases.
 */
#include <string.h>

#include "onnx/export_internal.h"

/* Weights of input i, with a first dimension of 1 for the direction. Of the two biases, the second
 * is zero, but for the fourth block of a GRU's bias, which belongs to its last gate. */
static enum prony_status weight(struct exporter *e, const struct node *node, int i, char **name)
{
	static const char *const suffixes[] = {"W", "R", "B"};
	const struct value *value = &e->graph->values[node->inputs[i]];
	int64_t rows = e->graph->values[node->inputs[2]].shape.dims[0];
	struct shape shape = {.rank = value->shape.rank + 1, .dims = {1}};
	const struct tensor *given;
	size_t whole, first;
	float *data;

	if (value->kind != VALUE_PARAMETER && value->kind != VALUE_STATE)
		return error_set(e->err, PRONY_UNSUPPORTED,
				 "network '%s': '%s' of node '%s' is computed; an ONNX file needs "
				 "it as weights",
				 e->graph->name, value->name, node->name);
	if (export_find_weight(e, value, &given) != PRONY_OK)
		return e->err->code;
	memcpy(&shape.dims[1], value->shape.dims,
	       (size_t)value->shape.rank * sizeof(shape.dims[0]));
	if (i == 3)
		shape.dims[1] = 2 * rows;
	whole = (size_t)shape_elements(&shape);
	first = i == 3 ? (size_t)rows : whole;
	data = arena_array(&e->arena, whole, sizeof(*data));
	memcpy(data, given->data, first * sizeof(*data));
	if (node->attributes.linear_before_reset && i == 3)
		memcpy(data + whole - first / 3, (const float *)given->data + first,
		       first / 3 * sizeof(*data));
	*name = export_free_name(e, node->name, suffixes[i - 1]);
	export_initializer(e, *name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &shape, data,
			   whole * sizeof(*data));
	return PRONY_OK;
}

static void set_int(Onnx__AttributeProto *attribute, const char *name, int64_t value)
{
	attribute->name = export_borrow(name);
	attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
	attribute->has_i = true;
	attribute->i = value;
}

static void set_attributes(struct exporter *e, const struct node *node, Onnx__NodeProto *out)
{
	const struct attributes *a = &node->attributes;
	const char *text = a->reverse ? "reverse" : "forward";
	Onnx__AttributeProto **list = export_attributes(e, out, node->op == OP_LSTM ? 2 : 3);

	set_int(list[0], "hidden_size", e->graph->values[node->inputs[2]].shape.dims[1]);
	list[1]->name = export_borrow("direction");
	list[1]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
	list[1]->has_s = true;
	list[1]->s = (ProtobufCBinaryData){strlen(text), (uint8_t *)export_borrow(text)};
	if (node->op == OP_GRU)
		set_int(list[2], "linear_before_reset", a->linear_before_reset);
	if (node->op != OP_RNN)
		return;
	list[2]->name = export_borrow("activations");
	list[2]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
	list[2]->strings = arena_array(&e->arena, 1, sizeof(ProtobufCBinaryData));
	text = a->activation ? "Tanh" : "Relu";
	list[2]->strings[0] = (ProtobufCBinaryData){4, (uint8_t *)export_borrow(text)};
	list[2]->n_strings = 1;
}

/* Appends a Transpose to a new name, NODE.SUFFIX, which is returned. */
static char *transpose(struct exporter *e, const struct node *node, char *from, const char *suffix,
		       const int64_t *order, size_t rank)
{
	char *to = export_free_name(e, node->name, suffix);
	Onnx__NodeProto *out = export_node(e, to, "Transpose", 1, 1);
	Onnx__AttributeProto *perm = export_attributes(e, out, 1)[0];

	perm->name = export_borrow("perm");
	perm->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
	perm->ints = (int64_t *)(uintptr_t)order;
	perm->n_ints = rank;
	out->input[0] = from;
	return out->output[0] = to;
}

enum prony_status export_recurrent(struct exporter *e, const struct node *node)
{
	static const int64_t time_first[] = {1, 0, 2}, batch_first[] = {2, 0, 1, 3};
	const struct shape *h = &e->graph->values[node->outputs[0]].shape;
	struct shape shape = {.rank = 1, .dims = {h->rank}};
	bool all = node->attributes.sequence;
	char *state = export_free_name(e, node->name, "state");
	char *wanted = export_free_name(e, node->name, "shape");
	char *x = transpose(e, node, export_name(e, node->inputs[0]), "time_first", time_first, 3);
	Onnx__NodeProto *out = export_node(e, node->name, operator_name(node->op), 4, all ? 1 : 2);
	Onnx__NodeProto *reshape;

	set_attributes(e, node, out);
	out->input[0] = x;
	for (int i = 1; i < 4; i++)
		if (weight(e, node, i, &out->input[i]) != PRONY_OK)
			return e->err->code;
	out->output[0] = export_borrow("");
	out->output[all ? 0 : 1] = state;
	/* time x direction x batch x hidden */
	if (all)
		state = transpose(e, node, state, "batch_first", batch_first, 4);
	export_initializer(e, wanted, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &shape, h->dims,
			   (size_t)h->rank * sizeof(int64_t));
	reshape = export_node(e, wanted, "Reshape", 2, 1);
	reshape->input[0] = state;
	reshape->input[1] = wanted;
	reshape->output[0] = export_name(e, node->outputs[0]);
	return PRONY_OK;
}
