/*
 * Recurrent layers in MXNet's fused operator RNN, which takes all weights of a layer as one vector:
 * w, r and two biases, each row by row, the gates of an LSTM in the order i, f, c, o
 * (src/operator/rnn-inl.h; the graph has i, o, f, c). The graph's parameters are windows on that
 * vector, so that nothing is packed in a step and each is updated by itself; the second bias lies
 * in no window and stays zero.
 */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_RECURRENT_H
#define PRONY_ADAPTERS_MXNET_MXNET_RECURRENT_H

#include "adapters/mxnet/mxnet_api.h"
#include "graph/graph.h"

/* Suffixes of the arguments that a recurrent node's symbol has beside the graph's values. */
#define MX_RECURRENT_WEIGHTS ":weights"
#define MX_RECURRENT_STATE ":state"
#define MX_RECURRENT_CELL ":cell"

/* A recurrent node's arrays. */
struct mx_recurrent {
	const struct node *node;		/* borrowed */
	struct mx_ndarray *weights, *gradients; /* packed; gradients NULL where not wanted */
	struct mx_ndarray *zeros;		/* the state before the first step; cells too */
};

/* Arrays of the node, zero; on failure half-built: release it. */
enum prony_status mx_recurrent_init(struct mx_recurrent *recurrent, const struct mx_api *api,
				    const struct graph *graph, const struct node *node,
				    bool gradients, struct error *err);
void mx_recurrent_release(struct mx_recurrent *recurrent, const struct mx_api *api);

/* A window on `packed` (weights or gradients) in the shape of the node's input 1, 2 or 3; the
 * caller frees it with MXNDArrayFree. */
enum prony_status mx_recurrent_window(const struct mx_api *api, const struct graph *graph,
				      const struct node *node, int input, struct mx_ndarray *packed,
				      struct mx_ndarray **out, struct error *err);

/* The array of the symbol's argument `name` and, for the weights, its gradients (else NULL); false
 * when the argument is none of this node's. */
bool mx_recurrent_argument(const struct mx_recurrent *recurrent, const char *name,
			   struct mx_ndarray **array, struct mx_ndarray **gradients);

/* An LSTM's weight or bias: the four blocks of `elements` numbers from the graph's order of gates
 * into MXNet's, and back. */
void mx_gates_to_mxnet(float *data, int64_t elements);
void mx_gates_to_graph(float *data, int64_t elements);

#endif
