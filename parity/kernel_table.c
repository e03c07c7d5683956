/* The kernels that do not stand in the rows of operators yet. */
#include "parity/kernels_internal.h"

void (*kernel_of(enum op op))(const struct kernel_call *call)
{
	if ((unsigned)op >= OP_COUNT)
		return NULL;
	switch (op) {
	case OP_SOFTMAX_CROSS_ENTROPY:
		return kernel_cross_entropy;
	case OP_SOFTMAX_CROSS_ENTROPY_GRAD:
		return kernel_cross_entropy_grad;
	case OP_HALF_SQUARES:
		return kernel_half_squares;
	default:
		return operator_row(op)->compute;
	}
}
