/*
 * Which axes of a value are summed up, or repeated, to make another: for those who write means and
 * broadcasts in operators of their own.
 */
#ifndef PRONY_GRAPH_REDUCTION_H
#define PRONY_GRAPH_REDUCTION_H

#include "graph/graph.h"

struct reduction {
	bool summed[TENSOR_MAX_RANK]; /* of each axis of the whole */
	int axes[TENSOR_MAX_RANK];    /* axis i of the part is this one of the whole */
	struct shape kept;	      /* the whole's with the summed axes as 1 */
	int64_t count;		      /* elements of the whole for each of the part */
};

/* From the input (the whole) of a ReduceMean or GlobalAveragePool to its output. */
struct reduction reduction_of_mean(const struct graph *graph, const struct node *mean);

/* From what broadcasting has made of an operand back to the operand. */
struct reduction reduction_of_broadcast(const struct shape *whole, const struct shape *part);

#endif
