/* Recurrent layers as MXNet's fused operator RNN. It takes all weights of a layer as one vector: w,
 * r and two biases, each row by row, the gates of an LSTM in the order i, f, c, o
 * (src/operator/rnn-inl.h; the graph has i, o, f, c). The graph's parameters are windows on that
 * vector, so a step packs nothing and each parameter has its own update. The second bias is outside
 * all windows and stays zero. A GRU, which has a part of the second bias, packs in each step. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_RECURRENT_H
#define PRONY_ADAPTERS_MXNET_MXNET_RECURRENT_H

#include "adapters/mxnet/mxnet_api.h"
#include "graph/graph.h"

/*
 * Suffixes of the arguments that a recurrent node's symbol has in addition to the graph's values.
 */
#define MX_RECURRENT_WEIGHTS ":weights"
#define MX_RECURRENT_STATE ":state"
#define MX_RECURRENT_CELL ":cell"

/* A recurrent node's arrays. */
struct mx_recurrent {
	const struct node *node;		/* borrowed */
	struct mx_ndarray *weights, *gradients; /* packed; NULL if not needed, and of a GRU */
	struct mx_ndarray *zeros; /* the state before the first step, also used for the cells */
};

/* Creates the node's arrays, filled with zeros. On failure they are half-built and must be
 * released. */
enum prony_status mx_recurrent_init(struct mx_recurrent *recurrent, const struct mx_api *api,
				    const struct graph *graph, const struct node *node,
				    bool gradients, struct error *err);
void mx_recurrent_release(struct mx_recurrent *recurrent, const struct mx_api *api);

/* Creates a window on `packed` (weights or gradients) with the shape of the node's input 1, 2 or 3;
 * the caller frees it with MXNDArrayFree. */
enum prony_status mx_recurrent_window(const struct mx_api *api, const struct graph *graph,
				      const struct node *node, int input, struct mx_ndarray *packed,
				      struct mx_ndarray **out, struct error *err);

/* Finds the array of the symbol's argument `name` and, for the weights, its gradients (else NULL);
 * false when the argument does not belong to this node. */
bool mx_recurrent_argument(const struct mx_recurrent *recurrent, const char *name,
			   struct mx_ndarray **array, struct mx_ndarray **gradients);

/* Reorders the four blocks of `elements` numbers in an LSTM's weight or bias from the graph's order
 * of gates to MXNet's, and back. */
void mx_gates_to_mxnet(float *data, int64_t elements);
void mx_gates_to_graph(float *data, int64_t elements);

#endif
