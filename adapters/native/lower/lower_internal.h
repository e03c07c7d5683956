/*
 * What the files of this folder share, by the file that has it, the ones below first. One direction
 * only: lower.c calls the files of operators, they call the tools, tools call nobody who stands
 * further down here.
 */
#ifndef PRONY_ADAPTERS_NATIVE_LOWER_LOWER_INTERNAL_H
#define PRONY_ADAPTERS_NATIVE_LOWER_LOWER_INTERNAL_H

#include "adapters/native/lower/lowering.h"

/* layout.c: descriptors of memory. */

/* Row-major descriptor of a shape; the caller destroys it. */
enum prony_status lower_plain(const struct lowering *l, dnnl_data_type_t type, int rank,
			      const int64_t *dims, dnnl_memory_desc_t *out, struct error *err);
/* One whose layout a primitive is free to choose; the caller destroys it. */
enum prony_status lower_any(const struct lowering *l, dnnl_data_type_t type, int rank,
			    const int64_t *dims, dnnl_memory_desc_t *out, struct error *err);
int lower_rank(const struct lowering *l, const_dnnl_memory_desc_t desc);
const int64_t *lower_dims(const struct lowering *l, const_dnnl_memory_desc_t desc);
bool lower_same_dims(const struct lowering *l, const_dnnl_memory_desc_t a,
		     const_dnnl_memory_desc_t b);
/* A layout in another type: the same, or row-major where that cannot be said. */
enum prony_status lower_retype(const struct lowering *l, const_dnnl_memory_desc_t desc,
			       dnnl_data_type_t type, dnnl_memory_desc_t *out, struct error *err);
/* A layout like that of `desc` for other dimensions: blocked in the same way, channels last, or
 * row-major. The caller destroys it. */
enum prony_status lower_like(const struct lowering *l, const_dnnl_memory_desc_t desc, int rank,
			     const int64_t *dims, dnnl_memory_desc_t *out, struct error *err);
/* The data type of an operand, and the elements that it holds in memory, padding included. */
dnnl_data_type_t lower_type(const struct lowering *l, int operand);
size_t lower_elements(const struct lowering *l, int operand);

/* primitive.c: what all primitives have, and what is told about them. */

/* Attributes of every primitive: strict fp32, our scratchpad; with a ReLU after it if asked. The
 * caller destroys them. */
enum prony_status lower_attributes(const struct lowering *l, bool relu, dnnl_primitive_attr_t *out,
				   struct error *err);
/* How good an implementation is: 0 reference code, 1 general (im2col and gemm), 2 specialised. */
int lower_grade(const struct lowering *l, const_dnnl_primitive_desc_t pd, int gemm_grade);
/* Notes what computes a node and the `count` nodes that are computed with it: the implementations,
 * forward and backward. */
void lower_note(struct lowering *l, int n, const int *fused, int count);

/* parameter.c: what the caller loads. */

/* Declares parameter `value` with layout `desc` in memory and `plain` (taken) outside. */
enum prony_status lower_parameter(struct lowering *l, int value, const_dnnl_memory_desc_t desc,
				  dnnl_memory_desc_t plain, struct error *err);
struct parameter *lower_find_parameter(const struct lowering *l, int value);
/* A parameter or a state that is data: one row-major operand. */
enum prony_status lower_data_operand(struct lowering *l, int value, int *out, struct error *err);

/* operand.c: operands in the layout that somebody wants. */

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
/* What `operand` has, in that type: itself, or converted. */
enum prony_status lower_typed(struct lowering *l, int operand, dnnl_data_type_t type,
			      const char *name, int *out, struct error *err);
/* What `operand` has, without blocks: itself, or row-major. */
enum prony_status lower_unblocked(struct lowering *l, int operand, const char *name, int *out,
				  struct error *err);
/* Whether node n may write over operand `from`, which is what it reads as `value`: nobody reads it
 * later, neither the value nor, for its gradient, a copy of the value in another layout. */
bool lower_may_overwrite(const struct lowering *l, int n, int value, int from);
/* Where a result of node n goes that is computed from `from` element by element, in its layout:
 * `from` itself where it may be overwritten. `value` is what the node read as `from`. */
