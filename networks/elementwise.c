#include "networks/rows.h"

#include "networks/backward.h"

const struct attribute_row dropout_attributes[] = {
	{"ratio", ATTRIBUTE_REAL, offsetof(struct attributes, ratio), 0.5},
	{.name = NULL},
};

enum prony_status relu_infer(struct graph *graph, struct node *node, struct error *err)
{
	return node_copy_shape(graph, node, err);
}

enum prony_status relu_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node);

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_RELU_GRAD, (const int[]){dy, node->outputs[0]}, 2, 0,
			     1, err);
}

enum prony_status add_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *a = node_input_shape(graph, node, 0);
	const struct shape *b = node_input_shape(graph, node, 1);
	enum prony_status status = node_need_float(graph, node, 1, err);

	if (status != PRONY_OK)
		return status;
	if (!shape_equal(a, b)) {
		char a_text[128], b_text[128];

		shape_text(a, a_text, sizeof(a_text));
		shape_text(b, b_text, sizeof(b_text));
		return node_error(node, err,
				  "shapes %s and %s differ; broadcasting is not supported", a_text,
				  b_text);
	}
	return node_copy_shape(graph, node, err);
}

/* The gradient of a sum is the gradient of each term: no node is needed. */
enum prony_status add_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node);
	bool wanted[2] = {backward_wants(graph, node, 0), backward_wants(graph, node, 1)};

	for (int i = 0; i < 2; i++) {
		if (wanted[i]) {
			enum prony_status status =
				backward_contribute(graph, node->inputs[i], dy, err);

			if (status != PRONY_OK)
				return status;
		}
	}
	return PRONY_OK;
}

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

enum prony_status dropout_backward(struct graph *graph, const struct node *node, struct error *err)
{
	int dy = backward_gradient(graph, node);

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	if (node->output_count < 2 || node->outputs[1] == VALUE_NONE)
		return node_error(node, err, "it has no mask output, which training needs");
	return backward_node(graph, node, OP_DROPOUT_GRAD, (const int[]){dy, node->outputs[1]}, 2,
			     0, 1, err);
}
