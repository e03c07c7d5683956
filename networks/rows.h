/*
 * Private to networks/: the functions that rows of the operator table are made of, and what they
 * share. An operator is one row in operators.c, one X() in operators.h and its functions in the
 * file of its family.
 */
#ifndef PRONY_NETWORKS_ROWS_H
#define PRONY_NETWORKS_ROWS_H

#include "networks/graph.h"

/* conv.c */
extern const struct attribute_row conv_attributes[];
enum prony_status conv_infer(struct graph *graph, struct node *node, struct error *err);
int64_t conv_macs(const struct graph *graph, const struct node *node);
int64_t conv_grad_macs(const struct graph *graph, const struct node *node);
enum prony_status conv_backward(struct graph *graph, const struct node *node, struct error *err);

/* pool.c */
extern const struct attribute_row max_pool_attributes[];
enum prony_status max_pool_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status max_pool_backward(struct graph *graph, const struct node *node,
				    struct error *err);

/* gemm.c */
extern const struct attribute_row gemm_attributes[];
enum prony_status gemm_infer(struct graph *graph, struct node *node, struct error *err);
int64_t gemm_macs(const struct graph *graph, const struct node *node);
int64_t gemm_grad_macs(const struct graph *graph, const struct node *node);
enum prony_status gemm_backward(struct graph *graph, const struct node *node, struct error *err);

/* elementwise.c */
extern const struct attribute_row dropout_attributes[];
enum prony_status relu_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status relu_backward(struct graph *graph, const struct node *node, struct error *err);
enum prony_status add_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status add_backward(struct graph *graph, const struct node *node, struct error *err);
enum prony_status dropout_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status dropout_backward(struct graph *graph, const struct node *node, struct error *err);

/* reshape.c */
extern const struct attribute_row flatten_attributes[];
enum prony_status flatten_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status flatten_backward(struct graph *graph, const struct node *node, struct error *err);

/* loss.c */
enum prony_status cross_entropy_infer(struct graph *graph, struct node *node, struct error *err);
enum prony_status cross_entropy_backward(struct graph *graph, const struct node *node,
					 struct error *err);

/* infer.c: gradients have the shape of what they are the gradient of. */
enum prony_status infer_grad_input(struct graph *graph, struct node *node, struct error *err);
enum prony_status infer_grad_weight(struct graph *graph, struct node *node, struct error *err);

/* infer.c: what the families share. */

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
/* Output 0 is like input 0. */
enum prony_status node_copy_shape(struct graph *graph, struct node *node, struct error *err);

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
