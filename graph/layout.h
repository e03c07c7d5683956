/* Channels-last layouts, for frameworks that compute on N x H x W x C. The graph itself stays NCHW
 * and OIHW. A layout tells the order in which the framework stores the numbers of each value; an
 * arrangement moves numbers between the two orders on the host. */
#ifndef PRONY_GRAPH_LAYOUT_H
#define PRONY_GRAPH_LAYOUT_H

#include "graph/graph.h"

enum layout {
	LAYOUT_GRAPH, /* the graph's order */
	LAYOUT_LAST,  /* rank 4: N x H x W x C */
	/* H x W x I x O: parameters and constants that only convolutions read, as weights. */
	LAYOUT_KERNEL,
	/* A flattened image: N x (H W C), where the graph has N x (C H W). For a weight that is
	 * multiplied by one: that dimension in the same order. It saves the transposition before
	 * the first matrix product, as is usual with channels last. */
	LAYOUT_LAST_FLAT,
	LAYOUT_LAST_FLAT_ROWS /* the same for a weight that is [in, out] */
};

struct layouts {
	const struct graph *graph; /* borrowed */
	enum layout *values;	   /* one for each value */
	int64_t *channels; /* for a flattened image and its weight: the image's channels; else 0 */
};

/* Chooses layouts for a graph, with its backward pass if it has one. With `last`, every value of
 * rank 4 is LAYOUT_LAST, except LAYOUT_KERNEL values; operators that need the graph's order
 * (Reshape, Transpose, Flatten that is not LAYOUT_LAST_FLAT) transpose their inputs and outputs.
 * Without `last`, all values but LAYOUT_KERNEL ones are LAYOUT_GRAPH. A gradient has the layout of
 * its value. Arrays are in `arena`. */
void graph_layouts(const struct graph *graph, bool last, struct arena *arena, struct layouts *out);

/* The shape of a value in its layout. */
struct shape layouts_shape(const struct layouts *layouts, int value);

/* The position of the graph's axis `axis` in a value that is not LAYOUT_KERNEL. */
int layouts_axis(const struct layouts *layouts, int value, int axis);

/* An array that has `dims` (row-major) in the graph, and whose axes have the order `axes` in the
 * framework: OIHW as HWIO is {O, I, H, W} with {2, 3, 1, 0}. */
struct arrangement {
	int rank; /* 0: nothing moves */
	int64_t dims[TENSOR_MAX_RANK];
	int axes[TENSOR_MAX_RANK];
};

struct arrangement arrangement_make(int rank, const int64_t *dims, const int *axes);
/* The arrangement of a value in its layout. */
struct arrangement layouts_arrangement(const struct layouts *layouts, int value);
/* Copies all elements from the graph's order to the framework's; with `back`, the other way. */
void arrangement_copy(const struct arrangement *a, int64_t elements, const float *from, float *to,
		      bool back);

#endif
