/* Plans TensorFlow's variables for the weights of a graph, and copies weights. */
#include "adapters/tensorflow/tf_weights.h"

#include <stdio.h>
#include <string.h>

struct tf_output tf_resource(struct tf_emit *e, enum tf_type type, const struct shape *shape)
{
	char name[32];

	/* Resources with the same name would be the same resource. */
	snprintf(name, sizeof(name), "prony%d", e->count);
	return tf_op(e, "VarHandleOp", NULL, 0,
		     TF_WITH(TF_TYPE("dtype", type), tf_shape("shape", shape),
			     TF_TEXT("shared_name", name)));
}

struct tf_output tf_read(struct tf_emit *e, struct tf_output handle, enum tf_type type)
{
	return tf_op(e, "ReadVariableOp", TF_IN(handle), TF_WITH(TF_TYPE("dtype", type)));
}

struct tf_operation *tf_assign(struct tf_emit *e, struct tf_output handle, struct tf_output value)
{
	return tf_binary(e, "AssignVariableOp", handle, value).operation;
}

struct tf_output tf_placeholder(struct tf_emit *e, enum tf_type type, const struct shape *shape)
{
	return tf_op(e, "Placeholder", NULL, 0,
		     TF_WITH(TF_TYPE("dtype", type), tf_shape("shape", shape)));
}

/* Returns the first forward node that reads a value, and the number of that input. */
static const struct node *reader_of(const struct graph *graph, int value, int *input)
{
	for (int i = 0; i < graph->forward_count; i++)
		for (*input = 0; *input < graph->nodes[i].input_count; (*input)++)
			if (graph->nodes[i].inputs[*input] == value)
				return &graph->nodes[i];
	return NULL;
}

/* Plans a weight as [in, out]. If its input is an image flattened in memory order, `in` runs over
 * H, W, C. */
static void plan_gemm(const struct tf_translation *t, const struct node *gemm,
		      struct tf_weight *weight, struct shape *shape)
{
	const int64_t *w = t->graph->values[weight->value].shape.dims;
	int64_t channels = t->layouts.channels[weight->value];

	if (!gemm->attributes.trans_b)
		return;
	channels = channels ? channels : 1;
	*shape = (struct shape){.rank = 2, .dims = {w[1], w[0]}};
	weight->order = arrangement_make(3, (const int64_t[]){w[0], channels, w[1] / channels},
					 (const int[]){2, 1, 0});
}

/* Plans the weights of a recurrent layer. An LSTM has one matrix: the rows of the input, then those
 * of the state. */
static void plan_recurrent(const struct tf_translation *t, const struct node *node, int input,
			   struct tf_weight *weight, struct shape *shape)
{
	const int64_t *w = t->graph->values[weight->value].shape.dims;
	int64_t features = t->graph->values[node->inputs[1]].shape.dims[1];
	int64_t hidden = t->graph->values[node->inputs[2]].shape.dims[1];

	weight->gates = node->op == OP_LSTM;
	if (input == 3)
		return;
	*shape = (struct shape){.rank = 2, .dims = {w[1], w[0]}};
	weight->order = arrangement_make(2, w, (const int[]){1, 0});
	if (node->op != OP_LSTM)
		return;
	shape->dims[0] = features + hidden;
	weight->offset = input == 2 ? features * w[0] : 0;
}

/* Returns the variable that another weight of the same layer created; -1: none yet. */
static int variable_of(const struct tf_weights *weights, int owner)
{
	for (int i = 0; i < weights->variable_count; i++)
		if (weights->variables[i].owner == owner)
			return i;
	return -1;
}

