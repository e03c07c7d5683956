/* What is known of a graph while it is turned into a program, and afterwards of its parameters. */
#ifndef PRONY_ADAPTERS_NATIVE_LOWER_LOWERING_H
#define PRONY_ADAPTERS_NATIVE_LOWER_LOWERING_H

#include "adapters/native/program.h"
#include "bundle/recipe.h"
#include "graph/graph.h"

/* A trained parameter or a state: its place in the program and the layout that everybody else
 * knows. */
struct parameter {
	int value;		  /* in the graph */
	int operand, gradient;	  /* gradient: OPERAND_NONE for a state */
	dnnl_memory_desc_t plain; /* owned */
	int gates;  /* of a recurrent layer: rows come in as many blocks, in another order; or 0 */
	int folded; /* node of the batch normalisation that is folded into it, or -1 */
	int copies[2];	       /* operands with the same in other layouts, or OPERAND_NONE */
	bool keeps_original;   /* what is in memory cannot be read back as what was given */
	const float *original; /* then: what was given, in the program's arena */
	/* Makes what a loop of ours reads in its place, whenever it was loaded; or NULL. */
	void (*prepare)(struct program *program, const struct parameter *parameter);
	const void *prepare_detail;
};

struct value_state {
	int operand; /* that holds it; OPERAND_NONE before */
	int class;   /* values that share memory by meaning (Flatten): index of the first of them */
	int last_use; /* of the class: the last node that may read it */
	int uses;     /* needed nodes that read this value */
	int reader;   /* the last of them, or -1 */
};

struct node_state {
	bool needed;
	bool absorbed; /* computed by the command of the node before it */
	bool wants_dx; /* its input's gradient will be asked for */
	dnnl_primitive_desc_t forward, backward_data, backward_weights; /* owned */
	int src, dst;			   /* operands as the forward primitive has them */
	int side;			   /* workspace or mask */
	const struct recurrent *recurrent; /* recurrent.c */
	const void *detail;		   /* what the gradient's kernel needs, too */
	struct winograd_layer *winograd;   /* winograd.c; NULL where it does not compute the node */
	bool winograd_gradient;		   /* it computes the gradient of the input, too */
	int relu_gradient; /* node that is computed within the gradient of this one, or -1 */
};

/* A batch normalisation that is part of a convolution's weights and of its bias, an operand of its
 * own. */
struct fold {
	int node, batch_norm, bias;
};

struct lowering {
	const struct onednn *dnn;
	struct program *program;
	const struct graph *graph;
	const struct recipe *recipe;
	bool training;
	dnnl_data_type_t data; /* of activations and their gradients; weights are always fp32 */
	struct value_state *values;
	struct node_state *nodes;
	struct parameter *parameters, *states;
	int parameter_count, state_count;
	struct fold *folds;
	int fold_count;
	int logits; /* operand, row-major */
	int64_t macs;
	char types[256]; /* notes on data types */
	char notes[512];
	size_t notes_length;
};

#endif
