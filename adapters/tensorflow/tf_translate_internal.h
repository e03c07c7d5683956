/* Private to the translation: the functions that its files share. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_TRANSLATE_INTERNAL_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_TRANSLATE_INTERNAL_H

#include "adapters/tensorflow/tf_translate.h"
#include "graph/reduction.h"

/* Returns input i of a node, in memory order or in graph order. */
struct tf_output tf_take(struct tf_translation *t, const struct node *node, int i);
struct tf_output tf_take_plain(struct tf_translation *t, const struct node *node, int i);

/* Sets output i of a node, given in memory order or in graph order. PRONY_MISMATCH if the shape
 * that TensorFlow infers differs from the graph's. */
void tf_give(struct tf_translation *t, const struct node *node, int i, struct tf_output y);
void tf_give_plain(struct tf_translation *t, const struct node *node, int i, struct tf_output y);

/* Transposes an image with channels last to graph order, or back; `shape` is the shape in the
 * graph. It is a reshape if only axes of one element move. */
struct tf_output tf_turn(struct tf_translation *t, struct tf_output x, const struct shape *shape,
			 bool back);

/* The shape of a value, in the graph or in memory order. */
const struct shape *tf_graph_shape(const struct tf_translation *t, int value);
struct shape tf_lying_shape(const struct tf_translation *t, int value);

/* The forward node of a gradient, and the value that it kept. */
const struct node *tf_forward(const struct tf_translation *t, const struct node *gradient);
struct tf_output *tf_kept(struct tf_translation *t, const struct node *forward);

/* "NHWC" or "NCHW". */
const char *tf_data_format(const struct tf_translation *t);

/* Multiplies two matrices, each transposed first if its flag is set. */
struct tf_output tf_matmul(struct tf_translation *t, struct tf_output a, struct tf_output b,
			   bool turn_a, bool turn_b);
/* Concatenates parts along an axis of the memory order; a single part is returned unchanged. */
struct tf_output tf_join(struct tf_translation *t, const struct tf_output *parts, int64_t count,
			 int axis);

/* Pads x with `pads` (in the memory order of x: begins, then ends). */
struct tf_output tf_pad(struct tf_translation *t, struct tf_output x, const int64_t *pads, int rank,
			double value);

/* Reduces by `type` (Sum, Mean) over the axes with `reduced` set; they keep size 1. */
struct tf_output tf_reduce(struct tf_translation *t, const char *type, struct tf_output x,
			   const bool *reduced, int rank);

typedef void tf_operator(struct tf_translation *t, const struct node *node);

/* tf_window.c: convolutions and pools */
tf_operator tf_conv, tf_conv_grad_input, tf_conv_grad_weight;
tf_operator tf_conv_transpose, tf_conv_transpose_grad_input, tf_conv_transpose_grad_weight;
tf_operator tf_max_pool, tf_max_pool_grad, tf_average_pool, tf_average_pool_grad;
/* tf_layers.c: products, normalisations, losses */
tf_operator tf_gemm, tf_gemm_grad_input, tf_gemm_grad_weight, tf_matmul_node;
tf_operator tf_batch_norm, tf_batch_norm_grad, tf_lrn, tf_lrn_grad, tf_dropout, tf_dropout_grad;
tf_operator tf_layer_norm, tf_layer_norm_grad;
/* tf_images.c: normalisations over groups of channels, resizing */
tf_operator tf_group_norm, tf_group_norm_grad, tf_resize, tf_resize_grad;
tf_operator tf_softmax, tf_softmax_grad, tf_cross_entropy, tf_cross_entropy_grad;
tf_operator tf_half_squares, tf_half_squares_grad;
/* tf_arrange.c: shapes */
tf_operator tf_reshape_node, tf_reshape_grad, tf_transpose_node, tf_concat, tf_slice_node,
	tf_slice_grad, tf_pad_node, tf_pad_grad;
tf_operator tf_gather, tf_gather_grad, tf_expand;
tf_operator tf_mean, tf_mean_grad, tf_arithmetic, tf_broadcast_grad;
/* tf_functions.c: elementwise functions */
tf_operator tf_function, tf_function_grad;
/* tf_recurrent.c */
tf_operator tf_lstm, tf_lstm_grad, tf_steps, tf_steps_grad;

#endif
