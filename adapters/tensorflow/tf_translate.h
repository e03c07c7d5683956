/*
 * A graph, forward and backward, as operations of TensorFlow: what Python's own gradients emit,
 * node by node, because the C interface cannot differentiate all of it and differentiates some of
 * it wrongly (LRN, dilations).
 */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_TRANSLATE_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_TRANSLATE_H

#include "adapters/tensorflow/tf_emit.h"
#include "base/strbuf.h"
#include "graph/layout.h"

/* Numbers of operations, as their names have them: "p.conv1.12". */
struct tf_range {
	int first, end;
};

struct tf_translation {
	struct tf_emit e;
	const struct graph *graph;
	struct layouts layouts;
	bool last;		   /* layouts with channels last; else NCHW */
	bool training, dropout;	   /* as the recipe says */
	enum tf_type type;	   /* that activations have */
	int64_t seed;		   /* of dropout */
	struct tf_output *values;  /* of the graph, as they lie; those of weights are set before */
	struct tf_output *plain;   /* the same in the graph's order, where somebody asked */
	struct tf_output *kept;	   /* of each node, for its gradient: see the node's function */
	struct tf_output **states; /* of each recurrent node: what it was after each time step */
	struct tf_range *made;	   /* of each node, the operations that it became */
	int *readers;		   /* how many inputs of nodes each value is */
	struct arena *arena;
};

/*
 * Translates the nodes from `first` to before `end`. Weights, input, labels and states have their
 * values already. What TensorFlow has no kernel for is known when it runs.
 */
enum prony_status tf_translate(struct tf_translation *t, int first, int end, struct error *err);

/* Whether a convolution has a weight for each channel of its input, and TensorFlow an operation of
 * its own for it. */
bool tf_is_depthwise(const struct graph *graph, const struct node *conv);

/* Whether the weight of a product belongs to it alone: it then lies as [in, out], as TensorFlow's
 * users have it, whatever the graph has. */
bool tf_is_own_weight(const struct graph *graph, const struct node *gemm);

/* What TensorFlow's operations cannot say, each with its reason. */
void tf_refusals(const struct graph *graph, struct strbuf *reasons);

#endif