static void plan(struct tf_translation *t, struct tf_weights *all, int value)
{
	struct tf_weight *weight = &all->weights[all->weight_count++];
	struct shape shape = layouts_shape(&t->layouts, value);
	int input = 0, owner = value;
	const struct node *node = reader_of(t->graph, value, &input);
	bool recurrent = node && input > 0 &&
			 (node->op == OP_LSTM || node->op == OP_GRU || node->op == OP_RNN);

	*weight = (struct tf_weight){
		.value = value,
		.elements = shape_elements(&shape),
		.order = layouts_arrangement(&t->layouts, value),
	};
	if (node && (node->op == OP_CONV || node->op == OP_CONV_TRANSPOSE) && input == 1 &&
	    tf_is_depthwise(t->graph, node)) {
		/* H x W x 1 x (C M) */
		shape.dims[2] = node->attributes.group;
		shape.dims[3] /= node->attributes.group;
	} else if (node && node->op == OP_GEMM && input == 1 && tf_is_own_weight(t->graph, node))
		plan_gemm(t, node, weight, &shape);
	else if (recurrent)
		plan_recurrent(t, node, input, weight, &shape);
	if (recurrent && node->op == OP_LSTM && input == 2)
		owner = node->inputs[1];
	weight->variable = variable_of(all, owner);
	if (weight->variable >= 0)
		return;
	weight->variable = all->variable_count;
	all->variables[all->variable_count++] = (struct tf_variable){
		.shape = shape,
		.trained = t->graph->values[value].kind == VALUE_PARAMETER,
		.owner = owner,
	};
}

/* The type in which nodes use a value: normalisations use fp32 whatever the type of activations. */
static enum tf_type used_type(const struct tf_translation *t, int value)
{
	int input = 0;
	const struct node *node = reader_of(t->graph, value, &input);

	return node && node->op == OP_BATCH_NORM && input > 0 ? TF_TYPE_FLOAT : t->type;
}

void tf_weights_build(struct tf_translation *t, struct tf_weights *out)
{
	size_t count = (size_t)t->graph->value_count;

	*out = (struct tf_weights){
		.weights = arena_array(t->arena, count, sizeof(out->weights[0])),
		.variables = arena_array(t->arena, count, sizeof(out->variables[0])),
	};
	for (int i = 0; i < t->graph->value_count; i++)
		if (t->graph->values[i].kind == VALUE_PARAMETER ||
		    t->graph->values[i].kind == VALUE_STATE)
			plan(t, out, i);
	for (int i = 0; i < out->variable_count; i++) {
		struct tf_variable *variable = &out->variables[i];

		t->e.scope = t->graph->values[variable->owner].name;
		variable->handle = tf_resource(&t->e, TF_TYPE_FLOAT, &variable->shape);
		variable->placeholder = tf_placeholder(&t->e, TF_TYPE_FLOAT, &variable->shape);
		variable->read = tf_read(&t->e, variable->handle, TF_TYPE_FLOAT);
	}
	for (int i = 0; i < out->weight_count; i++) {
		const struct tf_weight *weight = &out->weights[i];

		t->values[weight->value] = tf_cast(&t->e, out->variables[weight->variable].read,
						   used_type(t, weight->value));
	}
}

/* Swaps blocks 1 and 3 of the four in each row; it is its own inverse. */
static void swap_gates(float *data, int64_t rows, int64_t block)
{
	for (int64_t row = 0; row < rows; row++, data += 4 * block)
		for (int64_t i = 0; i < block; i++) {
			float kept = data[block + i];

			data[block + i] = data[3 * block + i];
			data[3 * block + i] = kept;
		}
}

/* Gates are blocks of rows in the graph, but parts of each row in the variable. */
void tf_weight_copy(const struct tf_weight *weight, float *in_graph, float *variable,
		    bool to_variable)
{
	int64_t rows = weight->order.rank > 0 ? weight->order.dims[1] : 1;

	variable += weight->offset;
	if (to_variable)
		arrangement_copy(&weight->order, weight->elements, in_graph, variable, false);
	else
		arrangement_copy(&weight->order, weight->elements, variable, in_graph, true);
	if (weight->gates && to_variable)
		swap_gates(variable, rows, weight->elements / rows / 4);
	else if (weight->gates)
		swap_gates(in_graph, 1, weight->elements / 4);
}
