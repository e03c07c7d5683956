#include "graph/operator_rows_internal.h"

const struct attribute_row batch_norm_attributes[] = {
	{"epsilon", ATTRIBUTE_REAL, offsetof(struct attributes, epsilon), 1e-5, 0, NULL},
	{"momentum", ATTRIBUTE_REAL, offsetof(struct attributes, momentum), 0.9, 0, NULL},
	{.name = NULL},
};

const struct attribute_row lrn_attributes[] = {
	{"alpha", ATTRIBUTE_REAL, offsetof(struct attributes, alpha), 1e-4, 0, NULL},
	{"beta", ATTRIBUTE_REAL, offsetof(struct attributes, beta), 0.75, 0, NULL},
	{"bias", ATTRIBUTE_REAL, offsetof(struct attributes, bias), 1, 0, NULL},
	{"size", ATTRIBUTE_INT, offsetof(struct attributes, size), 0, 0, NULL},
	{.name = NULL},
};

/* x has batch and channels; all else has one number for each channel. */
static enum prony_status check_channels(const struct graph *graph, const struct node *node,
					struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	if (x->rank < 2)
		return node_error(node, err, "its input has no channels");
	for (int i = 1; i < 5; i++) {
		status = node_need_rank(graph, node, i, 1, err);
		if (status != PRONY_OK)
			return status;
		if (node_input_shape(graph, node, i)->dims[0] != x->dims[1])
			return node_error(node, err,
					  "input %d ('%s') has %lld elements, x has %lld channels",
					  i, graph->values[node->inputs[i]].name,
					  (long long)node_input_shape(graph, node, i)->dims[0],
					  (long long)x->dims[1]);
	}
	return PRONY_OK;
}

enum prony_status batch_norm_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct attributes *a = &node->attributes;
	enum prony_status status = check_channels(graph, node, err);
	struct shape channels;

	if (status != PRONY_OK)
		return status;
	/* Training writes them. */
	for (int i = 3; i < 5; i++) {
		const struct value *state = &graph->values[node->inputs[i]];

		if (state->kind != VALUE_STATE)
			return node_error(node, err, "'%s' must be a state", state->name);
	}
	if (node->inputs[3] == node->inputs[4])
		return node_error(node, err, "mean and variance must be two states");
	if (!(a->epsilon > 0))
		return node_error(node, err, "epsilon is %g; it must be positive", a->epsilon);
	if (!(a->momentum >= 0 && a->momentum <= 1))
		return node_error(node, err, "momentum is %g; it must be 0 to 1", a->momentum);
	channels = *node_input_shape(graph, node, 1);
	status = node_copy_shape(graph, node, err);
	for (int i = 1; status == PRONY_OK && i < 3; i++)
		status = node_set_output(graph, node, i, DTYPE_F32, &channels, err);
	return status;
}

enum prony_status lrn_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct attributes *a = &node->attributes;

	if (node_input_shape(graph, node, 0)->rank < 2)
		return node_error(node, err, "its input has no channels");
	if (a->size < 1 || a->size > INT32_MAX)
		return node_error(node, err, "size is %lld; it must be 1 or more",
				  (long long)a->size);
	/* Then no power of zero or of a negative number is taken. */
	if (!(a->bias > 0 && a->alpha >= 0))
		return node_error(node, err, "bias is %g and alpha %g; they must be positive",
				  a->bias, a->alpha);
	return node_copy_shape(graph, node, err);
}
