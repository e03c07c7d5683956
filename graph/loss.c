#include "graph/operator_rows_internal.h"

enum prony_status cross_entropy_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct value *labels = &graph->values[node->inputs[1]];
	struct shape scalar = {.rank = 0};
	enum prony_status status = node_need_rank(graph, node, 0, 2, err);

	if (status != PRONY_OK)
		return status;
	if (labels->dtype != DTYPE_I64 || labels->shape.rank != 1 ||
	    labels->shape.dims[0] != node_input_shape(graph, node, 0)->dims[0])
		return node_error(node, err, "the labels '%s' must be I64, one for each sample",
				  labels->name);
	return node_set_output(graph, node, 0, DTYPE_F32, &scalar, err);
}

enum prony_status half_squares_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape scalar = {.rank = 0};
	enum prony_status status = node_need_float(graph, node, 0, err);

	return status == PRONY_OK ? node_set_output(graph, node, 0, DTYPE_F32, &scalar, err)
				  : status;
}
