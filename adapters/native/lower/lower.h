/* Turns a graph into a program: picks layouts and implementations, fuses, orders the commands. */
#ifndef PRONY_ADAPTERS_NATIVE_LOWER_LOWER_H
#define PRONY_ADAPTERS_NATIVE_LOWER_LOWER_H

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
	bool deferred; /* computed by the commands of the nodes that read it: see lower_sum.c */
	bool wants_dx; /* its input's gradient will be asked for */
	dnnl_primitive_desc_t forward, backward_data, backward_weights; /* owned */
	int src, dst; /* operands as the forward primitive has them */
	int side;     /* workspace or mask */
	int parts[5]; /* of a recurrent layer: all states, the last, the last cell, the initial ones
		       */
	const void *detail; /* what the gradient's kernel needs, too */
	int relu_gradient;  /* node that is computed within the gradient of this one, or -1 */
};

/* What is computed within another node's primitive, in that order: see lower_fuse.c. */
#define CHAIN_MAX 8
struct chain {
	int nodes[CHAIN_MAX], count;
	int batch_norm; /* of them, or -1 */
	int sum; /* operand that the result is added to, and where it goes; or OPERAND_NONE */
	bool allow_fold, allow_sum;
};

/* A batch normalisation that is part of a convolution's weights and of its bias, an operand of its
 * own. */
struct fold {
	int node, batch_norm, bias;
};

/* A function in the library's words. */
struct lower_function_words {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
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

/* Names in `why` every operator, attribute and wish that cannot be lowered; else PRONY_OK. */
enum prony_status lower_supports(const struct graph *graph, const struct recipe *recipe,
				 struct error *why);

/*
 * Fills l->program with the recipe's step. `graph` has its backward pass where the stage trains.
 * lower_release in any case; the program stays with its owner.
 */
enum prony_status lower_graph(struct lowering *l, const struct onednn *dnn, struct program *program,
			      const struct graph *graph, const struct recipe *recipe,
			      struct error *err);
void lower_release(struct lowering *l);

/*
 * Reads back from the primitives in what type each product (convolution, matrix product, recurrent
 * layer) multiplies, forward and backward, for the notes. PRONY_UNSUPPORTED where bf16 was asked
 * for and none does.
 */
enum prony_status lower_check_types(struct lowering *l, struct error *err);
/* All notes, those on types first; whole entries only. */
void lower_notes(const struct lowering *l, char *out, size_t out_bytes);

/* What follows is shared by the lower_*.c files. */

/* Row-major descriptor of a shape; the caller destroys it. */
enum prony_status lower_plain(const struct lowering *l, dnnl_data_type_t type, int rank,
			      const int64_t *dims, dnnl_memory_desc_t *out, struct error *err);
enum prony_status lower_any(const struct lowering *l, dnnl_data_type_t type, int rank,
			    const int64_t *dims, dnnl_memory_desc_t *out, struct error *err);
/* The data type of an operand. */
dnnl_data_type_t lower_type(const struct lowering *l, int operand);
int lower_rank(const struct lowering *l, const_dnnl_memory_desc_t desc);
const int64_t *lower_dims(const struct lowering *l, const_dnnl_memory_desc_t desc);

/*
 * The operand with layout `desc` that has the contents of `operand`: itself, or the result of
 * reorders that this appends. Number of elements must agree; dimensions need not.
 */
enum prony_status lower_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
			   const char *name, int *out, struct error *err);

/* A copy of a view in the layout `desc` of the same dimensions. */
enum prony_status lower_part(struct lowering *l, int view, const_dnnl_memory_desc_t desc,
			     const char *name, int *out, struct error *err);

/* The operand of a value with the dimensions of the value's shape (a Flatten may have left it as it
 * was), in an ordinary layout. */
enum prony_status lower_value(struct lowering *l, int value, const char *name, int *out,
			      struct error *err);

/* The same in the type of activations. */
enum prony_status lower_activation(struct lowering *l, int value, const char *name, int *out,
				   struct error *err);

