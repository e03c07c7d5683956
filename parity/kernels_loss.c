/* The losses and their gradients in float64. */
#include "parity/kernels_internal.h"

#include <math.h>

/* log of the sum of exp(x), without overflow for large x. */
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

/* Negative labels are ignored. */
static double valid_labels(const double *labels, int64_t count)
{
	double valid = 0;

	for (int64_t i = 0; i < count; i++)
		valid += labels[i] >= 0;
	return valid;
}

void kernel_cross_entropy(const struct kernel_call *call)
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

void kernel_cross_entropy_grad(const struct kernel_call *call)
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

static double half_squares(const double *x, int64_t count)
{
	double sum = 0;

	for (int64_t i = 0; i < count; i++)
		sum += x[i] * x[i];
	return sum / 2;
}

void kernel_half_squares(const struct kernel_call *call)
{
	*kernel_output(call, 0) =
		half_squares(kernel_input(call, 0), shape_elements(kernel_input_shape(call, 0)));
}

double reference_cross_entropy(const double *logits, const int64_t *labels, int64_t rows,
			       int64_t classes)
{
	double sum = 0, valid = 0;

	for (int64_t n = 0; n < rows; n++) {
		if (labels[n] < 0)
			continue;
		sum += log_sum_exp(logits + n * classes, classes) - logits[n * classes + labels[n]];
		valid++;
	}
	return sum / valid;
}

double reference_objective(const struct graph *graph, const double *logits, const int64_t *labels)
{
	if (graph->nodes[graph->forward_count - 1].op == OP_HALF_SQUARES)
		return half_squares(logits, shape_elements(&graph->values[graph->logits].shape));
	return reference_cross_entropy(logits, labels, graph->values[graph->logits].shape.dims[0],
				       graph_classes(graph));
}
