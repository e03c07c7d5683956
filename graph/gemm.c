#include "graph/operator_rows_internal.h"

const struct attribute_row gemm_attributes[] = {
	{"alpha", ATTRIBUTE_REAL, offsetof(struct attributes, alpha), 1, 0, NULL},
	{"beta", ATTRIBUTE_REAL, offsetof(struct attributes, beta), 1, 0, NULL},
	{"transA", ATTRIBUTE_BOOL, offsetof(struct attributes, trans_a), 0, 0, NULL},
	{"transB", ATTRIBUTE_BOOL, offsetof(struct attributes, trans_b), 0, 0, NULL},
	{.name = NULL},
};

enum prony_status gemm_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct attributes *attributes = &node->attributes;
	struct shape y = {.rank = 2};
	enum prony_status status = node_need_rank(graph, node, 0, 2, err);
	int64_t inner_a, inner_b;

	if (status == PRONY_OK)
		status = node_need_rank(graph, node, 1, 2, err);
	/* Of ONNX's broadcasts only a bias per column: the gradient rows rely on it. */
	if (status == PRONY_OK && node_has_input(node, 2))
		status = node_need_rank(graph, node, 2, 1, err);
	if (status != PRONY_OK)
		return status;
	y.dims[0] = node_input_shape(graph, node, 0)->dims[attributes->trans_a ? 1 : 0];
	inner_a = node_input_shape(graph, node, 0)->dims[attributes->trans_a ? 0 : 1];
	inner_b = node_input_shape(graph, node, 1)->dims[attributes->trans_b ? 1 : 0];
	y.dims[1] = node_input_shape(graph, node, 1)->dims[attributes->trans_b ? 0 : 1];
	if (inner_a != inner_b)
		return node_error(node, err, "the inner dimensions differ: %lld and %lld",
				  (long long)inner_a, (long long)inner_b);
	if (node_has_input(node, 2) && node_input_shape(graph, node, 2)->dims[0] != y.dims[1])
		return node_error(node, err, "the bias has %lld elements, the product %lld columns",
				  (long long)node_input_shape(graph, node, 2)->dims[0],
				  (long long)y.dims[1]);
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

int64_t gemm_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *a = node_input_shape(graph, node, 0);

	return saturating_multiply(shape_elements(node_output_shape(graph, node, 0)),
				   a->dims[node->attributes.trans_a ? 0 : 1]);
}

/* Each of the two gradients of a matrix product costs what the product does. */
int64_t gemm_grad_macs(const struct graph *graph, const struct node *node)
{
	return gemm_macs(graph, &graph->nodes[node->differentiates]);
}
