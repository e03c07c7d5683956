/* Declarations shared by this folder and the backends, by file. Calls go in one direction: lower.c
 * calls views.c and the backend, both call the tools below, and the tools call only the backend's
 * functions for copies and layouts. */
#ifndef PRONY_ADAPTERS_NATIVE_LOWER_LOWER_INTERNAL_H
#define PRONY_ADAPTERS_NATIVE_LOWER_LOWER_INTERNAL_H

#include "adapters/native/backend.h"

/* operand.c: operands in a wanted layout. */

const struct layout *lower_layout(const struct lowering *l, int operand);
bool lower_same(const struct lowering *l, const struct layout *a, const struct layout *b);
/* A layout like `layout` for another type or other dimensions: with the same blocks, channels last,
 * or row-major. */
struct layout lower_like(const struct lowering *l, const struct layout *layout, enum dtype type,
			 int rank, const int64_t *dims);
/* Returns an operand in that layout with the contents of `operand`: itself, or the result of copies
 * that this function appends. The number of elements must agree; dimensions may differ. */
enum prony_status lower_as(struct lowering *l, int operand, const struct layout *layout,
			   const char *name, int *out, struct error *err);
/* A copy of a view in a layout of the same dimensions. */
enum prony_status lower_part(struct lowering *l, int view, const struct layout *layout,
			     const char *name, int *out, struct error *err);
/* A planned operand in row-major order. */
enum prony_status lower_new(struct lowering *l, enum dtype type, int rank, const int64_t *dims,
			    int *out, struct error *err);
/* The operand of a value with the dimensions of the value's shape, in any layout; after a Flatten
 * the operand may still have the old dimensions. */
enum prony_status lower_value(struct lowering *l, int value, const char *name, int *out,
			      struct error *err);
/* The same in the type of activations. */
enum prony_status lower_activation(struct lowering *l, int value, const char *name, int *out,
				   struct error *err);
/* The contents of `operand` in that type: itself, or converted. */
enum prony_status lower_typed(struct lowering *l, int operand, enum dtype type, const char *name,
			      int *out, struct error *err);
/* The contents of `operand` without blocks: itself, or row-major. */
enum prony_status lower_unblocked(struct lowering *l, int operand, const char *name, int *out,
				  struct error *err);
/* Whether node n may overwrite operand `from`, which it reads as `value`: no later node reads the
 * value, and the gradient of n does not read a copy of it in another layout. */
bool lower_may_overwrite(const struct lowering *l, int n, int value, int from);
/* The destination of a result that node n computes from `from` element by element, in its layout:
 * `from` itself if it may be overwritten. `value` is the value that the node read as `from`. */
enum prony_status lower_result(struct lowering *l, int n, int value, int from, int *out,
			       struct error *err);
/* For the gradient of such a node: its input in the layout of operand `like`, and the destination
 * of its result. */
enum prony_status lower_unary_grad(struct lowering *l, int n, int like, int *dy, int *dx,
				   struct error *err);

/* The operand with the most bytes: of all inputs of a Concat its layout costs the least to keep. */
int lower_largest(const struct lowering *l, const int *operands, int count);
/* A planned operand of that shape: in the layout of `model` if it has that shape, else row-major.
 */
enum prony_status lower_shaped_like(struct lowering *l, const struct shape *shape, int model,
				    int *out, struct error *err);

/* parameter.c: weights and states. */

/* Declares parameter `value` with one layout in memory and another one outside; nothing if another
 * operator that reads it has declared it. */
enum prony_status lower_parameter(struct lowering *l, int value, const struct layout *layout,
				  const struct layout *outside, struct error *err);
/* Moves the parameters of two or more dimensions, which AdamW decays, before the others. Returns
 * their bytes. Call it when all commands but the update are there. */
size_t lower_decayed_first(struct lowering *l);
struct parameter *lower_find_parameter(const struct lowering *l, int value);
/* A parameter or a state that is data: one row-major operand. */
enum prony_status lower_data_operand(struct lowering *l, int value, int *out, struct error *err);
/* The destination of the gradient of a scale or shift, output k: the parameter's own place if this
 * is its whole gradient. */
enum prony_status lower_channel_gradient(struct lowering *l, const struct node *node, int k,
					 int parameter, int *out, struct error *err);

/* The destination of the gradient of weights, output 0 of `node`: the parameter's own place, or,
 * where it is one of several that are summed, a planned operand in that layout. */
enum prony_status lower_weight_gradient(struct lowering *l, const struct node *node, int value,
					const struct layout *layout, int *out, struct error *err);
/* Whether other operators read the weights of node n, too. */
bool lower_weights_are_shared(const struct lowering *l, int n);

/* fuse.c: operators that a node computes in addition to its own. */

/* Index of the Relu node that can be computed within node n, or -1. */
int lower_fusable_relu(const struct lowering *l, int n);
/* The same for batch normalisation n. In training the Relu's gradient, *gradient, is computed
 * within the normalisation's gradient; -1 when there is none. */
int lower_norm_relu(const struct lowering *l, int n, int *gradient);

/* Nodes that are computed within another node's command, in that order. */
#define CHAIN_MAX 8
struct chain {
	int nodes[CHAIN_MAX], count;
	int batch_norm; /* the batch normalisation among the nodes, or -1 */
	int sum; /* operand that the result is added to, also the destination; or OPERAND_NONE */
	bool allow_fold, allow_sum;
};
struct chain lower_chain(const struct lowering *l, int n, bool allow_fold, bool allow_sum);
/* Notes that `operand` holds the result of the chain's nodes, or of the single node. */
void lower_chain_absorb(struct lowering *l, const struct chain *chain, int operand);
void lower_absorb(struct lowering *l, int n, int operand);
/* Declares the bias of convolution or product n, after its weights: its own, or the bias of the
 * folded batch normalisation; OPERAND_NONE if it has none. */
enum prony_status lower_bias(struct lowering *l, int n, const struct chain *chain, int *out,
			     struct error *err);

/* The value that holds the gradient of the logits, which the loss n computes too; or VALUE_NONE. */
int lower_loss_gradient(const struct lowering *l, int n);

/* attention.c: notes the attentions that the backend computes whole, once it is known which nodes
 * are needed. */
void lower_find_attentions(struct lowering *l);

/* weights.c */

/* The operand with a parameter in that layout. Weights do not change before their last reader in a
 * step, so a copy in the same layout is made only once. Commands must not write into it. A step
 * that updates weights makes its copies again; otherwise they last. */
enum prony_status lower_weights(struct lowering *l, int value, const struct layout *layout,
				const char *name, int *out, struct error *err);
/* lower_bias, and its copy in that type: *out. */
enum prony_status lower_bias_as(struct lowering *l, int n, const struct chain *chain,
				enum dtype type, int *out, struct error *err);

/* views.c: operators that move data without computing. Slice and PadGrad read a part, Pad and
 * SliceGrad write one. */
enum prony_status lower_rename(struct lowering *l, int n, struct error *err);
enum prony_status lower_reshape(struct lowering *l, int n, struct error *err);
enum prony_status lower_transpose(struct lowering *l, int n, struct error *err);
enum prony_status lower_take(struct lowering *l, int n, struct error *err);
enum prony_status lower_put(struct lowering *l, int n, struct error *err);

/* lower.c: whether the operator can be lowered. */
bool lower_knows(const struct backend *backend, enum op op);

#endif
