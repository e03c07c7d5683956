/* Expand: repeats dimensions of 1, for example a learned token for each sample. */
#include "graph/operators/operator.h"

static const struct attribute_row expand_attributes[] = {
	{ATTRIBUTE("shape", INTS, ints, 0), .input = 1},
	{.name = NULL},
};

static enum prony_status expand_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	struct int_list *asked = &node->attributes.ints;
	struct shape target, y;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	if (asked->count > TENSOR_MAX_RANK)
		return node_error(node, err, "its target shape has more than %d dimensions",
				  TENSOR_MAX_RANK);
	target = shape_make(asked->count, asked->items);
	if (!broadcast_shape(x, &target, &y)) {
		char x_text[128], target_text[128];

		shape_text(x, x_text, sizeof(x_text));
		shape_text(&target, target_text, sizeof(target_text));
		return node_error(node, err, "shape %s cannot be broadcast to %s", x_text,
				  target_text);
	}
	asked->count = y.rank;
	for (int i = 0; i < y.rank; i++)
		asked->items[i] = y.dims[i];
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static enum prony_status expand_backward(struct graph *graph, const struct node *node,
					 struct error *err)
{
	return broadcast_contribute(graph, node, 0, backward_gradient(graph, node), err);
}

static void expand_compute(const struct kernel_call *call)
{
	struct array_walk walk = array_walk_start(kernel_output_shape(call, 0));
	double *y = kernel_output(call, 0);

	array_walk_broadcast(&walk, 0, kernel_input_shape(call, 0));
	for (int64_t i = 0; i < kernel_output_count(call, 0); i++, array_walk_next(&walk))
		y[i] = kernel_input(call, 0)[walk.at[0]];
}

/* A value without samples that is repeated along the first axis, as often as there are samples, is
 * the same for each of them. */
static struct samples_axis expand_samples(const struct samples *s, const struct node *node,
					  const struct samples_axis *unused)
{
	const struct samples_axis *x = &s->places[node->inputs[0]];
	const struct shape *from = node_input_shape(s->graph, node, 0);
	const struct shape *to = node_output_shape(s->graph, node, 0);

	(void)unused;
	if (x->axis >= 0)
		return samples_on_output(s, node, x->axis + to->rank - from->rank, x->outer);
	if (to->dims[0] != s->batch || (from->rank == to->rank && from->dims[0] != 1))
		return samples_nowhere;
	return samples_on_output(s, node, 0, 1);
}

static void expand_rebatch(const struct samples *s, const struct samples_axis *x,
			   const struct samples_axis *y, int64_t batch, struct attributes *a)
{
	(void)s;
	(void)x;
	a->ints.items[y->axis] =
		saturating_multiply(saturating_multiply(y->outer, y->inner), batch);
}

/* clang-format off */
const struct operator_row row_EXPAND = {
	ARITY(1, 1, 1), .attributes = expand_attributes, .infer = expand_infer,
	.backward = expand_backward, .compute = expand_compute, .terms = terms_none,
	.samples = expand_samples, .samples_from = SAMPLES_FROM_ANY, .rebatch = expand_rebatch,
};
/* clang-format on */
