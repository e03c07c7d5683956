/* The interpreter's table: which kernel computes an operator. */
#include <assert.h>

#include "parity/kernels_internal.h"

static void (*const kernels[OP_COUNT])(const struct kernel_call *call) = {
	[OP_CONV] = kernel_conv,
	[OP_MAX_POOL] = kernel_max_pool,
	[OP_AVERAGE_POOL] = kernel_average_pool,
	[OP_GLOBAL_AVERAGE_POOL] = kernel_mean,
	[OP_GEMM] = kernel_gemm,
	[OP_RELU] = kernel_relu,
	[OP_SOFTMAX] = kernel_softmax,
	[OP_BATCH_NORM] = kernel_batch_norm,
	[OP_LRN] = kernel_lrn,
	[OP_FLATTEN] = kernel_copy,
	[OP_RESHAPE] = kernel_copy,
	[OP_IDENTITY] = kernel_copy,
	[OP_TRANSPOSE] = kernel_transpose,
	[OP_CONCAT] = kernel_concat,
	[OP_SLICE] = kernel_slice,
	[OP_PAD] = kernel_pad,
	[OP_REDUCE_MEAN] = kernel_mean,
	[OP_DROPOUT] = kernel_dropout,
	[OP_LSTM] = kernel_lstm,
	[OP_RNN] = kernel_rnn,
	[OP_SOFTMAX_CROSS_ENTROPY] = kernel_cross_entropy,
	[OP_HALF_SQUARES] = kernel_half_squares,
	[OP_CONV_GRAD_INPUT] = kernel_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = kernel_conv_grad_weight,
	[OP_MAX_POOL_GRAD] = kernel_max_pool_grad,
	[OP_AVERAGE_POOL_GRAD] = kernel_average_pool_grad,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = kernel_mean_grad,
	[OP_GEMM_GRAD_INPUT] = kernel_gemm_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = kernel_gemm_grad_weight,
	[OP_RELU_GRAD] = kernel_relu_grad,
	[OP_ELEMENTWISE_GRAD] = kernel_elementwise_grad,
	[OP_SOFTMAX_GRAD] = kernel_softmax_grad,
	[OP_BATCH_NORM_GRAD] = kernel_batch_norm_grad,
	[OP_LRN_GRAD] = kernel_lrn_grad,
	[OP_FLATTEN_GRAD] = kernel_copy,
	[OP_RESHAPE_GRAD] = kernel_copy,
	[OP_SLICE_GRAD] = kernel_slice_grad,
	[OP_PAD_GRAD] = kernel_pad_grad,
	[OP_REDUCE_MEAN_GRAD] = kernel_mean_grad,
	[OP_DROPOUT_GRAD] = kernel_dropout_grad,
	[OP_BROADCAST_GRAD] = kernel_broadcast_grad,
	[OP_LSTM_GRAD] = kernel_lstm_grad,
	[OP_RNN_GRAD] = kernel_rnn_grad,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = kernel_cross_entropy_grad,
	[OP_HALF_SQUARES_GRAD] = kernel_copy,
};

void (*kernel_of(enum op op))(const struct kernel_call *call)
{
	if ((unsigned)op >= OP_COUNT || kernels[op])
		return (unsigned)op < OP_COUNT ? kernels[op] : NULL;
	return operator_row(op)->elementwise ? kernel_elementwise
	       : operator_row(op)->broadcast ? kernel_broadcast
					     : NULL;
}
