/* Finds attention in a graph, softmax(scale q k' + mask) v, which many libraries have as one call.
 */
#ifndef PRONY_GRAPH_ATTENTION_H
#define PRONY_GRAPH_ATTENTION_H

#include "graph/graph.h"

#define ATTENTION_MAX_NODES 9
#define ATTENTION_MAX_SCALES 4

/* The nodes MatMul(q, k'), Softmax over the last axis and MatMul(weights, v), with what lies
 * between them. q, v and the result are N x H x T x d: batch, heads, tokens, features. */
struct attention {
	int q, k, v; /* values */
	/* The dimensions of k in the order N x H x T x d: 0, 1, 2, 3, or what a Transpose made of
	 * it. */
	int64_t key_order[4];
	/* Nodes that multiply or divide by a state of one element. The first `inner_scales` are
	 * among `nodes`. The others lie above q and k: one call that also does their work makes
	 * them pass their other operand on. */
	int scales[ATTENTION_MAX_SCALES], scale_count, inner_scales;
	int mask; /* a state that is added to the scores, broadcast to N x H x T x T; VALUE_NONE */
	int dropout; /* a node of `nodes`, or -1 */
	/* The nodes that one call replaces, in the order of the graph. Nothing else reads what they
	 * compute, except `output`. */
	int nodes[ATTENTION_MAX_NODES], node_count;
	int output; /* a value */
};

/* Whether the node is the Softmax of an attention. Fills *out if it is. Reads the forward nodes
 * only, so that the graph may have a backward pass. */
bool graph_attention(const struct graph *graph, int softmax_node, struct attention *out);

/* The operand of a node of `scales` that is the state: 0 or 1. */
int attention_scale_operand(const struct graph *graph, int node);

/* Whether a mask of rows x columns numbers is causal: 0 up to the diagonal, and right of it at most
 * -1e4, whose exponential is 0. */
bool attention_mask_is_causal(const float *mask, int64_t rows, int64_t columns);

#endif
