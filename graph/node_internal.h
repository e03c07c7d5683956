/* Private to graph/: questions about one node, and inference of its outputs' shapes. */
#ifndef PRONY_GRAPH_NODE_INTERNAL_H
#define PRONY_GRAPH_NODE_INTERNAL_H

#include "graph/graph.h"

/* infer.c: a gradient has the shape of the value it belongs to. */
/* The input of the forward node whose gradient output i is. */
int node_target(const struct node *node, int i);
enum prony_status infer_gradient(struct graph *graph, struct node *node, struct error *err);

/* node.c */

extern const struct attribute_row no_attributes[];

/*
 * Writes an error that names the node: "node 'conv1' (Conv): ...". Always returns PRONY_BAD_INPUT.
 */
enum prony_status node_error(const struct node *node, struct error *err, const char *format, ...)
	PRONY_PRINTF(3, 4);
bool node_has_input(const struct node *node, int i);
/* The shape of input i, which must exist. */
const struct shape *node_input_shape(const struct graph *graph, const struct node *node, int i);
const struct shape *node_output_shape(const struct graph *graph, const struct node *node, int i);
/* PRONY_BAD_INPUT unless input i has this rank and a floating-point type. */
enum prony_status node_need_rank(const struct graph *graph, const struct node *node, int i,
				 int rank, struct error *err);
enum prony_status node_need_float(const struct graph *graph, const struct node *node, int i,
				  struct error *err);
/* Checks the limits of the shape and sets output i; does nothing if the node leaves it out. */
enum prony_status node_set_output(struct graph *graph, const struct node *node, int i,
				  enum dtype dtype, const struct shape *shape, struct error *err);
/* Turns an axis that may count from the end into one that counts from the start. */
enum prony_status node_normal_axis(const struct node *node, int rank, int64_t *axis,
				   struct error *err);
/* Gives output 0 the shape and type of input 0. */
enum prony_status node_copy_shape(struct graph *graph, struct node *node, struct error *err);

/* infer.c */

/* Computes the output's height and width for a window that slides over input x (N x C x H x W),
 * from the node's kernel_shape, strides, dilations, pads and ceil_mode. */
enum prony_status node_sliding_windows(const struct graph *graph, const struct node *node, int x,
				       int64_t out[2], struct error *err);

/* a * b, at most INT64_MAX. Both must not be negative. */
int64_t saturating_multiply(int64_t a, int64_t b);
int64_t saturating_add(int64_t a, int64_t b);

#endif
