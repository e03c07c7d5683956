#include "parity/kernels.h"

#include <assert.h>
#include <math.h>

static void (*const kernels[OP_COUNT])(const struct kernel_call *call) = {
	[OP_CONV] = kernel_conv,
	[OP_MAX_POOL] = kernel_max_pool,
	[OP_GEMM] = kernel_gemm,
	[OP_RELU] = kernel_relu,
	[OP_FLATTEN] = kernel_copy,
	[OP_DROPOUT] = kernel_dropout,
	[OP_ADD] = kernel_add,
	[OP_SOFTMAX_CROSS_ENTROPY] = kernel_cross_entropy,
	[OP_CONV_GRAD_INPUT] = kernel_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = kernel_conv_grad_weight,
	[OP_MAX_POOL_GRAD] = kernel_max_pool_grad,
	[OP_GEMM_GRAD_INPUT] = kernel_gemm_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = kernel_gemm_grad_weight,
	[OP_RELU_GRAD] = kernel_relu_grad,
	[OP_FLATTEN_GRAD] = kernel_copy,
	[OP_DROPOUT_GRAD] = kernel_dropout_grad,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = kernel_cross_entropy_grad,
};

void (*kernel_of(enum op op))(const struct kernel_call *call)
{
	return (unsigned)op < OP_COUNT ? kernels[op] : NULL;
}

double *kernel_input(const struct kernel_call *call, int i)
{
	if (i >= call->node->input_count || call->node->inputs[i] == VALUE_NONE)
		return NULL;
	return call->values[call->node->inputs[i]];
}

double *kernel_output(const struct kernel_call *call, int i)
{
	if (i >= call->node->output_count || call->node->outputs[i] == VALUE_NONE)
		return NULL;
	return call->values[call->node->outputs[i]];
}

const struct shape *kernel_input_shape(const struct kernel_call *call, int i)
{
	assert(i < call->node->input_count);
	return &call->graph->values[call->node->inputs[i]].shape;
}

const struct shape *kernel_output_shape(const struct kernel_call *call, int i)
{
	assert(i < call->node->output_count);
	return &call->graph->values[call->node->outputs[i]].shape;
}

int64_t kernel_output_count(const struct kernel_call *call, int i)
{
	return shape_elements(kernel_output_shape(call, i));
}

double kernel_rms(const double *x, int64_t count)
{
	double sum = 0;

	for (int64_t i = 0; i < count; i++)
		sum += x[i] * x[i];
	return count > 0 ? sqrt(sum / (double)count) : 0;
}

bool kernel_turns(struct kinks *kinks)
{
	int64_t number = kinks->count++;

	return number < kinks->decided ? kinks->decisions[number] : kinks->turn_all;
}
