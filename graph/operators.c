#include "graph/operators.h"

#include <assert.h>

#include "graph/operator_rows_internal.h"

/* A row reads better in few lines. */
/* clang-format off */
static const struct operator_row rows[OP_COUNT] = {
	[OP_CONV] = {
		.min_inputs = 2, .max_inputs = 3, .max_outputs = 1,
		.attributes = conv_attributes,
		.infer = conv_infer, .macs = conv_macs,
	},
	[OP_MAX_POOL] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = max_pool_attributes,
		.infer = max_pool_infer,
	},
	[OP_AVERAGE_POOL] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = average_pool_attributes,
		.infer = average_pool_infer,
	},
	[OP_GLOBAL_AVERAGE_POOL] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = global_average_pool_infer,
	},
	[OP_GEMM] = {
		.min_inputs = 2, .max_inputs = 3, .max_outputs = 1,
		.attributes = gemm_attributes,
		.infer = gemm_infer, .macs = gemm_macs,
	},
	[OP_SOFTMAX] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = softmax_attributes,
		.infer = softmax_infer,
	},
	[OP_BATCH_NORM] = {
		.min_inputs = 5, .max_inputs = 5, .max_outputs = 3,
		.attributes = batch_norm_attributes,
		.infer = batch_norm_infer,
	},
	[OP_LRN] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = lrn_attributes,
		.infer = lrn_infer,
	},
	[OP_FLATTEN] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = flatten_attributes,
		.infer = flatten_infer,
	},
	[OP_RESHAPE] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = reshape_attributes,
		.infer = reshape_infer,
	},
	[OP_TRANSPOSE] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = transpose_attributes,
		.infer = transpose_infer,
	},
	[OP_CONCAT] = {
		.min_inputs = 1, .max_inputs = NODE_MAX_INPUTS, .max_outputs = 1,
		.attributes = concat_attributes,
		.infer = concat_infer,
	},
	[OP_SLICE] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = slice_attributes,
		.infer = slice_infer,
	},
	[OP_PAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = pad_attributes,
		.infer = pad_infer,
	},
	[OP_REDUCE_MEAN] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = reduce_mean_attributes,
		.infer = reduce_mean_infer,
	},
	[OP_DROPOUT] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 2,
		.attributes = dropout_attributes,
		.infer = dropout_infer,
	},
	[OP_ADD] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = binary_infer, .broadcast = add,
	},
	[OP_SUB] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = binary_infer, .broadcast = subtract,
	},
	[OP_MUL] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = binary_infer, .broadcast = multiply,
	},
	[OP_DIV] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = binary_infer, .broadcast = divide,
	},
	[OP_LSTM] = {
		.min_inputs = 4, .max_inputs = 4, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = lstm_infer, .macs = recurrent_macs,
	},
	[OP_RNN] = {
		.min_inputs = 4, .max_inputs = 4, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = rnn_infer, .macs = recurrent_macs,
	},
	[OP_SOFTMAX_CROSS_ENTROPY] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes, .is_loss = true,
		.infer = cross_entropy_infer,
	},
	[OP_HALF_SQUARES] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = no_attributes, .is_loss = true,
		.infer = half_squares_infer,
	},
	[OP_CONV_GRAD_INPUT] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = conv_attributes, .is_gradient = true,
		.infer = infer_grad_input, .macs = conv_grad_macs,
	},
	[OP_CONV_GRAD_WEIGHT] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 2,
		.attributes = conv_attributes, .is_gradient = true,
		.infer = infer_grad_weight, .macs = conv_grad_macs,
	},
	[OP_MAX_POOL_GRAD] = {
		.min_inputs = 3, .max_inputs = 3, .max_outputs = 1,
		.attributes = max_pool_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_AVERAGE_POOL_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = average_pool_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = no_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_GEMM_GRAD_INPUT] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = gemm_attributes, .is_gradient = true,
		.infer = infer_grad_input, .macs = gemm_grad_macs,
	},
	[OP_GEMM_GRAD_WEIGHT] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 2,
		.attributes = gemm_attributes, .is_gradient = true,
		.infer = infer_grad_weight, .macs = gemm_grad_macs,
	},
	[OP_RELU_GRAD] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_ELEMENTWISE_GRAD] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_SOFTMAX_GRAD] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = softmax_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_BATCH_NORM_GRAD] = {
		.min_inputs = 5, .max_inputs = 5, .max_outputs = 3,
		.attributes = batch_norm_attributes, .is_gradient = true, .leaves_out = true,
		.infer = infer_grad_input,
	},
	[OP_LRN_GRAD] = {
		.min_inputs = 3, .max_inputs = 3, .max_outputs = 1,
		.attributes = lrn_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_FLATTEN_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = flatten_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_RESHAPE_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = reshape_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_SLICE_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = slice_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_PAD_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = pad_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_REDUCE_MEAN_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = reduce_mean_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_DROPOUT_GRAD] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = dropout_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_BROADCAST_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = broadcast_attributes, .is_gradient = true,
		.infer = infer_broadcast_grad,
	},
	[OP_LSTM_GRAD] = {
		.min_inputs = 5, .max_inputs = 5, .max_outputs = 4,
		.attributes = no_attributes, .is_gradient = true, .leaves_out = true,
		.infer = infer_grad_input, .macs = recurrent_grad_macs,
	},
	[OP_RNN_GRAD] = {
		.min_inputs = 5, .max_inputs = 5, .max_outputs = 4,
		.attributes = no_attributes, .is_gradient = true, .leaves_out = true,
		.infer = infer_grad_input, .macs = recurrent_grad_macs,
	},
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = {
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_HALF_SQUARES_GRAD] = {
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = no_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
};
/* clang-format on */

const struct operator_row *operator_row(enum op op)
{
	assert((unsigned)op < OP_COUNT);
	return elementwise_row(op) ? elementwise_row(op) : &rows[op];
}

static void set_default(const struct attribute_row *row, struct attributes *out)
{
	void *member = (char *)out + row->offset;
	/* What ONNX assumes of a real number may be too large for a whole one. */
	int64_t whole = row->kind == ATTRIBUTE_REAL ? 0 : (int64_t)row->otherwise;

	switch (row->kind) {
	case ATTRIBUTE_INT:
	case ATTRIBUTE_WORD:
		*(int64_t *)member = whole;
		break;
	case ATTRIBUTE_INTS2:
	case ATTRIBUTE_INTS4:
		for (int i = 0; i < (row->kind == ATTRIBUTE_INTS2 ? 2 : 4); i++)
			((int64_t *)member)[i] = whole;
		break;
	case ATTRIBUTE_INTS:
		*(struct int_list *)member = (struct int_list){.count = 0};
		break;
	case ATTRIBUTE_REAL:
		*(double *)member = row->otherwise;
		break;
	case ATTRIBUTE_BOOL:
		*(bool *)member = whole != 0;
		break;
	}
}

void operator_default_attributes(enum op op, struct attributes *out)
{
	*out = (struct attributes){.kernel = {0, 0}};
	for (const struct attribute_row *row = operator_row(op)->attributes; row->name; row++)
		set_default(row, out);
}
