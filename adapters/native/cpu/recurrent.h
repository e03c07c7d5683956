/* Recurrent layers: what one is, and the library's primitives for it. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_RECURRENT_H
#define PRONY_ADAPTERS_NATIVE_CPU_RECURRENT_H

#include "adapters/native/lower/lower_internal.h"

/* A layer; its gradient asks the node that it differentiates. operands: recurrent.c. */
struct recurrent {
	bool lstm;
	int parts;    /* of the batch */
	int64_t rows; /* of a part */
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

/* Owned: what the primitives of a part read and write. The weights' layouts are theirs to choose,
 * all others are row-major. Gradients are always fp32. */
struct recurrent_layouts {
	dnnl_memory_desc_t data[TENSORS], gradient[TENSORS];
};

void recurrent_layouts_release(const struct lowering *l, struct recurrent_layouts *s);

/*
 * Describes the primitives of node n for a part of the batch, nodes[n].forward and, in training,
 * .backward_data, in the type of activations or in fp32 where the library lacks that. The caller
 * releases *out in any case.
 */
enum prony_status recurrent_describe(struct lowering *l, int n, const struct recurrent *r,
				     struct recurrent_layouts *out, struct error *err);

#endif
