/* Data about a graph while it is turned into a program, and about its parameters afterwards. */
#ifndef PRONY_ADAPTERS_NATIVE_LOWER_LOWERING_H
#define PRONY_ADAPTERS_NATIVE_LOWER_LOWERING_H

#include "adapters/native/program.h"
#include "bundle/recipe.h"
#include "graph/attention.h"
#include "graph/graph.h"

/* A trained parameter or a state: its operands, and its layout outside the program. */
struct parameter {
	int value;	       /* in the graph */
	int operand, gradient; /* gradient: OPERAND_NONE for a state */
	struct layout outside; /* layout of the weights that are loaded and read; no blob */
	/* For a recurrent layer: blocks of rows, and the ONNX block (i, o, f, c) at each place of
	 * the backend's order; NULL: the same order. */
	int gates;
	const int *gate_order;
	int folded;	       /* node of the batch normalisation folded into it, or -1 */
	int copies[2];	       /* operands with the same values in other layouts, or OPERAND_NONE */
	bool keeps_original;   /* the weights cannot be read back from their operand exactly */
	const float *original; /* then: the weights as loaded, in the program's arena */
	/* Makes the form that a command reads, after each load; or NULL. */
	void (*prepare)(struct program *program, const struct parameter *parameter);
	const void *prepare_detail;
};

struct value_state {
	int operand;  /* operand that holds it; OPERAND_NONE before */
	int class;    /* values that share memory by definition (Flatten): index of the first one */
	int last_use; /* of the class: the last node that may read it */
	int uses;     /* number of needed nodes that read this value */
	int reader;   /* the last of these nodes, or -1 */
};

/* An attention that the backend computes with one command, and its gradients with another. */
struct fused_attention {
	struct attention found;
	int forward,
		gradient; /* nodes at whose place the commands are; gradient: -1 if there is none */
	int dy, dq, dk, dv; /* values */
	void *detail;	    /* the backend's, in the program's arena */
};

struct node_state {
	bool needed;
	bool absorbed;	/* computed by the command of another node */
	bool passes_on; /* its output is its input `passed`, and another node does its work */
	int passed;
	struct fused_attention *attention; /* whose command is at this node's place, or NULL */
	bool wants_dx;			   /* its input's gradient is needed */
	int src, dst;			   /* operands that the forward command reads and writes */
	int side;			   /* operand for its gradient: a workspace, a mask */
	int relu_gradient;	/* node that is computed within this one's gradient, or -1 */
	struct node_work *work; /* the backend's data */
};

/* A batch normalisation that is part of a convolution's weights, and of the operand `bias`. */
struct fold {
	int node, batch_norm, bias;
	int bias_copy; /* operand with the same numbers in another type, or OPERAND_NONE */
};

struct lowering {
	struct program *program;
	const struct graph *graph;
	const struct recipe *recipe;
	const struct tensor_set *weights; /* that are loaded first, borrowed */
	bool training;
	bool explicit_attention; /* attention is its separate operators */
	enum dtype data; /* type of activations and their gradients; weights are always fp32 */
	struct value_state *values;
	struct node_state *nodes;
	struct parameter *parameters, *states;
	int parameter_count, state_count;
	struct fold *folds;
	int fold_count;
	struct fused_attention *attentions;
	int attention_count;
	int logits; /* operand, row-major */
	int loss;   /* operand of one double; OPERAND_NONE in evaluation */
	int64_t macs;
	char types[256]; /* notes on data types */
	char notes[512];
	size_t notes_length;
};

#endif
