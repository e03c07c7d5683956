#include "graph/operator_rows_internal.h"

#include "graph/backward_internal.h"

const struct attribute_row broadcast_attributes[] = {
	{"axis", ATTRIBUTE_INT, offsetof(struct attributes, axis), 0, 0, NULL},
	{.name = NULL},
};

double add(double a, double b)
{
	return a + b;
}

double subtract(double a, double b)
{
	return a - b;
}

double multiply(double a, double b)
{
	return a * b;
}

double divide(double a, double b)
{
	return a / b;
}

/* NumPy's rule: shapes are aligned at their ends; where one has 1 (or nothing), it is repeated. */
static bool broadcast(const struct shape *a, const struct shape *b, struct shape *y)
{
	const struct shape *longer = a->rank >= b->rank ? a : b;
	const struct shape *shorter = longer == a ? b : a;
	int lead = longer->rank - shorter->rank;

	*y = *longer;
	for (int i = 0; i < shorter->rank; i++) {
		int64_t other = shorter->dims[i], *dim = &y->dims[lead + i];

		if (*dim == 1)
			*dim = other;
		else if (other != 1 && other != *dim)
			return false;
	}
	return true;
}

enum prony_status binary_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *a = node_input_shape(graph, node, 0);
	const struct shape *b = node_input_shape(graph, node, 1);
	enum prony_status status = node_need_float(graph, node, 0, err);
	struct shape y;

	if (status == PRONY_OK)
		status = node_need_float(graph, node, 1, err);
	if (status != PRONY_OK)
		return status;
	if (!broadcast(a, b, &y)) {
		char a_text[128], b_text[128];

		shape_text(a, a_text, sizeof(a_text));
		shape_text(b, b_text, sizeof(b_text));
		return node_error(node, err, "shapes %s and %s cannot be broadcast to each other",
				  a_text, b_text);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

/* The shape is that of the forward node's input `axis`. */
enum prony_status infer_broadcast_grad(struct graph *graph, struct node *node, struct error *err)
{
	const struct node *forward = &graph->nodes[node->differentiates];
	int64_t i = node->attributes.axis;
	struct shape shape;

	if (i < 0 || i >= forward->input_count || !node_has_input(forward, (int)i))
		return node_error(node, err, "'%s' has no input %lld to differentiate",
				  forward->name, (long long)i);
	shape = *node_input_shape(graph, forward, (int)i);
	return node_set_output(graph, node, 0, DTYPE_F32, &shape, err);
}

/* `gradient` has the shape of the output: sums up what broadcasting has repeated. */
static enum prony_status contribute(struct graph *graph, const struct node *node, int i,
				    int gradient, struct error *err)
{
	struct node copy = *node;

	if (shape_equal(&graph->values[gradient].shape, node_input_shape(graph, node, i)))
		return backward_contribute(graph, node->inputs[i], gradient, err);
	copy.attributes.axis = i;
	return backward_node(graph, &copy, OP_BROADCAST_GRAD, &gradient, 1, i, 1, err);
}

/* The gradient of a sum is the gradient of each term: no node is needed. */
enum prony_status add_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		if (backward_wants(graph, node, i))
			status = contribute(graph, node, i, dy, err);
	}
	return status;
}

/* Appends op(inputs) with the shape of the output and contributes it to input i. */
static enum prony_status apply(struct graph *graph, const struct node *node, int i, enum op op,
			       const int *inputs, int count, struct error *err)
{
	int gradient = VALUE_NONE;
	enum prony_status status =
		backward_apply(graph, node, i, op, inputs, count, NULL, &gradient, err);

	return status == PRONY_OK ? contribute(graph, node, i, gradient, err) : status;
}

enum prony_status sub_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 0))
		status = contribute(graph, node, 0, dy, err);
	if (status == PRONY_OK && backward_wants(graph, node, 1))
		status = apply(graph, node, 1, OP_NEG, &dy, 1, err);
	return status;
}

enum prony_status mul_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		if (backward_wants(graph, node, i))
			status = apply(graph, node, i, OP_MUL,
				       (const int[]){dy, node->inputs[1 - i]}, 2, err);
	}
	return status;
}

/* y = a / b: da = dy / b, db = -da * y */
enum prony_status div_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node), quotient, product;
	enum prony_status status =
		backward_apply(graph, node, 0, OP_DIV, (const int[]){dy, node->inputs[1]}, 2, NULL,
			       &quotient, err);

	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = contribute(graph, node, 0, quotient, err);
	if (status != PRONY_OK || !backward_wants(graph, node, 1))
		return status;
	status = backward_apply(graph, node, 1, OP_MUL, (const int[]){quotient, node->outputs[0]},
				2, NULL, &product, err);
	return status == PRONY_OK ? apply(graph, node, 1, OP_NEG, &product, 1, err) : status;
}
