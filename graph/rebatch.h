/* Changes the batch size of a network: finds where the samples lie in each value of a graph, and
 * copies the graph with another batch size. */
#ifndef PRONY_GRAPH_REBATCH_H
#define PRONY_GRAPH_REBATCH_H

#include "graph/graph.h"

/* Makes *out the forward graph for `batch` samples; the caller frees it with graph_release. Shapes
 * are inferred again, node by node. The shape of a Reshape and the range of a Slice along the batch
 * are changed. Weights keep their shapes. PRONY_UNSUPPORTED names the node whose dependence on the
 * old batch cannot be changed; PRONY_BAD_INPUT if the batch is too large. */
enum prony_status graph_rebatch(const struct graph *graph, int64_t batch, struct graph *out,
				struct error *err);

/* PRONY_OK if the result for each sample depends on that sample alone. PRONY_UNSUPPORTED names the
 * first forward node that mixes samples or treats them differently. The batch's statistics of
 * BatchNormalization do not count as mixing. */
enum prony_status graph_samples_apart(const struct graph *graph, struct error *err);

#endif
