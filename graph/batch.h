/* Batches: the tensors that a network is fed, one for each input and one for each label. */
#ifndef PRONY_GRAPH_BATCH_H
#define PRONY_GRAPH_BATCH_H

#include "graph/graph.h"

/* The tensors in the order of the graph's inputs and labels; labels may be missing. Nothing is
 * owned. */
struct batch {
	const struct tensor *inputs, *labels;
	int input_count, label_count;
};

/* Batch i of lists that hold the tensors of batch 0, then those of batch 1, and so on; `labels` may
 * be empty. */
struct batch batch_at(const struct graph *graph, const struct tensor_set *inputs,
		      const struct tensor_set *labels, size_t i);

/* The exclusive upper bound for the integers of an input: the number of rows of the smallest table
 * that they index, or of a cache that they write to; 0 if they index none. */
int64_t graph_index_bound(const struct graph *graph, int value);

/* PRONY_BAD_INPUT unless the tensors have the number, types and shapes of the graph's inputs and
 * labels, every index names a row, every label is a class or -1, and at least one label is valid. A
 * batch without labels is valid. */
enum prony_status batch_check(const struct graph *graph, struct batch batch, struct error *err);

/* Draws batches `first` to `first + count - 1`. F32 is normal with deviation 1; F16 has magnitudes
 * from 1 to 2; indices are uniform below their bound; booleans are even; labels are uniform over
 * the classes, with a share `ignored` of -1. Batch n does not depend on `first`. */
enum prony_status batches_draw(const struct graph *graph, uint64_t seed, int64_t first,
			       size_t count, double ignored, struct arena *arena,
			       struct tensor_set *inputs, struct tensor_set *labels,
			       struct error *err);

#endif
