#include "networks/rows.h"

#include "networks/backward.h"

const struct attribute_row flatten_attributes[] = {
	{"axis", ATTRIBUTE_INT, offsetof(struct attributes, axis), 1},
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

enum prony_status flatten_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node);

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_FLATTEN_GRAD, (const int[]){dy}, 1, 0, 1, err);
}
