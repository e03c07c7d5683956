/* Takes the layers of a graph out of it: an operator with the functions of an element behind it, or
 * an attention, as a graph of its own. */
#ifndef PRONY_GRAPH_EXTRACT_H
#define PRONY_GRAPH_EXTRACT_H

#include "graph/graph.h"

#define LAYER_NODES_MAX 16

/* Forward nodes that libraries compute together. Only `output` is read elsewhere. */
struct layer {
	int nodes[LAYER_NODES_MAX]; /* in the order of the graph */
	int count;
	int output; /* a value */
};

/* Writes the layers of the forward pass to out, which has room for graph->forward_count; returns
 * their number. A layer is an attention (graph/attention.h), or an operator with those behind it
 * that read only its result and weights: normalisation by batch statistics, functions of an
 * element, sums with a parameter. The loss, Dropout and operators that only rename numbers
 * (Reshape, Flatten, Identity) are in no layer of their own. */
int graph_layers(const struct graph *graph, struct layer *out);

/* Makes a graph of a layer. What it reads besides weights becomes inputs x0, x1...; one whose first
 * dimension is a multiple of the batch is an input of the batch that is reshaped. The result is
 * flattened to a row for each sample. Names depend on the layer alone, so equal layers of a network
 * have the same digest. It has no loss. *out: the caller frees it with graph_release.
 * PRONY_UNSUPPORTED: an operand is no part of the batch. */
enum prony_status graph_extract(const struct graph *graph, const struct layer *layer,
				struct graph *out, struct error *err);

#endif
