/* Private to the lowering: what the functions of operators work with. */
#ifndef PRONY_ADAPTERS_XLA_EMIT_INTERNAL_H
#define PRONY_ADAPTERS_XLA_EMIT_INTERNAL_H

#include "adapters/xla/emit.h"
#include "graph/reduction.h"

/* What the forward pass of a recurrent layer leaves for the backward pass: entries of all steps. */
struct recurrence {
	struct hlo gates;	  /* T x N x 4H, activated; LSTM only */
	struct hlo states, cells; /* T+1 x N x H, the first zero; cells: LSTM only */
};

struct emitter {
	struct hlo_text h;
	const struct graph *graph;
	const struct recipe *recipe;
	struct arena *arena;
	bool training;
	enum hlo_type compute;		/* of activations, and of what is multiplied */
	struct layouts layouts;		/* channels last */
	struct hlo *values;		/* as they lie; set once they are computed */
	struct recurrence *recurrences; /* by node */
	struct hlo random;		/* state of the random numbers */
};

typedef void emit_function(struct emitter *l, const struct node *node);

/* The shape in the graph, and as the value lies. */
const struct shape *emit_shape(const struct emitter *l, int value);
struct shape emit_lying(const struct emitter *l, int value);
/* Where an axis of the graph lies; the axis that lies at each place; where channels (axis 1) lie in
 * any value of that rank. */
int emit_axis(const struct emitter *l, int value, int64_t axis);
void emit_order(const struct emitter *l, int value, int *out);
int emit_channel(int rank);
/* As which axis of the whole each dimension of the part lies in memory. */
void emit_part_axes(const struct emitter *l, const struct reduction *r, int part, int *out);

/* A value in a type; input i of a node in that of computation, or in F32. */
struct hlo emit_value_as(struct emitter *l, int value, enum hlo_type type);
struct hlo emit_input(struct emitter *l, const struct node *node, int i);
struct hlo emit_input_f32(struct emitter *l, const struct node *node, int i);

/* Sets output i, which may be left out, as it lies. */
void emit_output(struct emitter *l, const struct node *node, int i, struct hlo y);

/*
 * Gives x, whose dimension i is axis from[i] of some shape, the dimensions `to`: they are
 * exchanged; those of one element come and go.
 */
struct hlo emit_arrange(struct emitter *l, struct hlo x, const int *from, const int *to, int count);
/* Repeats x, whose dimension i is axis from[i] of a value, to that value as it lies. */
struct hlo emit_spread(struct emitter *l, struct hlo x, const int *from, int value);
/* One number for each channel of a value that lies in that shape. */
struct hlo emit_channels(struct emitter *l, struct hlo x, const struct shape *lies);
/* Sums over all axes but that of the channels. */
struct hlo emit_sum_channels(struct emitter *l, struct hlo x);

/* Whether it is a function of each element, for emit_elementwise and emit_elementwise_grad. */
bool emit_knows_element(enum op op);

/* The rows of operators, by family. */
emit_function emit_conv, emit_conv_grad_input, emit_conv_grad_weight;
emit_function emit_gemm, emit_gemm_grad_input, emit_gemm_grad_weight;
emit_function emit_max_pool, emit_max_pool_grad, emit_average_pool, emit_average_pool_grad;
emit_function emit_batch_norm, emit_batch_norm_grad, emit_lrn, emit_lrn_grad;
emit_function emit_layer_norm, emit_layer_norm_grad;
emit_function emit_softmax, emit_softmax_grad, emit_dropout, emit_dropout_grad;
emit_function emit_cross_entropy, emit_cross_entropy_grad;
emit_function emit_half_squares, emit_half_squares_grad;
emit_function emit_gather, emit_gather_grad;
emit_function emit_elementwise, emit_elementwise_grad, emit_binary;
emit_function emit_reshape, emit_transpose, emit_concat;
emit_function emit_slice, emit_slice_grad, emit_pad, emit_pad_grad;
emit_function emit_mean, emit_mean_grad, emit_broadcast_grad;
emit_function emit_lstm, emit_rnn, emit_lstm_grad, emit_rnn_grad;

#endif
