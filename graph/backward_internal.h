/* Private to graph/: helpers for the backward functions of operator rows. */
#ifndef PRONY_GRAPH_BACKWARD_INTERNAL_H
#define PRONY_GRAPH_BACKWARD_INTERNAL_H

#include "graph/graph.h"

/* A mark in value.gradient while the pass is built: a gradient is needed but not computed yet. */
#define GRADIENT_WANTED (-2)

/* Whether the gradient of a parameter depends on the gradient of input i of a forward node. */
bool backward_wants(const struct graph *graph, const struct node *node, int i);

/* The gradient of output 0. The functions of rows are called only if there is one (except loss
 * rows). */
int backward_gradient(const struct graph *graph, const struct node *node);

/* Appends a node `op` with the attributes of `forward`. Its outputs are the gradients of the
 * `target_count` inputs of `forward` from `first_target` on; those that are wanted are contributed.
 */
enum prony_status backward_node(struct graph *graph, const struct node *forward, enum op op,
				const int *inputs, int input_count, int first_target,
				int target_count, struct error *err);

/* Appends a node with a forward operator. Its output becomes the gradient of input i of `forward`,
 * or a part of it, and is written to *out. */
enum prony_status backward_apply(struct graph *graph, const struct node *forward, int i, enum op op,
				 const int *inputs, int input_count,
				 const struct attributes *attributes, int *out, struct error *err);

/* Appends a gradient node that reads dy and one more value and computes dx, if input 0 wants it. */
enum prony_status backward_unary(struct graph *graph, const struct node *node, enum op op,
				 int other, struct error *err);

/* Adds value `gradient` to the gradient of `target`: the first one becomes the gradient, further
 * ones are summed by Add. */
enum prony_status backward_contribute(struct graph *graph, int target, int gradient,
				      struct error *err);

#endif
