#include "graph/operator_rows_internal.h"

const struct attribute_row flatten_attributes[] = {
	{"axis", ATTRIBUTE_INT, offsetof(struct attributes, axis), 1, 0, NULL},
	{.name = NULL},
};

const struct attribute_row reshape_attributes[] = {
	{"shape", ATTRIBUTE_INTS, offsetof(struct attributes, ints), 0, 1, NULL},
	{.name = NULL},
};

enum prony_status flatten_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	struct shape y = {.rank = 2, .dims = {1, 1}};
	int64_t axis = node->attributes.axis;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	if (axis < -x->rank || axis > x->rank)
		return node_error(node, err, "axis is %lld, the input has %d dimensions",
				  (long long)axis, x->rank);
	if (axis < 0)
		axis += x->rank;
	for (int i = 0; i < x->rank; i++) {
		int64_t *side = &y.dims[i < axis ? 0 : 1];

		*side = saturating_multiply(*side, x->dims[i]);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

/* What `shape` says of x; *open is the index of its -1, or -1. */
static enum prony_status asked_shape(const struct node *node, const struct shape *x,
				     struct shape *y, int *open, struct error *err)
{
	const struct int_list *asked = &node->attributes.ints;

	*open = -1;
	if (asked->count > TENSOR_MAX_RANK)
		return node_error(node, err, "more than %d dimensions", TENSOR_MAX_RANK);
	*y = (struct shape){.rank = asked->count};
	for (int i = 0; i < asked->count; i++) {
		int64_t dim = asked->items[i];

		if (dim < -1 || (dim == -1 && *open >= 0) || (dim == 0 && i >= x->rank))
			return node_error(node, err, "dimension %d of its shape is %lld", i,
					  (long long)dim);
		if (dim == -1)
			*open = i;
		y->dims[i] = dim == 0 ? x->dims[i] : dim == -1 ? 1 : dim;
	}
	return PRONY_OK;
}

enum prony_status reshape_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape x = *node_input_shape(graph, node, 0);
	enum prony_status status = node_need_float(graph, node, 0, err);
	int64_t elements = shape_elements(&x), known;
	struct shape y = {.rank = 0};
	int open;

	if (status == PRONY_OK)
		status = asked_shape(node, &x, &y, &open, err);
	if (status != PRONY_OK)
		return status;
	known = shape_elements(&y);
	if (open >= 0 && known > 0 && elements % known == 0) {
		y.dims[open] = elements / known;
		known = elements;
	}
	if (known != elements) {
		char x_text[128], y_text[128];

		shape_text(&x, x_text, sizeof(x_text));
		shape_text(&y, y_text, sizeof(y_text));
		return node_error(node, err, "%s does not fit into %s", x_text, y_text);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}