enum prony_status lower_result(struct lowering *l, int n, int value, int from, int *out,
			       struct error *err);
/* Appends nodes[n].forward, whose one result has the layout of its one source, nodes[n].src. */
enum prony_status lower_unary(struct lowering *l, int n, struct error *err);
/* For the gradient of such a node: what it is given, in the layout of operand `like`, and where its
 * result goes. */
enum prony_status lower_unary_grad(struct lowering *l, int n, int like, int *dy, int *dx,
				   struct error *err);

/* weights.c: parameters in the layouts that primitives want. */

/*
 * The operand with a parameter in the layout and type `desc`. Weights do not change before their
 * last reader in a step: who asks for the same copy gets the one that exists. Nobody may write into
 * it. A step that updates weights makes it anew; else it lasts.
 */
enum prony_status lower_weights(struct lowering *l, int value, const_dnnl_memory_desc_t desc,
				const char *name, int *out, struct error *err);

/* command.c: commands of our own loops. */

/* Appends a command of ours; operands[0] says how many elements it has. */
struct command *lower_command(struct lowering *l, const char *name, const char *what,
			      void (*kernel)(struct program *, const struct command *),
			      const int *operands, int count);
/* The operand's memory, for such a command, and the threads for its elements. Optional operands are
 * the last ones: NULL where the command has fewer. */
void *lower_data(const struct program *program, const struct command *command, int i);
void *lower_optional(const struct program *program, const struct command *command, int i);
int lower_threads(const struct program *program, size_t elements);

/* eltwise.c: functions of one element that the library has. */

/* A function as the library names it. */
struct eltwise_function {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
};

/* Whether the operator is one. */
bool lower_has_function(enum op op);
/* Its name and numbers; false where there is none. */
bool lower_eltwise_function(const struct node *node, struct eltwise_function *out);
enum prony_status lower_eltwise(struct lowering *l, int n, struct error *err);
enum prony_status lower_eltwise_grad(struct lowering *l, int n, struct error *err);

/* softmax.c */
enum prony_status lower_softmax(struct lowering *l, int n, struct error *err);
enum prony_status lower_softmax_grad(struct lowering *l, int n, struct error *err);

/* fuse.c: what a node computes on the way. */

/* Index of the Relu node that can be computed within node n, or -1. */
int lower_fusable_relu(const struct lowering *l, int n);

/* What is computed within another node's primitive, in that order. */
#define CHAIN_MAX 8
struct chain {
	int nodes[CHAIN_MAX], count;
	int batch_norm; /* of them, or -1 */
	int sum; /* operand that the result is added to, and where it goes; or OPERAND_NONE */
	bool allow_fold, allow_sum;
};

/* The nodes that node n can compute on the way. */
struct chain lower_chain(const struct lowering *l, int n, bool allow_fold, bool allow_sum);
/* Attributes of a primitive that does; the caller destroys them. */
enum prony_status lower_chain_attributes(const struct lowering *l, const struct chain *chain,
					 dnnl_primitive_attr_t *out, struct error *err);
/* `operand` holds what they compute, or what the one node does. */
void lower_chain_absorb(struct lowering *l, const struct chain *chain, int operand);
void lower_absorb(struct lowering *l, int n, int operand);
/* Declares what the folded batch normalisation has, and the bias that takes its shift. */
enum prony_status lower_fold(struct lowering *l, int n, int batch_norm, int *bias,
			     struct error *err);

/* weighted.c: what convolutions and matrix products share. The forward node has kept its primitive
 * descriptors. */
enum prony_status lower_weighted_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status lower_weighted_grad_weight(struct lowering *l, int n, struct error *err);
/* Declares the parameters of node n and appends its forward primitive, from nodes[n]. */
enum prony_status lower_weighted_forward(struct lowering *l, int n, dnnl_memory_desc_t plain,
					 const struct chain *chain, struct error *err);
/* Declares the bias of node n, after its weights: its own, or that of the batch normalisation in
 * the chain; OPERAND_NONE where it has none. */
