#include "networks/operators.h"

#include <assert.h>
#include <string.h>

#include "networks/rows.h"

/* Each name is written once, in operators.h. */
#define X(id, text) static const char name_##id[] = text;
PRONY_OPERATORS(X)
#undef X

static const struct attribute_row no_attributes[] = {{.name = NULL}};

/* A row reads better in few lines. */
/* clang-format off */
static const struct operator_row rows[OP_COUNT] = {
	[OP_CONV] = {
		.name = name_CONV,
		.min_inputs = 2, .max_inputs = 3, .max_outputs = 1,
		.attributes = conv_attributes,
		.infer = conv_infer, .macs = conv_macs, .backward = conv_backward,
	},
	[OP_MAX_POOL] = {
		.name = name_MAX_POOL,
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = max_pool_attributes,
		.infer = max_pool_infer, .backward = max_pool_backward,
	},
	[OP_GEMM] = {
		.name = name_GEMM,
		.min_inputs = 2, .max_inputs = 3, .max_outputs = 1,
		.attributes = gemm_attributes,
		.infer = gemm_infer, .macs = gemm_macs, .backward = gemm_backward,
	},
	[OP_RELU] = {
		.name = name_RELU,
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = relu_infer, .backward = relu_backward,
	},
	[OP_FLATTEN] = {
		.name = name_FLATTEN,
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = flatten_attributes,
		.infer = flatten_infer, .backward = flatten_backward,
	},
	[OP_DROPOUT] = {
		.name = name_DROPOUT,
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 2,
		.attributes = dropout_attributes,
		.infer = dropout_infer, .backward = dropout_backward,
	},
	[OP_ADD] = {
		.name = name_ADD,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes,
		.infer = add_infer, .backward = add_backward,
	},
	[OP_SOFTMAX_CROSS_ENTROPY] = {
		.name = name_SOFTMAX_CROSS_ENTROPY,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes, .is_loss = true,
		.infer = cross_entropy_infer, .backward = cross_entropy_backward,
	},
	[OP_CONV_GRAD_INPUT] = {
		.name = name_CONV_GRAD_INPUT,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = conv_attributes, .is_gradient = true,
		.infer = infer_grad_input, .macs = conv_grad_macs,
	},
	[OP_CONV_GRAD_WEIGHT] = {
		.name = name_CONV_GRAD_WEIGHT,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 2,
		.attributes = conv_attributes, .is_gradient = true,
		.infer = infer_grad_weight, .macs = conv_grad_macs,
	},
	[OP_MAX_POOL_GRAD] = {
		.name = name_MAX_POOL_GRAD,
		.min_inputs = 3, .max_inputs = 3, .max_outputs = 1,
		.attributes = max_pool_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_GEMM_GRAD_INPUT] = {
		.name = name_GEMM_GRAD_INPUT,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = gemm_attributes, .is_gradient = true,
		.infer = infer_grad_input, .macs = gemm_grad_macs,
	},
	[OP_GEMM_GRAD_WEIGHT] = {
		.name = name_GEMM_GRAD_WEIGHT,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 2,
		.attributes = gemm_attributes, .is_gradient = true,
		.infer = infer_grad_weight, .macs = gemm_grad_macs,
	},
	[OP_RELU_GRAD] = {
		.name = name_RELU_GRAD,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_FLATTEN_GRAD] = {
		.name = name_FLATTEN_GRAD,
		.min_inputs = 1, .max_inputs = 1, .max_outputs = 1,
		.attributes = flatten_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_DROPOUT_GRAD] = {
		.name = name_DROPOUT_GRAD,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = dropout_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = {
		.name = name_SOFTMAX_CROSS_ENTROPY_GRAD,
		.min_inputs = 2, .max_inputs = 2, .max_outputs = 1,
		.attributes = no_attributes, .is_gradient = true,
		.infer = infer_grad_input,
	},
};
/* clang-format on */

const struct operator_row *operator_row(enum op op)
{
	assert((unsigned)op < OP_COUNT);
	return &rows[op];
}

enum op operator_from_name(const char *name)
{
	for (int i = 0; i < OP_COUNT; i++) {
		if (strcmp(name, rows[i].name) == 0)
			return (enum op)i;
	}
	return OP_COUNT;
}

static void set_default(const struct attribute_row *row, struct attributes *out)
{
	void *member = (char *)out + row->offset;
	int64_t whole = (int64_t)row->otherwise;

	switch (row->kind) {
	case ATTRIBUTE_INT:
		*(int64_t *)member = whole;
		break;
	case ATTRIBUTE_INTS2:
	case ATTRIBUTE_INTS4:
		for (int i = 0; i < (row->kind == ATTRIBUTE_INTS2 ? 2 : 4); i++)
			((int64_t *)member)[i] = whole;
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
