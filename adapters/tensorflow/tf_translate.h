/* Translates a graph, forward and backward, to TensorFlow operations. The backward pass has the
 * operations that Python's gradients emit, node by node: the C interface cannot differentiate all
 * operations and differentiates some wrongly (LRN, dilations). */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_TRANSLATE_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_TRANSLATE_H

#include "adapters/tensorflow/tf_emit.h"
#include "base/strbuf.h"
#include "graph/layout.h"

/* Range of operation numbers, as used in their names: "p.conv1.12". */
struct tf_range {
	int first, end;
};

struct tf_translation {
	struct tf_emit e;
	const struct graph *graph;
	struct layouts layouts;
	bool last;		   /* channels last; else NCHW */
	bool training, dropout;	   /* from the recipe */
	enum tf_type type;	   /* of activations */
	int64_t seed;		   /* of dropout */
	struct tf_output *values;  /* by value, in memory order; weights are set before */
	struct tf_output *plain;   /* the same in graph order; set when first needed */
	struct tf_output *kept;	   /* by node, for its gradient: see the node's function */
	struct tf_output **states; /* by recurrent node: its state after each time step */
	struct tf_range *made;	   /* by node: the operations that it was translated to */
	int *readers;		   /* by value: how many node inputs read it */
	struct arena *arena;
};

/* Translates the nodes from `first` to before `end`. Weights, input, labels and states already have
 * values. A missing TensorFlow kernel is only found when the graph runs. */
enum prony_status tf_translate(struct tf_translation *t, int first, int end, struct error *err);

/* Whether a convolution is depthwise (a weight for each input channel) and TensorFlow has a
 * depthwise operation for it. */
bool tf_is_depthwise(const struct graph *graph, const struct node *conv);

/* Whether only this product reads its weight. The weight is then stored as [in, out], the usual
 * order in TensorFlow, whatever the order in the graph. */
bool tf_is_own_weight(const struct graph *graph, const struct node *gemm);

/* Adds what the operations of TensorFlow, or of 1.15 (`old`), cannot express, each with its reason.
 */
void tf_refusals(const struct graph *graph, bool training, bool old, struct strbuf *reasons);

#endif
