/* Functions of two elements with broadcasting: Add, Sub, Mul, Div; and BroadcastGrad. */
#include "graph/operators/operator.h"

#include <string.h>

static const struct attribute_row broadcast_attributes[] = {
	{ATTRIBUTE("axis", INT, axis, 0)},
	{.name = NULL},
};

static double add(double a, double b)
{
	return a + b;
}

static double subtract(double a, double b)
{
	return a - b;
}

static double multiply(double a, double b)
{
	return a * b;
}

static double divide(double a, double b)
{
	return a / b;
}

bool broadcast_shape(const struct shape *a, const struct shape *b, struct shape *y)
{
	const struct shape *longer = a->rank >= b->rank ? a : b;
	const struct shape *shorter = longer == a ? b : a;
	int lead = longer->rank - shorter->rank;

	*y = *longer;
	for (int i = 0; i < shorter->rank; i++) {
		int64_t other = shorter->dims[i], *dim = &y->dims[lead + i];

		if (*dim == 1)
			*dim = other;
		else if (other != 1 && other != *dim)
			return false;
	}
	return true;
}

static enum prony_status binary_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *a = node_input_shape(graph, node, 0);
	const struct shape *b = node_input_shape(graph, node, 1);
	enum prony_status status = node_need_float(graph, node, 0, err);
	struct shape y;

	if (status == PRONY_OK)
		status = node_need_float(graph, node, 1, err);
	if (status != PRONY_OK)
		return status;
	if (!broadcast_shape(a, b, &y)) {
		char a_text[128], b_text[128];

		shape_text(a, a_text, sizeof(a_text));
		shape_text(b, b_text, sizeof(b_text));
		return node_error(node, err, "shapes %s and %s cannot be broadcast to each other",
				  a_text, b_text);
	}
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

enum prony_status broadcast_contribute(struct graph *graph, const struct node *node, int i,
				       int gradient, struct error *err)
{
	struct node copy = *node;

	if (shape_equal(&graph->values[gradient].shape, node_input_shape(graph, node, i)))
		return backward_contribute(graph, node->inputs[i], gradient, err);
	copy.attributes.axis = i;
	return backward_node(graph, &copy, OP_BROADCAST_GRAD, &gradient, 1, i, 1, err);
}

/* The gradient of a sum is the gradient of each term, so no node is needed. */
static enum prony_status add_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		if (backward_wants(graph, node, i))
			status = broadcast_contribute(graph, node, i, dy, err);
	}
	return status;
}

/* Appends op(inputs), which has the shape of the output, and contributes it to input i. */
static enum prony_status apply(struct graph *graph, const struct node *node, int i, enum op op,
			       const int *inputs, int count, struct error *err)
{
	int gradient = VALUE_NONE;
	enum prony_status status =
		backward_apply(graph, node, i, op, inputs, count, NULL, &gradient, err);

	return status == PRONY_OK ? broadcast_contribute(graph, node, i, gradient, err) : status;
}

static enum prony_status sub_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 0))
		status = broadcast_contribute(graph, node, 0, dy, err);
	if (status == PRONY_OK && backward_wants(graph, node, 1))
		status = apply(graph, node, 1, OP_NEG, &dy, 1, err);
	return status;
}

static enum prony_status mul_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		if (backward_wants(graph, node, i))
			status = apply(graph, node, i, OP_MUL,
				       (const int[]){dy, node->inputs[1 - i]}, 2, err);
	}
	return status;
}

/* y = a / b: da = dy / b, db = -da * y */
static enum prony_status div_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node), quotient, product;
	enum prony_status status =
		backward_apply(graph, node, 0, OP_DIV, (const int[]){dy, node->inputs[1]}, 2, NULL,
			       &quotient, err);

	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = broadcast_contribute(graph, node, 0, quotient, err);
	if (status != PRONY_OK || !backward_wants(graph, node, 1))
		return status;
	status = backward_apply(graph, node, 1, OP_MUL, (const int[]){quotient, node->outputs[0]},
				2, NULL, &product, err);
	return status == PRONY_OK ? apply(graph, node, 1, OP_NEG, &product, 1, err) : status;
}

