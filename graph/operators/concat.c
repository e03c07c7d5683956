/* Concat; its gradients are Slices. */
#include "graph/operators/operator.h"

#include <string.h>

static const struct attribute_row concat_attributes[] = {
	{ATTRIBUTE("axis", INT, axis, 1)},
	{.name = NULL},
};

static enum prony_status concat_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	enum prony_status status = node_normal_axis(node, y.rank, &node->attributes.axis, err);
	int64_t axis = node->attributes.axis;

	for (int i = 0; status == PRONY_OK && i < node->input_count; i++) {
		struct shape like;

		if (!node_has_input(node, i))
			return node_error(node, err, "input %d is required", i);
		status = node_need_rank(graph, node, i, y.rank, err);
		if (status != PRONY_OK)
			return status;
		like = *node_input_shape(graph, node, i);
		if (i > 0)
			y.dims[axis] = saturating_add(y.dims[axis], like.dims[axis]);
		like.dims[axis] = y.dims[axis];
		if (!shape_equal(&like, &y))
			return node_error(node, err,
					  "input %d ('%s') differs from input 0 in a dimension "
					  "other than axis %lld",
					  i, graph->values[node->inputs[i]].name, (long long)axis);
	}
	return status == PRONY_OK ? node_set_output(graph, node, 0, DTYPE_F32, &y, err) : status;
}

/* The gradient of each input is a slice. */
static enum prony_status concat_backward(struct graph *graph, const struct node *node,
					 struct error *err)
{
	int dy = backward_gradient(graph, node);
	struct attributes cut = {.axis = node->attributes.axis, .step = 1};

	for (int i = 0; i < node->input_count; i++) {
		enum prony_status status;
		int dx;

		cut.start = cut.end;
		cut.end += node_input_shape(graph, node, i)->dims[cut.axis];
		if (!backward_wants(graph, node, i))
			continue;
		status = backward_apply(graph, node, i, OP_SLICE, &dy, 1, &cut, &dx, err);
		if (status == PRONY_OK)
			status = backward_contribute(graph, node->inputs[i], dx, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

static void concat_compute(const struct kernel_call *call)
{
	int64_t axis = call->node->attributes.axis, start = 0;
	struct axis_split y = split_axis(kernel_output_shape(call, 0), axis);

	for (int i = 0; i < call->node->input_count; i++) {
		struct axis_split x = split_axis(kernel_input_shape(call, i), axis);
		int64_t run = x.size * x.inner;

		for (int64_t n = 0; n < x.outer; n++)
			memcpy(kernel_output(call, 0) + n * y.size * y.inner + start,
			       kernel_input(call, i) + n * run, (size_t)run * sizeof(double));
		start += run;
	}
}

/* Along the batch, groups of samples are appended to each other. */
static struct samples_axis concat_samples(const struct samples *s, const struct node *node,
					  const struct samples_axis *first)
{
	bool along = node->attributes.axis == first->axis;
	int64_t outer = first->outer;

	for (int i = 1; i < node->input_count; i++) {
		const struct samples_axis *x = &s->places[node->inputs[i]];

		if (x->axis != first->axis || x->inner != first->inner ||
		    (!along && x->outer != first->outer))
			return samples_nowhere;
		outer += along ? x->outer : 0;
	}
	return samples_on_output(s, node, first->axis, outer);
}

/* clang-format off */
const struct operator_row row_CONCAT = {
	ARITY(1, NODE_MAX_INPUTS, 1), .attributes = concat_attributes,
	.infer = concat_infer, .backward = concat_backward, .compute = concat_compute,
	.terms = terms_none, .samples = concat_samples,
};
/* clang-format on */
