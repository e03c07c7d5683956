/* Private to graph/: what the backward functions of operator rows are made of. */
#ifndef PRONY_GRAPH_BACKWARD_INTERNAL_H
#define PRONY_GRAPH_BACKWARD_INTERNAL_H

#include "graph/graph.h"

/* In value.gradient while the pass is built: a gradient is needed and nothing has computed it yet.
 */
#define GRADIENT_WANTED (-2)

/* Whether something trained depends on the gradient of input i of a forward node. */
bool backward_wants(const struct graph *graph, const struct node *node, int i);

/* The gradient of output 0. Rows are called only when there is one (loss rows excepted). */
int backward_gradient(const struct graph *graph, const struct node *node);

/*
 * Appends a node `op` with the attributes of `forward` whose outputs are the gradients of the
 * `target_count` inputs of `forward` from `first_target` on, and contributes those that are wanted.
 */
enum prony_status backward_node(struct graph *graph, const struct node *forward, enum op op,
				const int *inputs, int input_count, int first_target,
				int target_count, struct error *err);

/*
 * Appends a node with a forward operator, whose output becomes (a part of) the gradient of input i
 * of `forward`. Writes the output to *out.
 */
enum prony_status backward_apply(struct graph *graph, const struct node *forward, int i, enum op op,
				 const int *inputs, int input_count,
				 const struct attributes *attributes, int *out, struct error *err);

/* A gradient row that reads dy and one more value and gives dx, if input 0 wants it. */
enum prony_status backward_unary(struct graph *graph, const struct node *node, enum op op,
				 int other, struct error *err);

/* Adds value `gradient` to the gradient of `target`: the first is it, the next are summed by Add.
 */
enum prony_status backward_contribute(struct graph *graph, int target, int gradient,
				      struct error *err);

#endif