static struct array_walk binary_walk(const struct kernel_call *call, int64_t first)
{
	struct array_walk walk = array_walk_start(kernel_output_shape(call, 0));

	for (int i = 0; i < 2; i++)
		array_walk_broadcast(&walk, i, kernel_input_shape(call, i));
	array_walk_seek(&walk, first);
	return walk;
}

static bool same_shapes(const struct kernel_call *call)
{
	return shape_equal(kernel_input_shape(call, 0), kernel_input_shape(call, 1));
}

static void broadcast(const struct kernel_call *call, int64_t first, int64_t end)
{
	double (*function)(double a, double b) = operator_row(call->node->op)->broadcast;
	const double *a = kernel_input(call, 0), *b = kernel_input(call, 1);
	double *y = kernel_output(call, 0);

	if (same_shapes(call)) { /* the usual case; walking costs more than this loop */
		for (int64_t i = first; i < end; i++)
			y[i] = function(a[i], b[i]);
		return;
	}
	struct array_walk walk = binary_walk(call, first);
	for (int64_t i = first; i < end; i++, array_walk_next(&walk))
		y[i] = function(a[walk.at[0]], b[walk.at[1]]);
}

static void broadcast_compute(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), broadcast);
}

static void broadcast_grad_compute(const struct kernel_call *call)
{
	const double *dy = kernel_input(call, 0);
	double *dx = kernel_output(call, 0);
	struct array_walk walk = array_walk_start(kernel_input_shape(call, 0));

	array_walk_broadcast(&walk, 0, kernel_output_shape(call, 0));
	memset(dx, 0, (size_t)kernel_output_count(call, 0) * sizeof(*dx));
	for (int64_t i = 0; i < shape_elements(&walk.shape); i++, array_walk_next(&walk))
		dx[walk.at[0]] += dy[i];
}

struct samples_axis broadcast_samples(const struct samples *s, const struct node *node, int own)
{
	int rank = node_output_shape(s->graph, node, 0)->rank;
	struct samples_axis first = samples_nowhere;

	for (int i = 0; i < 2; i++) {
		struct samples_axis place = s->places[node->inputs[i]];

		if (place.axis < 0)
			continue;
		place.axis += rank - node_input_shape(s->graph, node, i)->rank;
		if (first.axis >= 0 && (place.axis != first.axis || place.outer != first.outer ||
					place.inner != first.inner))
			return samples_nowhere;
		first = place;
	}
	if (first.axis < 0)
		return samples_nowhere;
	for (int i = 0; first.axis < rank - own && i < 2; i++) {
		const struct shape *shape = node_input_shape(s->graph, node, i);
		int axis = first.axis - (rank - shape->rank);

		if (s->places[node->inputs[i]].axis < 0 && axis >= 0 && shape->dims[axis] != 1)
			return samples_nowhere;
	}
	return samples_on_output(s, node, first.axis, first.outer);
}

static struct samples_axis binary_samples(const struct samples *s, const struct node *node,
					  const struct samples_axis *unused)
{
	(void)unused;
	return broadcast_samples(s, node, 0);
}

#define BINARY(function, gradient)                                                                 \
	ARITY(2, 2, 1), .attributes = no_attributes, .infer = binary_infer,                        \
			.broadcast = (function), .backward = (gradient),                           \
			.compute = broadcast_compute, .samples = binary_samples,                   \
			.samples_from = SAMPLES_FROM_ANY, .onnx_inputs = "ee"

/* clang-format off */
const struct operator_row row_ADD = {BINARY(add, add_backward)};
const struct operator_row row_SUB = {BINARY(subtract, sub_backward)};
const struct operator_row row_MUL = {BINARY(multiply, mul_backward)};
const struct operator_row row_DIV = {BINARY(divide, div_backward)};

const struct operator_row row_BROADCAST_GRAD = {
	GRADIENT(1, 1, broadcast_attributes), .first_target = TARGET_AXIS,
	.compute = broadcast_grad_compute, .terms = terms_shared,
};
/* clang-format on */
