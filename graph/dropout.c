#include "graph/operator_rows_internal.h"

const struct attribute_row dropout_attributes[] = {
	{"ratio", ATTRIBUTE_REAL, offsetof(struct attributes, ratio), 0.5, 0, NULL},
	{.name = NULL},
};

enum prony_status dropout_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape shape = *node_input_shape(graph, node, 0);
	enum prony_status status;

	if (!(node->attributes.ratio >= 0 && node->attributes.ratio < 1))
		return node_error(node, err, "ratio is %g; it must be at least 0 and less than 1",
				  node->attributes.ratio);
	status = node_copy_shape(graph, node, err);
	if (status != PRONY_OK)
		return status;
	return node_set_output(graph, node, 1, DTYPE_F32, &shape, err);
}
