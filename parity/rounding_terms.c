#include "parity/kernels_internal.h"

int64_t rounding_terms(const struct graph *graph, const struct node *node, int output)
{
	const struct operator_row *row = operator_row(node->op);
	const struct shape *x = &graph->values[node->inputs[0]].shape;
	int64_t elements = shape_elements(&graph->values[node->outputs[output]].shape);
	const struct elementwise *function;

	/* A gradient is a function of the node that it belongs to. */
	function =
		operator_row(node->op == OP_ELEMENTWISE_GRAD ? graph->nodes[node->differentiates].op
							     : node->op)
			->elementwise;
	if (function)
		return !function->exact;
	switch (node->op) {
	case OP_BATCH_NORM:
	case OP_BATCH_NORM_GRAD:
	case OP_MAX_POOL:
	case OP_RELU_GRAD:
	case OP_FLATTEN:
	case OP_RESHAPE:
	case OP_TRANSPOSE:
	case OP_CONCAT:
	case OP_SLICE:
	case OP_PAD:
	case OP_DROPOUT: /* is off */
	case OP_DROPOUT_GRAD:
	case OP_FLATTEN_GRAD:
	case OP_RESHAPE_GRAD:
	case OP_SLICE_GRAD:
	case OP_PAD_GRAD:
	case OP_HALF_SQUARES_GRAD:
		return 0;
	case OP_AVERAGE_POOL:
		return node->attributes.kernel[0] * node->attributes.kernel[1];
	case OP_GLOBAL_AVERAGE_POOL:
	case OP_REDUCE_MEAN:
	case OP_BROADCAST_GRAD:
		return shape_elements(x) / elements;
	case OP_CONV_GRAD_WEIGHT:
	case OP_GEMM_GRAD_WEIGHT:
		if (output == 1)
			return shape_elements(&graph->values[node->inputs[1]].shape) / elements;
		break;
	default:
		break;
	}
	return row->macs ? (int64_t)((double)row->macs(graph, node) / (double)elements) : 1;
}
