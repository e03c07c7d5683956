#include "graph/operator_rows_internal.h"

/* x: batch x time x features; w: gates*H x features; r: gates*H x H; b: gates*H -> batch x H */
static enum prony_status recurrent_infer(struct graph *graph, struct node *node, int64_t gates,
					 struct error *err)
{
	static const int ranks[] = {3, 2, 2, 1};
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *r = node_input_shape(graph, node, 2);
	struct shape y = {.rank = 2};
	int64_t rows;

	for (int i = 0; i < 4; i++) {
		enum prony_status status = node_need_rank(graph, node, i, ranks[i], err);

		if (status != PRONY_OK)
			return status;
	}
	y.dims[0] = x->dims[0];
	y.dims[1] = r->dims[1];
	rows = saturating_multiply(gates, r->dims[1]);
	if (r->dims[0] != rows || node_input_shape(graph, node, 1)->dims[0] != rows ||
	    node_input_shape(graph, node, 3)->dims[0] != rows)
		return node_error(node, err, "w, r and b must have %lld rows for %lld hidden units",
				  (long long)rows, (long long)r->dims[1]);
	if (node_input_shape(graph, node, 1)->dims[1] != x->dims[2])
		return node_error(node, err, "w takes %lld features, the input has %lld",
				  (long long)node_input_shape(graph, node, 1)->dims[1],
				  (long long)x->dims[2]);
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

enum prony_status lstm_infer(struct graph *graph, struct node *node, struct error *err)
{
	return recurrent_infer(graph, node, 4, err);
}

enum prony_status rnn_infer(struct graph *graph, struct node *node, struct error *err)
{
	return recurrent_infer(graph, node, 1, err);
}

int64_t recurrent_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	int64_t steps = saturating_multiply(x->dims[0], x->dims[1]);

	return saturating_multiply(
		steps, saturating_add(shape_elements(node_input_shape(graph, node, 1)),
				      shape_elements(node_input_shape(graph, node, 2))));
}

/* Twice the forward pass; less where nobody wants the gradient of x. */
int64_t recurrent_grad_macs(const struct graph *graph, const struct node *node)
{
	const struct node *forward = &graph->nodes[node->differentiates];

	return saturating_multiply(2, recurrent_macs(graph, forward));
}
