/* A recurrent layer, and the library's primitives for it. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_RECURRENT_H
#define PRONY_ADAPTERS_NATIVE_CPU_RECURRENT_H

#include "adapters/native/cpu/cpu.h"

/* A layer; its gradient uses that of the node that it differentiates. operands: recurrent.c. */
struct recurrent {
	enum op op;
	const struct attributes *attributes;
	int parts;	/* parts of the batch */
	int64_t rows;	/* of a part */
	int64_t biases; /* blocks of the bias: those of the gates, and one more of some GRUs */
	int64_t steps, features, hidden, gates;
	int *operands; /* [part][FORWARD_OPERANDS], in the program's arena */
};

enum tensor_index {
	LAYER,	/* x, or the states of all steps */
	INNER,	/* the last state */
	CELL,	/* the last cell state of an LSTM */
	WEIGHT, /* of x */
	REPEAT, /* of h */
	BIAS,
	HIDDEN_LAYER, /* states of all steps */
	TENSORS
};

/*
 * A tensor of a part in row-major order, with products in `type`; cell states and biases are fp32.
 */
struct layout recurrent_layout(const struct recurrent *r, enum tensor_index tensor,
			       enum dtype type);

/* Describes the primitives of node n for a part of the batch, forward and, in training,
 * backward_data. They use the type of activations, or fp32 if the library lacks that: *type. The
 * primitives choose the layouts of the weights; gradients are always fp32. */
enum prony_status recurrent_describe(struct lowering *l, int n, const struct recurrent *r,
				     enum dtype *type, struct error *err);

#endif
