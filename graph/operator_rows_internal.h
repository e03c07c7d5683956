/*
 * Private to graph/: the functions that rows of the operator table are made of, and what they
 * share. An operator is one row in operators.c (of each element: elementwise.c), one X() in
 * operators.h and its functions in the file of its family.
 */
#ifndef PRONY_GRAPH_OPERATOR_ROWS_INTERNAL_H
#define PRONY_GRAPH_OPERATOR_ROWS_INTERNAL_H

#include "graph/graph.h"

/* conv.c */
extern const struct attribute_row conv_attributes[];
enum prony_status conv_infer(struct graph *graph, struct node *node, struct error *err);
int64_t conv_macs(const struct graph *graph, const struct node *node);
int64_t conv_grad_macs(const struct graph *graph, const struct node *node);

/* pool.c */
extern const struct attribute_row max_pool_attributes[];
extern const struct attribute_row average_pool_attributes[];
enum prony_status max_pool_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status average_pool_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status global_average_pool_infer(struct graph *graph, struct node *node,
					    struct error *err);

/* gemm.c */
extern const struct attribute_row gemm_attributes[];
enum prony_status gemm_infer(struct graph *graph, struct node *node, struct error *err);
int64_t gemm_macs(const struct graph *graph, const struct node *node);
int64_t gemm_grad_macs(const struct graph *graph, const struct node *node);

/* elementwise.c: NULL for what is no function of each element. */
const struct operator_row *elementwise_row(enum op op);

/* dropout.c */
extern const struct attribute_row dropout_attributes[];
enum prony_status dropout_infer(struct graph *graph, struct node *node, struct error *err);

/* binary.c */
extern const struct attribute_row broadcast_attributes[];
enum prony_status binary_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status infer_broadcast_grad(struct graph *graph, struct node *node, struct error *err);
double add(double a, double b);
double subtract(double a, double b);
double multiply(double a, double b);
double divide(double a, double b);

/* normalise.c */
extern const struct attribute_row batch_norm_attributes[];
extern const struct attribute_row lrn_attributes[];
enum prony_status batch_norm_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status lrn_infer(struct graph *graph, struct node *node, struct error *err);

/* reshape.c */
extern const struct attribute_row flatten_attributes[];
extern const struct attribute_row reshape_attributes[];
enum prony_status flatten_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status reshape_infer(struct graph *graph, struct node *node, struct error *err);

/* arrange.c */
extern const struct attribute_row transpose_attributes[];
extern const struct attribute_row concat_attributes[];
extern const struct attribute_row slice_attributes[];
extern const struct attribute_row pad_attributes[];
enum prony_status transpose_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status concat_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status slice_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status pad_infer(struct graph *graph, struct node *node, struct error *err);

/* reduce.c */
extern const struct attribute_row reduce_mean_attributes[];
extern const struct attribute_row softmax_attributes[];
enum prony_status reduce_mean_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status softmax_infer(struct graph *graph, struct node *node, struct error *err);

/* recurrent.c */
enum prony_status lstm_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status rnn_infer(struct graph *graph, struct node *node, struct error *err);
int64_t recurrent_macs(const struct graph *graph, const struct node *node);
int64_t recurrent_grad_macs(const struct graph *graph, const struct node *node);

/* loss.c */
enum prony_status cross_entropy_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status half_squares_infer(struct graph *graph, struct node *node, struct error *err);

/* infer.c: gradients have the shape of what they are the gradient of. */
enum prony_status infer_grad_input(struct graph *graph, struct node *node, struct error *err);
enum prony_status infer_grad_weight(struct graph *graph, struct node *node, struct error *err);

/* node.c: what the families share. */

extern const struct attribute_row no_attributes[];

/* An error that names the node: "node 'conv1' (Conv): ...". Always PRONY_BAD_INPUT. */
enum prony_status node_error(const struct node *node, struct error *err, const char *format, ...)
	PRONY_PRINTF(3, 4);
bool node_has_input(const struct node *node, int i);
/* Shape of input i, which must be there. */
const struct shape *node_input_shape(const struct graph *graph, const struct node *node, int i);
const struct shape *node_output_shape(const struct graph *graph, const struct node *node, int i);
/* Input i has this rank and holds floating-point numbers. */
enum prony_status node_need_rank(const struct graph *graph, const struct node *node, int i,
				 int rank, struct error *err);
enum prony_status node_need_float(const struct graph *graph, const struct node *node, int i,
				  struct error *err);
/* Checks the shape's bounds and sets output i; nothing happens when the node leaves it out. */
enum prony_status node_set_output(struct graph *graph, const struct node *node, int i,
				  enum dtype dtype, const struct shape *shape, struct error *err);
/* Makes an axis that counts from the end count from the start. */
enum prony_status node_normal_axis(const struct node *node, int rank, int64_t *axis,
				   struct error *err);
/* Output 0 is like input 0. */
enum prony_status node_copy_shape(struct graph *graph, struct node *node, struct error *err);

/* infer.c */

/*
 * Output height and width of a window that slides over input x (N x C x H x W) as the node's
 * kernel_shape, strides, dilations, pads and ceil_mode say.
 */
enum prony_status node_window(const struct graph *graph, const struct node *node, int x,
			      int64_t out[2], struct error *err);

/* a * b, at most INT64_MAX. Both are not negative. */
int64_t saturating_multiply(int64_t a, int64_t b);
int64_t saturating_add(int64_t a, int64_t b);

#endif
