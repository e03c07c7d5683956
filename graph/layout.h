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
	/*
	 * A flattened image, N x (H W C) where the graph has N x (C H W); of a weight that is
	 * multiplied with one: that dimension in the same order. It saves the transposition in
	 * front of the first matrix product, as everybody who works with channels last does.
	 */
	LAYOUT_LAST_FLAT
};

struct layouts {
	const struct graph *graph; /* borrowed */
	enum layout *values;	   /* one for each value */
	int64_t *channels;	   /* of LAYOUT_LAST_FLAT: the images' number of channels; else 0 */
};

/*
 * Chooses for a graph, with its backward pass if it has one. With `last`, every input, activation
 * and gradient of rank 4 is LAYOUT_LAST: operators that need the graph's order (Reshape, Transpose,
 * Flatten that is not LAYOUT_LAST_FLAT) transpose what they take and give. Weights stay
 * LAYOUT_GRAPH (a framework has its own order of them) but for LAYOUT_LAST_FLAT; constants and
 * parameters of rank 4 that no convolution reads are LAYOUT_LAST. Without `last` all are
 * LAYOUT_GRAPH. Arrays are in `arena`.
 */
void graph_layouts(const struct graph *graph, bool last, struct arena *arena, struct layouts *out);

/* The shape as the value lies: N x H x W x C. */
struct shape layouts_shape(const struct layouts *layouts, int value);

/* Where axis `axis` of the graph lies in a value. */
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
/* Of a value by its layout; for LAYOUT_LAST_FLAT the last dimension is the flattened one. */
struct arrangement layouts_arrangement(const struct layouts *layouts, int value);
/* Copies all elements from the graph's order into the framework's; with `back` the other way. */
void arrangement_copy(const struct arrangement *a, int64_t elements, const float *from, float *to,
		      bool back);

#endif