enum prony_status lower_weighted_bias(struct lowering *l, int n, const struct chain *chain,
				      int *out, struct error *err);

/* depthwise.c: convolutions in which each channel has a window of its own. Gradients are for layers
 * whose pass the library has no good code for; dx and dy are operands in the layouts of the forward
 * pass. */
bool lower_is_depthwise(const struct lowering *l, int n);
enum prony_status lower_depthwise(struct lowering *l, int n, struct error *err);
void lower_depthwise_grad_input(struct lowering *l, int n, int dx, int dy);
enum prony_status lower_depthwise_grad_weight(struct lowering *l, int n, struct error *err);

/* few_rows_gemm.c: matrix products of few rows with many weights; the source is nodes[n].src. */
bool lower_is_few_rows(const struct lowering *l, int n);
enum prony_status lower_few_rows(struct lowering *l, int n, struct error *err);

/*
 * winograd.c: convolutions of 3x3 windows by fewer multiplications; the source is nodes[n].src. In
 * training the library's primitives of the node are there, too: *done is false, and nothing was
 * appended, where they want other layouts. Of convolutions whose winograd_gradient is set it
 * computes the gradient of the input, too.
 */
bool lower_is_winograd(const struct lowering *l, int n);
enum prony_status lower_winograd(struct lowering *l, int n, bool *done, struct error *err);
void lower_winograd_grad_input(struct lowering *l, int n, int dx, int dy);

/* The other operators: a function for each or for a family; n is the node. */

/* conv.c, gemm.c, recurrent.c */
enum prony_status lower_conv(struct lowering *l, int n, struct error *err);
enum prony_status lower_conv_grad_input(struct lowering *l, int n, struct error *err);
enum prony_status lower_conv_grad_weight(struct lowering *l, int n, struct error *err);
enum prony_status lower_gemm(struct lowering *l, int n, struct error *err);
enum prony_status lower_recurrent(struct lowering *l, int n, struct error *err);
enum prony_status lower_recurrent_grad(struct lowering *l, int n, struct error *err);
/* pool.c, norm.c, lrn.c */
enum prony_status lower_pool(struct lowering *l, int n, struct error *err);
enum prony_status lower_pool_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_batch_norm(struct lowering *l, int n, struct error *err);
enum prony_status lower_batch_norm_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_lrn(struct lowering *l, int n, struct error *err);
enum prony_status lower_lrn_grad(struct lowering *l, int n, struct error *err);
/* binary.c */
enum prony_status lower_binary(struct lowering *l, int n, struct error *err);
enum prony_status lower_mean(struct lowering *l, int n, struct error *err);
enum prony_status lower_mean_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_broadcast_grad(struct lowering *l, int n, struct error *err);
/* Appends a copy between unblocked operands, as `walk` (copied) says. */
struct broadcast_walk;
void lower_copy(struct lowering *l, const char *name, int to, int from,
		const struct broadcast_walk *walk);
/* views.c: Slice and PadGrad take a part, Pad and SliceGrad put one. */
enum prony_status lower_reshape(struct lowering *l, int n, struct error *err);
enum prony_status lower_transpose(struct lowering *l, int n, struct error *err);
enum prony_status lower_concat(struct lowering *l, int n, struct error *err);
enum prony_status lower_take(struct lowering *l, int n, struct error *err);
enum prony_status lower_put(struct lowering *l, int n, struct error *err);
/* loops.c */
enum prony_status lower_rename(struct lowering *l, int n, struct error *err);
enum prony_status lower_relu(struct lowering *l, int n, struct error *err);
enum prony_status lower_relu_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_dropout(struct lowering *l, int n, struct error *err);
enum prony_status lower_dropout_grad(struct lowering *l, int n, struct error *err);
enum prony_status lower_half_squares(struct lowering *l, int n, struct error *err);
enum prony_status lower_cross_entropy(struct lowering *l, int n, struct error *err);
/* update.c: appends the update of all parameters. */
void lower_update(struct lowering *l);

/* lower.c: whether there is a function for the operator. */
bool lower_knows(enum op op);

#endif
