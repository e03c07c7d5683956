/*
 * The one operator table: ONNX semantics (opset 17, https://onnx.ai/onnx/operators/) for the
 * forward operators; gradient operators are ours and are named after what they differentiate.
 */
#ifndef PRONY_NETWORKS_OPERATORS_H
#define PRONY_NETWORKS_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "networks/tensor.h"

struct graph;
struct node;

/*
 * X(enumerator, name). Inputs and outputs, in order (layout NCHW, weights OIHW):
 *   Conv           x, w[, b] -> y
 *   MaxPool        x -> y
 *   Gemm           a, b[, c] -> y          alpha * A' * B' + beta * C, rank 2
 *   Relu           x -> y
 *   Flatten        x -> y
 *   Dropout        x -> y, mask            training: y = x * mask; mask is 0 or 1/(1-ratio), F32
 *   Add            a, b -> y
 *   SoftmaxCrossEntropyLoss  logits, labels -> loss    mean over the batch; loss is a scalar
 * Gradients (dy = gradient of the first output):
 *   ConvGradInput  dy, w -> dx             ConvGradWeight  x, dy -> dw[, db]
 *   MaxPoolGrad    dy, x, y -> dx          ties: the first maximum in row-major order
 *   GemmGradInput  dy, b -> da             GemmGradWeight  a, dy -> db[, dc]
 *   ReluGrad       dy, y -> dx             zero where y == 0
 *   FlattenGrad    dy -> dx                shape of dx is the node's first output value's
 *   DropoutGrad    dy, mask -> dx
 *   SoftmaxCrossEntropyGrad  logits, labels -> dlogits  (softmax - onehot) / batch
 */
#define PRONY_OPERATORS(X)                                                                         \
	X(CONV, "Conv")                                                                            \
	X(MAX_POOL, "MaxPool")                                                                     \
	X(GEMM, "Gemm")                                                                            \
	X(RELU, "Relu")                                                                            \
	X(FLATTEN, "Flatten")                                                                      \
	X(DROPOUT, "Dropout")                                                                      \
	X(ADD, "Add")                                                                              \
	X(SOFTMAX_CROSS_ENTROPY, "SoftmaxCrossEntropyLoss")                                        \
	X(CONV_GRAD_INPUT, "ConvGradInput")                                                        \
	X(CONV_GRAD_WEIGHT, "ConvGradWeight")                                                      \
	X(MAX_POOL_GRAD, "MaxPoolGrad")                                                            \
	X(GEMM_GRAD_INPUT, "GemmGradInput")                                                        \
	X(GEMM_GRAD_WEIGHT, "GemmGradWeight")                                                      \
	X(RELU_GRAD, "ReluGrad")                                                                   \
	X(FLATTEN_GRAD, "FlattenGrad")                                                             \
	X(DROPOUT_GRAD, "DropoutGrad")                                                             \
	X(SOFTMAX_CROSS_ENTROPY_GRAD, "SoftmaxCrossEntropyGrad")

enum op {
#define X(id, name) OP_##id,
	PRONY_OPERATORS(X)
#undef X
	OP_COUNT
};

/* Attributes; which members an operator uses is said by its row. Two spatial dimensions. */
struct attributes {
	int64_t kernel[2], strides[2], dilations[2];
	int64_t pads[4]; /* top, left, bottom, right (ONNX order: begins, then ends) */
	int64_t group;
	bool ceil_mode, count_include_pad;
	double alpha, beta;
	bool trans_a, trans_b;
	int64_t axis;
	double ratio;
};

enum attribute_kind { ATTRIBUTE_INT, ATTRIBUTE_INTS2, ATTRIBUTE_INTS4, ATTRIBUTE_REAL, ATTRIBUTE_BOOL };

/* One row yields JSON, ONNX and documentation of an attribute. */
struct attribute_row {
	const char *name; /* ONNX name; NULL ends the table */
	enum attribute_kind kind;
	size_t offset; /* in struct attributes */
	double otherwise; /* the value that ONNX assumes when it is absent */
};

struct operator_row {
	const char *name;
	int min_inputs, max_inputs, max_outputs;
	const struct attribute_row *attributes;
	bool is_gradient; /* does not appear in a forward graph */
	bool is_loss;     /* output 0 is the scalar objective; its backward row starts the pass */

	/* Sets shape and dtype of the outputs from those of the inputs; PRONY_BAD_INPUT names the node. */
	enum prony_status (*infer)(struct graph *graph, struct node *node, struct error *err);

	/* Multiply-accumulates of convolutions and matrix products, without bias; NULL = 0. */
	int64_t (*macs)(const struct graph *graph, const struct node *node);

	/*
	 * Appends the nodes that compute the gradients of the inputs that want one, given the
	 * gradients of the outputs; see networks/backward.h. NULL: not differentiable (gradient rows).
	 */
	enum prony_status (*backward)(struct graph *graph, const struct node *node, struct error *err);
};

/* The row of an operator. */
const struct operator_row *operator_row(enum op op);
/* OP_COUNT when there is none of that name. */
enum op operator_from_name(const char *name);
/* What ONNX assumes for every attribute of the operator. */
void operator_default_attributes(enum op op, struct attributes *out);

#endif
