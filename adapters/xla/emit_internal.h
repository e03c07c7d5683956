/* Private to the lowering: what the functions of operators work with. */
#ifndef PRONY_ADAPTERS_XLA_EMIT_INTERNAL_H
#define PRONY_ADAPTERS_XLA_EMIT_INTERNAL_H

#include "adapters/xla/emit.h"

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
	enum hlo_type compute; /* of activations, and of what is multiplied */
	struct {
		struct hlo hlo;
		enum memory_order layout;
	} * values;			/* by value; set once it is computed */
	struct recurrence *recurrences; /* by node */
	struct hlo random;		/* state of the random numbers */
};

typedef void emit_function(struct emitter *l, const struct node *node);

/* The layout in which values of that rank are computed. */
enum memory_order emit_layout(int rank);
/* Where an axis of the graph lies in memory. */
int emit_axis(int rank, int64_t axis);
const struct shape *emit_shape(const struct emitter *l, int value);

/* Input i of a node, or any value, in a layout and a type; without: in those of computation. */
struct hlo emit_value_as(struct emitter *l, int value, enum memory_order layout,
			 enum hlo_type type);
struct hlo emit_input_as(struct emitter *l, const struct node *node, int i,
			 enum memory_order layout, enum hlo_type type);
struct hlo emit_input(struct emitter *l, const struct node *node, int i);
struct hlo emit_input_f32(struct emitter *l, const struct node *node, int i);

/* Sets output i, which may be left out: what is computed in the layout of computation, or another.
 */
void emit_output(struct emitter *l, const struct node *node, int i, struct hlo y);
void emit_output_as(struct emitter *l, const struct node *node, int i, struct hlo y,
		    enum memory_order layout);

/*
 * Gives x, whose dimension i is axis from[i] of some shape, the dimensions `to`: they are
 * exchanged; those of one element come and go.
 */
struct hlo emit_arrange(struct emitter *l, struct hlo x, const int *from, const int *to, int count);
/* Repeats x, whose dimension i is axis from[i] of a value of that shape, in the layout of
 * computation. */
struct hlo emit_spread(struct emitter *l, struct hlo x, const int *from, const struct shape *shape);
/* One number for each channel (axis 1) of a value of that shape. */
struct hlo emit_channels(struct emitter *l, struct hlo x, const struct shape *shape);
/* Sums over all axes but that of the channels. */
struct hlo emit_sum_channels(struct emitter *l, struct hlo x);

/* Whether it is a function of each element, for emit_elementwise and emit_elementwise_grad. */
bool emit_knows_element(enum op op);

/* The rows of operators, by family. */
emit_function emit_conv, emit_conv_grad_input, emit_conv_grad_weight;
emit_function emit_gemm, emit_gemm_grad_input, emit_gemm_grad_weight;
emit_function emit_max_pool, emit_max_pool_grad, emit_average_pool, emit_average_pool_grad;
emit_function emit_global_average, emit_global_average_grad;
emit_function emit_batch_norm, emit_batch_norm_grad, emit_lrn, emit_lrn_grad;
emit_function emit_softmax, emit_softmax_grad, emit_dropout, emit_dropout_grad;
emit_function emit_cross_entropy, emit_cross_entropy_grad;
emit_function emit_half_squares, emit_half_squares_grad;
emit_function emit_elementwise, emit_relu_grad, emit_elementwise_grad, emit_binary;
emit_function emit_reshape, emit_reshape_grad, emit_transpose, emit_concat;
emit_function emit_slice, emit_slice_grad, emit_pad, emit_pad_grad;
emit_function emit_reduce_mean, emit_reduce_mean_grad, emit_broadcast_grad;
emit_function emit_lstm, emit_rnn, emit_lstm_grad, emit_rnn_grad;

#endif