/* A layout in another type: the same, or row-major where that cannot be said. */
enum prony_status lower_retype(const struct lowering *l, const_dnnl_memory_desc_t desc,
			       dnnl_data_type_t type, dnnl_memory_desc_t *out, struct error *err);
/* What `operand` has, in that type: itself, or converted. */
enum prony_status lower_typed(struct lowering *l, int operand, dnnl_data_type_t type,
			      const char *name, int *out, struct error *err);

/* What `operand` has, without blocks: itself, or row-major. */
enum prony_status lower_unblocked(struct lowering *l, int operand, const char *name, int *out,
				  struct error *err);

/* A layout like that of `desc` for other dimensions: blocked in the same way, channels last, or
 * row-major. The caller destroys it. */
enum prony_status lower_like(const struct lowering *l, const_dnnl_memory_desc_t desc, int rank,
			     const int64_t *dims, dnnl_memory_desc_t *out, struct error *err);

/* Elements that a value's operand holds in memory, padding included. */
size_t lower_elements(const struct lowering *l, int operand);

/* Where a result of node n goes that is computed from `from` element by element, in its layout:
 * `from` itself where nobody reads it later. `value` is what the node read as `from`. */
enum prony_status lower_result(struct lowering *l, int n, int value, int from, int *out,
			       struct error *err);

/* Appends a command of ours; operands[0] says how many elements it has. */
struct command *lower_command(struct lowering *l, const char *name, const char *what,
			      void (*kernel)(struct program *, const struct command *),
			      const int *operands, int count);
/* The operand's memory, for such a command, and the threads for its elements. */
void *lower_data(const struct program *program, const struct command *command, int i);
int lower_threads(const struct program *program, size_t elements);

/* Appends a copy between unblocked operands, as `walk` (copied) says. */
struct broadcast_walk;
void lower_copy(struct lowering *l, const char *name, int to, int from,
		const struct broadcast_walk *walk);

/* Decides which sums of gradients are computed by their readers; when forward is lowered. */
void lower_defer_sums(struct lowering *l);
bool lower_is_deferred(const struct lowering *l, int value);

/* Whether node n may overwrite the operand of `value`: nobody reads it later. */
bool lower_may_overwrite(const struct lowering *l, int value, int n);

/* Attributes of every primitive: strict fp32, our scratchpad; with a ReLU after it if asked. The
 * caller destroys them. */
enum prony_status lower_attributes(const struct lowering *l, bool relu, dnnl_primitive_attr_t *out,
				   struct error *err);

/* How good an implementation is: 0 reference code, 1 general (im2col and gemm), 2 specialised. */
int lower_grade(const struct lowering *l, const_dnnl_primitive_desc_t pd, int gemm_grade);

/* Index of the Relu node that can be computed within node n, or -1. */
int lower_fusable_relu(const struct lowering *l, int n);

/* The nodes that node n can compute on the way. */
struct chain lower_chain(const struct lowering *l, int n, bool allow_fold, bool allow_sum);
/* Attributes of a primitive that does; the caller destroys them. */
enum prony_status lower_chain_attributes(const struct lowering *l, const struct chain *chain,
					 dnnl_primitive_attr_t *out, struct error *err);
/* `operand` holds what they compute. */
void lower_chain_absorb(struct lowering *l, const struct chain *chain, int operand);
enum prony_status lower_fold(struct lowering *l, int n, int batch_norm, int *bias,
			     struct error *err);
/* False for operators that are no functions of one element. */
bool lower_words(const struct node *node, struct lower_function_words *out);

/* Declares parameter `value` with layout `desc` in memory and `plain` (taken) outside. */
enum prony_status lower_parameter(struct lowering *l, int value, const_dnnl_memory_desc_t desc,
				  dnnl_memory_desc_t plain, struct error *err);
struct parameter *lower_find_parameter(const struct lowering *l, int value);
/*
 * The operand with a parameter in the layout and type `desc`. Weights do not change before their
 * last reader in a step: who asks for the same copy gets the one that exists. Nobody may write into
 * it. It lasts from step to step where the update can write it, too, or where there is none; else
 * the library makes it in each step.
 */
