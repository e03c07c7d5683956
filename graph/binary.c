#include "graph/operator_rows_internal.h"

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
