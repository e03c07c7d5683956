/* Private to graph/: what is asked of one node, and how its outputs get their shapes. */
#ifndef PRONY_GRAPH_OPERATOR_ROWS_INTERNAL_H
#define PRONY_GRAPH_OPERATOR_ROWS_INTERNAL_H

#include "graph/graph.h"

/* infer.c: gradients have the shape of what they are the gradient of. */
/* The forward node's input whose gradient output i is. */
int node_target(const struct node *node, int i);
enum prony_status infer_gradient(struct graph *graph, struct node *node, struct error *err);

/* node.c */

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
