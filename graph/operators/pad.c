/* Pad with a constant, and its gradient. */
#include "graph/operators/operator.h"

static const struct attribute_row pad_attributes[] = {
	{ATTRIBUTE("pads", INTS, ints, 0), .input = 1},
	{ATTRIBUTE("value", REAL, value, 0), .input = 2},
	{.name = NULL},
};

static enum prony_status pad_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = *node_input_shape(graph, node, 0);
	const struct int_list *pads = &node->attributes.ints;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	if (pads->count != 2 * y.rank)
		return node_error(node, err,
				  "it has %d pads; an input with %d dimensions needs two for each",
				  pads->count, y.rank);
	for (int i = 0; i < pads->count; i++) {
		if (pads->items[i] < 0 || pads->items[i] > INT32_MAX)
			return node_error(node, err,
					  "pads contains %lld; each number must be 0 or more",
					  (long long)pads->items[i]);
		y.dims[i % y.rank] = saturating_add(y.dims[i % y.rank], pads->items[i]);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

/* Walks over the small array; place 0 is the offset of its elements in the padded one. */
static struct array_walk pad_walk(const struct kernel_call *call, const struct shape *inner,
				  const struct shape *padded)
{
	struct array_walk walk = array_walk_start(inner);

	for (int i = 0; i < inner->rank; i++) {
		walk.steps[0][i] = split_axis(padded, i).inner;
		walk.at[0] += call->node->attributes.ints.items[i] * walk.steps[0][i];
	}
	return walk;
}

static void pad_compute(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);
	struct array_walk walk =
		pad_walk(call, kernel_input_shape(call, 0), kernel_output_shape(call, 0));

	for (int64_t i = 0; i < kernel_output_count(call, 0); i++)
		y[i] = call->node->attributes.value;
	for (int64_t i = 0; i < shape_elements(&walk.shape); i++, array_walk_next(&walk))
		y[walk.at[0]] = x[i];
}

static void pad_grad_compute(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0);
	double *dx = kernel_output(call, 0);
	struct array_walk walk =
		pad_walk(call, kernel_output_shape(call, 0), kernel_input_shape(call, 0));

	for (int64_t i = 0; i < shape_elements(&walk.shape); i++, array_walk_next(&walk))
		dx[i] = dy[walk.at[0]];
}

static struct samples_axis pad_samples(const struct samples *s, const struct node *node,
				       const struct samples_axis *x)
{
	const struct int_list *pads = &node->attributes.ints;

	if (pads->items[x->axis] != 0 || pads->items[pads->count / 2 + x->axis] != 0)
		return samples_nowhere;
	return samples_on_output(s, node, x->axis, x->outer);
}

/* clang-format off */
const struct operator_row row_PAD = {
	ARITY(1, 1, 1), .attributes = pad_attributes, .infer = pad_infer,
	.gradient = OP_PAD_GRAD, .compute = pad_compute, .terms = terms_none,
	.samples = pad_samples,
};

const struct operator_row row_PAD_GRAD = {
	GRADIENT(1, 1, pad_attributes), .compute = pad_grad_compute, .terms = terms_none,
};
/* clang-format on */
