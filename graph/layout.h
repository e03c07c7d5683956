/*
 * Channels last: for frameworks that compute on N x H x W x C. The graph stays as it is (NCHW,
 * OIHW); a layout says beside it in which order the numbers of each value lie in the framework, and
 * an arrangement moves numbers between the two orders on the host.
 */
#ifndef PRONY_GRAPH_LAYOUT_H
#define PRONY_GRAPH_LAYOUT_H

#include "graph/graph.h"

enum layout {
	LAYOUT_GRAPH, /* as the graph says */
	LAYOUT_LAST,  /* rank 4: N x H x W x C */
	/* H x W x I x O: parameters and constants that convolutions alone read, as weights. */
	LAYOUT_KERNEL,
	/*
	 * A flattened image, N x (H W C) where the graph has N x (C H W); of a weight that is
	 * multiplied with one: that dimension in the same order. It saves the transposition in
	 * front of the first matrix product, as everybody who works with channels last does.
	 */
	LAYOUT_LAST_FLAT,
	LAYOUT_LAST_FLAT_ROWS /* the same of a weight that is [in, out] */
};

struct layouts {
	const struct graph *graph; /* borrowed */
	enum layout *values;	   /* one for each value */
	int64_t *channels;	   /* of a flattened image, and its weight: those it had; else 0 */
};

/*
 * Chooses for a graph, with its backward pass if it has one. With `last`, everything of rank 4 but
 * LAYOUT_KERNEL is LAYOUT_LAST: operators that need the graph's order (Reshape, Transpose, Flatten
 * that is not LAYOUT_LAST_FLAT) transpose what they take and give. Without `last` all but
 * LAYOUT_KERNEL are LAYOUT_GRAPH. Gradients lie as what they are the gradient of. Arrays are in
 * `arena`.
 */
void graph_layouts(const struct graph *graph, bool last, struct arena *arena, struct layouts *out);

/* The shape as the value lies. */
struct shape layouts_shape(const struct layouts *layouts, int value);

/* Where axis `axis` of the graph lies in a value that is not LAYOUT_KERNEL. */
int layouts_axis(const struct layouts *layouts, int value, int axis);

/*
 * An array seen with `dims` (row-major) in the graph, whose axes lie in the order of `axes` in the
 * framework: OIHW as HWIO is {O, I, H, W} with {2, 3, 1, 0}.
 */
struct arrangement {
	int rank; /* 0: nothing moves */
	int64_t dims[TENSOR_MAX_RANK];
	int axes[TENSOR_MAX_RANK];
};

struct arrangement arrangement_make(int rank, const int64_t *dims, const int *axes);
/* Of a value by its layout. */
struct arrangement layouts_arrangement(const struct layouts *layouts, int value);
/* Copies all elements from the graph's order into the framework's; with `back` the other way. */
void arrangement_copy(const struct arrangement *a, int64_t elements, const float *from, float *to,
		      bool back);

#endif