enum prony_status lower_weights(struct lowering *l, int value, const_dnnl_memory_desc_t desc,
				const char *name, int *out, struct error *err);
/* Brings the lasting copies of a parameter up to date with what was written into it; between steps
 * only. */
enum prony_status lower_refresh_copies(const struct lowering *l, const struct parameter *parameter,
				       struct error *err);
/* Appends the update of all parameters, and of their copies. */
void lower_update(struct lowering *l);
/* A parameter or a state that is data: one row-major operand. */
enum prony_status lower_data_operand(struct lowering *l, int value, int *out, struct error *err);

/* Notes what computes a node: its implementations, forward and backward. */
void lower_note(struct lowering *l, int n, const struct chain *chain);

/* Whether there is a function for the operator. */
bool lower_knows(enum op op);

/* One function per operator or family; n is the node. */
enum prony_status lower_conv(struct lowering *l, int n, struct error *err);
enum prony_status lower_gemm(struct lowering *l, int n, struct error *err);
enum prony_status lower_pool(struct lowering *l, int n, struct error *err);
enum prony_status lower_pool_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_batch_norm(struct lowering *l, int n, struct error *err);
enum prony_status lower_batch_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_lrn(struct lowering *l, int n, struct error *err);
enum prony_status lower_lrn_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_eltwise(struct lowering *l, int n, struct error *err);
enum prony_status lower_eltwise_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_softmax(struct lowering *l, int n, struct error *err);
enum prony_status lower_softmax_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_binary(struct lowering *l, int n, struct error *err);
/* An Add of two of one shape, or the gradient of a ReLU or a Slice of what is deferred. */
enum prony_status lower_sum(struct lowering *l, int n, struct error *err);
enum prony_status lower_mean(struct lowering *l, int n, struct error *err);
enum prony_status lower_mean_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_broadcast_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_reshape(struct lowering *l, int n, struct error *err);
enum prony_status lower_transpose(struct lowering *l, int n, struct error *err);
enum prony_status lower_concat(struct lowering *l, int n, struct error *err);
/* Slice and PadGrad take a part, Pad and SliceGrad put one. */
enum prony_status lower_take(struct lowering *l, int n, struct error *err);
enum prony_status lower_put(struct lowering *l, int n, struct error *err);
enum prony_status lower_recurrent(struct lowering *l, int n, struct error *err);
enum prony_status lower_recurrent_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_relu(struct lowering *l, int n, struct error *err);
enum prony_status lower_relu_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_dropout(struct lowering *l, int n, struct error *err);
enum prony_status lower_dropout_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_rename(struct lowering *l, int n, struct error *err);
enum prony_status lower_half_squares(struct lowering *l, int n, struct error *err);
enum prony_status lower_cross_entropy(struct lowering *l, int n, struct error *err);

/* Convolutions in which each channel has a window of its own; and the gradients of all. */
bool lower_is_depthwise(const struct lowering *l, int n);
enum prony_status lower_depthwise(struct lowering *l, int n, struct error *err);
enum prony_status lower_conv_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status lower_conv_grad_weight(struct lowering *l, int n, struct error *err);

/* Matrix products of few rows with many weights, whose source is in nodes[n].src. */
bool lower_is_few_rows(const struct lowering *l, int n);
enum prony_status lower_few_rows(struct lowering *l, int n, struct error *err);

/* What conv and linear layers share: the weight and data gradients of node n, whose forward node
 * kept its primitive descriptors. */
enum prony_status lower_weighted_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status lower_weighted_grad_weight(struct lowering *l, int n, struct error *err);
/* Declares the parameters of node n and appends its forward primitive, from nodes[n]. */
enum prony_status lower_weighted_forward(struct lowering *l, int n, dnnl_memory_desc_t plain,
					 const struct chain *chain, struct error *err);
/* Declares the bias of node n, after its weights: its own, or that of the batch normalisation in
 * the chain; OPERAND_NONE where it has none. */
enum prony_status lower_weighted_bias(struct lowering *l, int n, const struct chain *chain,
				      int *out, struct error *err);

#endif
