/* Dropout and its gradient. */
#include "graph/operators/operator.h"

#include <stdio.h>

#include "base/random.h"

static const struct attribute_row dropout_attributes[] = {
	{ATTRIBUTE("ratio", REAL, ratio, 0.5), .input = 1},
	{.name = NULL},
};

static enum prony_status dropout_infer(struct graph *graph, struct node *node, struct error *err)
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

static enum prony_status dropout_backward(struct graph *graph, const struct node *node,
					  struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	if (node->output_count < 2 || node->outputs[1] == VALUE_NONE)
		return node_error(node, err, "training needs its mask output, which is missing");
	return backward_unary(graph, node, OP_DROPOUT_GRAD, node->outputs[1], err);
}

#define STREAM_NAME_BYTES 300

static void dropout_compute(const struct kernel_call *call)
{
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0), *mask = kernel_output(call, 1);
	double ratio = call->node->attributes.ratio;
	char stream[STREAM_NAME_BYTES];
	struct random random;

	snprintf(stream, sizeof(stream), "dropout/%lld/%s", (long long)call->step,
		 call->node->name);
	random_init_named(&random, call->seed, stream);
	for (int64_t i = 0; i < kernel_output_count(call, 0); i++) {
		double factor = 1;

		if (call->dropout)
			factor = random_uniform(&random) < ratio ? 0 : 1 / (1 - ratio);
		y[i] = x[i] * factor;
		if (mask)
			mask[i] = factor;
	}
}

static void dropout_grad(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *dy = kernel_input(call, 0), *mask = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		dx[i] = dy[i] * mask[i];
}

static void dropout_grad_compute(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), dropout_grad);
}

/* clang-format off */
/* Dropout is off if rounding is requested. */
const struct operator_row row_DROPOUT = {
	ARITY(1, 1, 2), .attributes = dropout_attributes, .is_random = true,
	.infer = dropout_infer, .backward = dropout_backward, .compute = dropout_compute,
	.terms = terms_none, .samples = samples_stay, .layout = LAYOUT_SAME_PLACES,
	.joins_box = true, .onnx_inputs = "x", .onnx_export = ONNX_EXPORT_NOTHING,
	.training_outputs = "mask",
};

const struct operator_row row_DROPOUT_GRAD = {
	GRADIENT(2, 1, dropout_attributes), .compute = dropout_grad_compute,
	.terms = terms_none, .keeps_less = true,
};
/* clang-format on */
