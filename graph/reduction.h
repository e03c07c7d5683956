/* The axes of a value that are summed, or repeated, to make another value: for frameworks that
 * express means and broadcasts with their own operators. */
#ifndef PRONY_GRAPH_REDUCTION_H
#define PRONY_GRAPH_REDUCTION_H

#include "graph/graph.h"

struct reduction {
	bool summed[TENSOR_MAX_RANK]; /* for each axis of the whole: whether it is summed */
	int axes[TENSOR_MAX_RANK];    /* the axis of the whole for axis i of the part */
	struct shape kept;	      /* the shape of the whole with the summed axes as 1 */
	int64_t count;		      /* elements of the whole per element of the part */
};

/* From the input (the whole) of a ReduceMean or GlobalAveragePool to its output. */
struct reduction reduction_of_mean(const struct graph *graph, const struct node *mean);

/* From the broadcast shape of an operand (the whole) to the operand itself. */
struct reduction reduction_of_broadcast(const struct shape *whole, const struct shape *part);

#endif
