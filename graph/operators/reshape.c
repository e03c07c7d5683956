/* Flatten, Reshape and their gradients: the same elements in another shape. */
#include "graph/operators/operator.h"

static const struct attribute_row flatten_attributes[] = {
	{ATTRIBUTE("axis", INT, axis, 1)},
	{.name = NULL},
};

static const struct attribute_row reshape_attributes[] = {
	{ATTRIBUTE("shape", INTS, ints, 0), .input = 1},
	{.name = NULL},
};

static enum prony_status flatten_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	struct shape y = {.rank = 2, .dims = {1, 1}};
	int64_t axis = node->attributes.axis;
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	if (axis < -x->rank || axis > x->rank)
		return node_error(node, err, "axis is %lld, but the input has %d dimensions",
				  (long long)axis, x->rank);
	if (axis < 0)
		axis += x->rank;
	for (int i = 0; i < x->rank; i++) {
		int64_t *side = &y.dims[i < axis ? 0 : 1];

		*side = saturating_multiply(*side, x->dims[i]);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

/* The shape that `shape` describes for x; *open is the index of its -1, or -1. */
static enum prony_status asked_shape(const struct node *node, const struct shape *x,
				     struct shape *y, int *open, struct error *err)
{
	const struct int_list *asked = &node->attributes.ints;

	*open = -1;
	if (asked->count > TENSOR_MAX_RANK)
		return node_error(node, err, "its target shape has more than %d dimensions",
				  TENSOR_MAX_RANK);
	*y = (struct shape){.rank = asked->count};
	for (int i = 0; i < asked->count; i++) {
		int64_t dim = asked->items[i];

		if (dim < -1 || (dim == -1 && *open >= 0) || (dim == 0 && i >= x->rank))
			return node_error(node, err,
					  "dimension %d of its target shape is %lld, which is not "
					  "possible here",
					  i, (long long)dim);
		if (dim == -1)
			*open = i;
		y->dims[i] = dim == 0 ? x->dims[i] : dim == -1 ? 1 : dim;
	}
	return PRONY_OK;
}

static enum prony_status reshape_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape x = *node_input_shape(graph, node, 0);
	enum prony_status status = node_need_float(graph, node, 0, err);
	int64_t elements = shape_elements(&x), known;
	struct shape y = {.rank = 0};
	int open;

	if (status == PRONY_OK)
		status = asked_shape(node, &x, &y, &open, err);
	if (status != PRONY_OK)
		return status;
	known = shape_elements(&y);
	if (open >= 0 && known > 0 && elements % known == 0) {
		y.dims[open] = elements / known;
		known = elements;
	}
	if (known != elements) {
		char x_text[128], y_text[128];

		shape_text(&x, x_text, sizeof(x_text));
		shape_text(&y, y_text, sizeof(y_text));
		return node_error(
			node, err,
			"shape %s cannot be reshaped to %s: the numbers of elements differ", x_text,
			y_text);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

/* Elements before the samples: a reshape moves no element, so their number is the same in its
 * output and its input. */
static int64_t before_samples(const struct samples *s, const struct node *node,
			      const struct samples_axis *x)
{
	int64_t before = x->outer;

	for (int i = 0; i < x->axis; i++)
		before *= node_input_shape(s->graph, node, 0)->dims[i];
	return before;
}

static struct samples_axis flatten_samples(const struct samples *s, const struct node *node,
					   const struct samples_axis *x)
{
	int64_t before = before_samples(s, node, x);

	if (x->axis < node->attributes.axis)
		return samples_on_output(s, node, 0, before);
	return samples_on_output(s, node, 1,
				 before / node_output_shape(s->graph, node, 0)->dims[0]);
}

/* With a batch of at least 2, at most one place has that many elements before it. With a batch of 1
 * there may be several, which all have the elements in the same order; an axis that starts with the
 * samples is preferred. */
static struct samples_axis reshape_samples(const struct samples *s, const struct node *node,
					   const struct samples_axis *x)
{
	const struct shape *shape = node_output_shape(s->graph, node, 0);
	struct samples_axis found = samples_nowhere;
	int64_t before = before_samples(s, node, x), prefix = 1;

	for (int i = 0; i < shape->rank; i++) {
		struct samples_axis place = before % prefix == 0
						    ? samples_on(s, shape, i, before / prefix)
						    : samples_nowhere;

		if (place.axis >= 0 && (found.axis < 0 || place.outer == 1))
			found = place;
		if (found.axis >= 0 && found.outer == 1)
			break;
		prefix *= shape->dims[i];
	}
	return found;
}

/* A dimension of 0 or -1 follows the input without a change. */
static void reshape_rebatch(const struct samples *s, const struct samples_axis *x,
			    const struct samples_axis *y, int64_t batch, struct attributes *a)
{
	(void)s;
	(void)x;
	if (a->ints.items[y->axis] > 0)
		a->ints.items[y->axis] =
			saturating_multiply(saturating_multiply(y->outer, y->inner), batch);
}

/* clang-format off */
const struct operator_row row_FLATTEN = {
	ARITY(1, 1, 1), .attributes = flatten_attributes, .infer = flatten_infer,
	.gradient = OP_FLATTEN_GRAD, .compute = compute_copy, .terms = terms_none,
	.samples = flatten_samples, .layout = LAYOUT_RESHAPES,
};

const struct operator_row row_FLATTEN_GRAD = {
	GRADIENT(1, 1, flatten_attributes), .compute = compute_copy, .terms = terms_none,
};

const struct operator_row row_RESHAPE = {
	ARITY(1, 1, 1), .attributes = reshape_attributes, .infer = reshape_infer,
	.gradient = OP_RESHAPE_GRAD, .compute = compute_copy, .terms = terms_none,
	.samples = reshape_samples, .rebatch = reshape_rebatch, .layout = LAYOUT_RESHAPES,
};

const struct operator_row row_RESHAPE_GRAD = {
	GRADIENT(1, 1, reshape_attributes), .compute = compute_copy, .terms = terms_none,
};
/* clang-format on */
