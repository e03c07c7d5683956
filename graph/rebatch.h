/*
 * The same network for another number of samples: where the samples lie in each value of a graph,
 * and a copy of the graph with another batch.
 */
#ifndef PRONY_GRAPH_REBATCH_H
#define PRONY_GRAPH_REBATCH_H

#include "graph/graph.h"

/*
 * Makes *out the forward graph for `batch` samples; graph_release it. Shapes are inferred again,
 * node by node. The shape that a Reshape asks for and the range of a Slice along the batch follow.
 * Weights keep their shapes. PRONY_UNSUPPORTED names the node that holds the old batch in a way
 * that cannot be changed; PRONY_BAD_INPUT for a batch that is too large.
 */
enum prony_status graph_rebatch(const struct graph *graph, int64_t batch, struct graph *out,
				struct error *err);

/*
 * Whether the result for each sample depends on that sample alone. PRONY_UNSUPPORTED names the
 * first forward node that mixes samples or treats them unlike; the batch's statistics of
 * BatchNormalization are no such mix.
 */
enum prony_status graph_samples_apart(const struct graph *graph, struct error *err);

#endif
