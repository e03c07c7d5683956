/*
 * Where the samples of a batch lie in the values of a graph: for the `samples` and `rebatch`
 * functions of operator rows.
 *
 * Through all reshapes and transposes, the batch stays one factor of one dimension:
 * dims[axis] = outer * batch * inner. A reshape moves no element, so the product of the dimensions
 * before `axis`, times `outer`, is the same in its input and its output.
 */
#ifndef PRONY_GRAPH_SAMPLES_H
#define PRONY_GRAPH_SAMPLES_H

#include "base/arena.h"
#include "graph/graph.h"

/* Where the samples lie in a value. */
struct samples_axis {
	int axis; /* -1: nowhere: the value is the same for all samples, or it mixes them */
	int64_t outer, inner;
};

extern const struct samples_axis samples_nowhere;

struct samples {
	const struct graph *graph;
	int64_t batch;
	struct samples_axis *places; /* one for each value */
	struct arena arena;
};

/* `outer` groups of samples on this axis; nowhere if the dimension is not a multiple of them. */
struct samples_axis samples_on(const struct samples *s, const struct shape *shape, int axis,
			       int64_t outer);
/* The same on an axis of the node's first output. */
struct samples_axis samples_on_output(const struct samples *s, const struct node *node, int axis,
				      int64_t outer);

/* `samples` functions for rows: of operators that leave each sample in its place; of windows on
 * planes; of operators that combine the elements of all channels (axis 1); of layers whose first
 * axis is the samples. */
struct samples_axis samples_stay(const struct samples *s, const struct node *node,
				 const struct samples_axis *x);
struct samples_axis samples_of_planes(const struct samples *s, const struct node *node,
				      const struct samples_axis *x);
struct samples_axis samples_beside_channels(const struct samples *s, const struct node *node,
					    const struct samples_axis *x);
struct samples_axis samples_first(const struct samples *s, const struct node *node,
				  const struct samples_axis *x);

#endif
