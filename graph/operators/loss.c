/* The losses: SoftmaxCrossEntropyLoss, HalfSumOfSquares and their gradients. */
#include "graph/operators/operator.h"

#include <math.h>

static enum prony_status cross_entropy_infer(struct graph *graph, struct node *node,
					     struct error *err)
{
	const struct value *labels = &graph->values[node->inputs[1]];
	struct shape scalar = {.rank = 0};
	enum prony_status status = node_need_rank(graph, node, 0, 2, err);

	if (status != PRONY_OK)
		return status;
	if (labels->dtype != DTYPE_I64 ||
	    shape_elements(&labels->shape) != node_input_shape(graph, node, 0)->dims[0])
		return node_error(
			node, err,
			"the labels '%s' must be I64, with one label for each row of the logits",
			labels->name);
	return node_set_output(graph, node, 0, DTYPE_F32, &scalar, err);
}

static enum prony_status half_squares_infer(struct graph *graph, struct node *node,
					    struct error *err)
{
	struct shape scalar = {.rank = 0};
	enum prony_status status = node_need_float(graph, node, 0, err);

	return status == PRONY_OK ? node_set_output(graph, node, 0, DTYPE_F32, &scalar, err)
				  : status;
}

/* The backward pass starts here: d loss / d loss is 1 and is never stored. */
static enum prony_status cross_entropy_backward(struct graph *graph, const struct node *node,
						struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_SOFTMAX_CROSS_ENTROPY_GRAD, node->inputs, 2, 0, 1,
			     err);
}

static enum prony_status half_squares_backward(struct graph *graph, const struct node *node,
					       struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_node(graph, node, OP_HALF_SQUARES_GRAD, node->inputs, 1, 0, 1, err);
}

/* log of the sum of exp(x), computed without overflow for large x. */
static double log_sum_exp(const double *x, int64_t count)
{
	double largest = x[0], sum = 0;

	for (int64_t i = 1; i < count; i++)
		if (x[i] > largest)
			largest = x[i];
	for (int64_t i = 0; i < count; i++)
		sum += exp(x[i] - largest);
	return largest + log(sum);
}

/* The number of valid labels; negative ones are ignored. */
static double valid_labels(const double *labels, int64_t count)
{
	double valid = 0;

	for (int64_t i = 0; i < count; i++)
		valid += labels[i] >= 0;
	return valid;
}

static void cross_entropy_compute(const struct kernel_call *call)
{
	const struct shape *shape = kernel_input_shape(call, 0);
	const double *logits = kernel_input(call, 0), *labels = kernel_input(call, 1);
	double sum = 0;

	for (int64_t n = 0; n < shape->dims[0]; n++) {
		const double *row = logits + n * shape->dims[1];

		if (labels[n] >= 0)
			sum += log_sum_exp(row, shape->dims[1]) - row[(int64_t)labels[n]];
	}
	*kernel_output(call, 0) = sum / valid_labels(labels, shape->dims[0]);
}

static void cross_entropy_grad_compute(const struct kernel_call *call)
{
	const struct shape *shape = kernel_input_shape(call, 0);
	const double *logits = kernel_input(call, 0), *labels = kernel_input(call, 1);
	double *gradient = kernel_output(call, 0);
	double valid = valid_labels(labels, shape->dims[0]);

	for (int64_t n = 0; n < shape->dims[0]; n++) {
		const double *row = logits + n * shape->dims[1];
		double *out = gradient + n * shape->dims[1];
		double normaliser = log_sum_exp(row, shape->dims[1]);

		for (int64_t c = 0; c < shape->dims[1]; c++)
			out[c] = labels[n] < 0 ? 0 : exp(row[c] - normaliser) / valid;
		if (labels[n] >= 0)
			out[(int64_t)labels[n]] -= 1 / valid;
	}
}

static void half_squares_compute(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double sum = 0;

	for (int64_t i = 0; i < shape_elements(kernel_input_shape(call, 0)); i++)
		sum += x[i] * x[i];
	*kernel_output(call, 0) = sum / 2;
}

/* clang-format off */
const struct operator_row row_SOFTMAX_CROSS_ENTROPY = {
	ARITY(2, 2, 1), .attributes = no_attributes, .is_loss = true,
	.infer = cross_entropy_infer, .backward = cross_entropy_backward,
	.compute = cross_entropy_compute,
};

const struct operator_row row_SOFTMAX_CROSS_ENTROPY_GRAD = {
	GRADIENT(2, 1, no_attributes), .compute = cross_entropy_grad_compute,
};

const struct operator_row row_HALF_SQUARES = {
	ARITY(1, 1, 1), .attributes = no_attributes, .is_loss = true, .sums_batch = true,
	.infer = half_squares_infer, .backward = half_squares_backward,
	.compute = half_squares_compute,
};

const struct operator_row row_HALF_SQUARES_GRAD = {
	GRADIENT(1, 1, no_attributes), .compute = compute_copy, .terms = terms_none,
};
/* clang-format on */
