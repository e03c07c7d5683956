/* What ranks get of the batches that they share. */
#ifndef PRONY_RUN_PARTS_OF_RANKS_H
#define PRONY_RUN_PARTS_OF_RANKS_H

#include "bundle/recipe.h"
#include "graph/graph.h"

/* The case of a rank. */
struct parts_of_ranks {
	struct arena arena;
	struct recipe recipe; /* of the whole batch before parts_of_ranks, then of a part */
	struct graph graph;   /* forward, for a part of the batch */
	/* Part r of batch k is batch k * ranks + r; the data are those of the whole batches. */
	struct tensor_set inputs, labels;
};

/* Makes the labels that are left out the same ones in each rank's part of a batch, as in that of
 * rank 0. Otherwise the mean of the ranks' losses were not the loss of the batch. */
void parts_leave_out_alike(struct tensor_set *labels, int ranks);

/* `graph`, `inputs` and `labels` are of whole batches, whose first dimension is a multiple of
 * `ranks`. Call parts_of_ranks_release in any case. */
enum prony_status parts_of_ranks(const struct graph *graph, const struct tensor_set *inputs,
				 const struct tensor_set *labels, int ranks,
				 struct parts_of_ranks *out, struct error *err);
void parts_of_ranks_release(struct parts_of_ranks *parts);

#endif
