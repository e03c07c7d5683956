/* Private to the emitter: state and helper functions for writing operators. */
#ifndef PRONY_ADAPTERS_XLA_EMIT_INTERNAL_H
#define PRONY_ADAPTERS_XLA_EMIT_INTERNAL_H

#include "adapters/xla/emit.h"
#include "graph/reduction.h"

/* What the forward pass of a recurrent layer keeps for the backward pass, for all steps. */
struct recurrence {
	struct hlo gates;	  /* T x N x 4H, activated; not of an RNN */
	struct hlo states, cells; /* T+1 x N x H, entry 0 is zero; cells: LSTM only */
};

struct emitter {
	struct hlo_text h;
	const struct graph *graph;
	const struct recipe *recipe;
	struct arena *arena;
	bool training;
	enum hlo_type compute;		/* of activations and of operands of products */
	struct layouts layouts;		/* with channels last */
	struct hlo *values;		/* in memory order; set once computed */
	struct recurrence *recurrences; /* by node */
	struct hlo random;		/* state of the random number generator */
	struct hlo updates;		/* of AdamW, with this one */
	struct hlo norm; /* of all gradients plus 1e-6, at least clip_norm; set if it clips */
};

typedef void emit_function(struct emitter *l, const struct node *node);

/* The shape in the graph, and the shape in memory. */
const struct shape *emit_shape(const struct emitter *l, int value);
struct shape emit_lying(const struct emitter *l, int value);
/* emit_axis: the place in memory order of an axis of the graph. emit_order: the graph axis at each
 * place. emit_channel: the place of the channels (axis 1) in any value of that rank. */
int emit_axis(const struct emitter *l, int value, int64_t axis);
void emit_order(const struct emitter *l, int value, int *out);
int emit_channel(int rank);
/* out[i]: the axis of the whole that dimension i of the part has in memory. */
void emit_part_axes(const struct emitter *l, const struct reduction *r, int part, int *out);

/* A value in a type; input i of a node in the compute type, or in F32. */
struct hlo emit_value_as(struct emitter *l, int value, enum hlo_type type);
struct hlo emit_input(struct emitter *l, const struct node *node, int i);
struct hlo emit_input_f32(struct emitter *l, const struct node *node, int i);

/* Sets output i, given in memory order; it may be absent. */
void emit_output(struct emitter *l, const struct node *node, int i, struct hlo y);

/* Transposes x, whose dimension i is axis from[i] of some shape, so that its dimensions are `to`.
 * Dimensions of one element are added or removed. */
struct hlo emit_arrange(struct emitter *l, struct hlo x, const int *from, const int *to, int count);
/* Broadcasts x, whose dimension i is axis from[i] of a value, to that value in memory order. */
struct hlo emit_spread(struct emitter *l, struct hlo x, const int *from, int value);
/* Broadcasts one number per channel to a shape in memory order. */
struct hlo emit_channels(struct emitter *l, struct hlo x, const struct shape *lies);
/* Sums over all axes except the channels. */
struct hlo emit_sum_channels(struct emitter *l, struct hlo x);

/* Whether emit_elementwise and emit_elementwise_grad can write the operator. */
bool emit_knows_element(enum op op);

/* The functions that write operators, by family. */
emit_function emit_conv, emit_conv_grad_input, emit_conv_grad_weight;
emit_function emit_conv_transpose, emit_conv_transpose_grad_input, emit_conv_transpose_grad_weight;
emit_function emit_group_norm, emit_group_norm_grad, emit_resize, emit_resize_grad;
emit_function emit_gemm, emit_gemm_grad_input, emit_gemm_grad_weight, emit_matmul;
emit_function emit_max_pool, emit_max_pool_grad, emit_average_pool, emit_average_pool_grad;
emit_function emit_batch_norm, emit_batch_norm_grad, emit_lrn, emit_lrn_grad;
emit_function emit_layer_norm, emit_layer_norm_grad;
emit_function emit_softmax, emit_softmax_grad, emit_dropout, emit_dropout_grad;
emit_function emit_cross_entropy, emit_cross_entropy_grad;
emit_function emit_half_squares, emit_half_squares_grad;
emit_function emit_gather, emit_gather_grad;
emit_function emit_elementwise, emit_elementwise_grad, emit_binary, emit_expand;
emit_function emit_reshape, emit_transpose, emit_concat;
emit_function emit_slice, emit_slice_grad, emit_pad, emit_pad_grad;
emit_function emit_mean, emit_mean_grad, emit_broadcast_grad;
emit_function emit_recurrent, emit_recurrent_grad;

#endif
