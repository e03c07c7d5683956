/*
 * The one operator table: ONNX semantics (opset 17, https://onnx.ai/onnx/operators/) for the
 * forward operators; gradient operators are ours and are named after what they differentiate.
 */
#ifndef PRONY_GRAPH_OPERATORS_H
#define PRONY_GRAPH_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "graph/tensor.h"

struct graph;
struct node;
struct kernel_call;
struct samples;
struct samples_place;

/*
 * X(enumerator, name). Inputs and outputs, in order (layout NCHW, weights OIHW):
 *   Conv               x, w[, b] -> y
 *   MaxPool            x -> y
 *   AveragePool        x -> y         padding counts only with count_include_pad, what ceil_mode
 *                                     adds behind it never
 *   GlobalAveragePool  x -> y         N x C x 1 x 1
 *   Gemm               a, b[, c] -> y        alpha * A' * B' + beta * C, rank 2
 *   Softmax            x -> y
 *   functions of each element (PRONY_ELEMENTWISE: Relu, Tanh...)    x -> y
 *   BatchNormalization x, scale, bias, running mean, running var -> y, mean, var
 *       In training stages mean and var (divided by n, not n - 1) are the batch's and normalise x,
 *       and each running statistic, a state of this node alone, becomes
 *       momentum * running + (1 - momentum) * batch when the forward pass is over. In evaluation
 *       the running ones normalise x, and mean and var are copies of them. graph_state_statistic
 *       finds the output that a state follows.
 *   LayerNormalization x, scale, bias -> y       over the axes from `axis` on; scale and bias
 *                                     have their shape
 *   LRN                x -> y         across channels
 *   Flatten, Reshape, Transpose, Slice (one axis), Pad (constant), ReduceMean   x -> y
 *   Concat             x0, x1... -> y
 *   Dropout            x -> y, mask   training: y = x * mask; mask is 0 or 1/(1-ratio), F32
 *   Add, Sub, Mul, Div a, b -> y      with ONNX's broadcasting
 *   LSTM               x, w, r, b -> h
 *       x: N x T x I; w: 4H x I, r: 4H x H, b: 4H, gates in ONNX's order i, o, f, c; sigmoid and
 *       tanh; initial state 0; h: N x H, the last state. ONNX's second bias is zero and stays so.
 *   RNN                x, w, r, b -> h       h = relu(w x + r h + b), shapes without gates
 *   Gather             table, indices -> y   rows of the table (axis 0): y has the shape of the
 *       indices (I64 or I32, 0 to rows - 1), then that of a row
 *   SoftmaxCrossEntropyLoss  logits, labels -> loss    a scalar. Logits M x C, M labels of any
 * shape. The mean over the valid labels: a label of -1 is ignored, in the divisor, too.
 *   HalfSumOfSquares   logits -> loss        sum of x^2 / 2 over the whole batch, no mean
 * Gradients (dy = gradient of the first output):
 *   ConvGradInput  dy, w -> dx             ConvGradWeight  x, dy -> dw[, db]
 *   MaxPoolGrad    dy, x, y -> dx          ties: the first maximum in row-major order
 *   GemmGradInput  dy, b -> da             GemmGradWeight  a, dy -> db[, dc]
 *   ReluGrad       dy, y -> dx             zero where y == 0
 *   SoftmaxGrad    dy, y -> dx
 *   ElementwiseGrad  dy, x -> dx           of every function of each element but Relu, Neg and
 *                                          Identity; y for x where the slope is one of the result
 *   AveragePoolGrad, GlobalAveragePoolGrad, FlattenGrad, ReshapeGrad, SliceGrad, PadGrad,
 *   ReduceMeanGrad dy -> dx                dx has the shape of the forward node's input
 *   BatchNormalizationGrad  dy, x, scale, mean, var -> dx, dscale, dbias
 *                                          through the statistics of the batch
 *   LayerNormalizationGrad  dy, x, scale -> dx, dscale, dbias
 *   LRNGrad        dy, x, y -> dx
 *   DropoutGrad    dy, mask -> dx
 *   BroadcastGrad  dy -> dx                sums up what broadcasting input `axis` has repeated
 *   LSTMGrad, RNNGrad  dy, x, w, r, b -> dx, dw, dr, db; they run the forward pass again
 *   GatherGrad     dy, indices -> dtable   dense: rows of dy are added where they were taken from
 *   SoftmaxCrossEntropyGrad  logits, labels -> dlogits       (softmax - onehot) / valid labels,
 *                                          0 where the label is ignored
 *   HalfSumOfSquaresGrad     x -> dx       a copy
 * BatchNormalizationGrad, LayerNormalizationGrad, LSTMGrad and RNNGrad leave out (VALUE_NONE) what
 * nobody wants. The backward pass also uses forward operators: Add for sums, Slice for Concat,
 * Transpose, Mul, Div, Neg.
 */
/* Functions of each element by itself; one of these lines, a row in operators/elementwise.c. */
#define PRONY_ELEMENTWISE(X)                                                                       \
	X(RELU, "Relu")                                                                            \
	X(TANH, "Tanh")                                                                            \
	X(SIGMOID, "Sigmoid")                                                                      \
	X(HARD_SIGMOID, "HardSigmoid")                                                             \
	X(HARD_SWISH, "HardSwish")                                                                 \
	X(CLIP, "Clip")                                                                            \
	X(ELU, "Elu")                                                                              \
	X(LEAKY_RELU, "LeakyRelu")                                                                 \
	X(EXP, "Exp")                                                                              \
	X(SQRT, "Sqrt")                                                                            \
	X(GELU, "Gelu")                                                                            \
	X(NEG, "Neg")                                                                              \
	X(IDENTITY, "Identity")

#define PRONY_OPERATORS(X)                                                                         \
	PRONY_ELEMENTWISE(X)                                                                       \
	X(CONV, "Conv")                                                                            \
	X(MAX_POOL, "MaxPool")                                                                     \
	X(AVERAGE_POOL, "AveragePool")                                                             \
	X(GLOBAL_AVERAGE_POOL, "GlobalAveragePool")                                                \
	X(GEMM, "Gemm")                                                                            \
	X(SOFTMAX, "Softmax")                                                                      \
	X(BATCH_NORM, "BatchNormalization")                                                        \
	X(LAYER_NORM, "LayerNormalization")                                                        \
	X(LRN, "LRN")                                                                              \
	X(FLATTEN, "Flatten")                                                                      \
	X(RESHAPE, "Reshape")                                                                      \
	X(TRANSPOSE, "Transpose")                                                                  \
	X(CONCAT, "Concat")                                                                        \
	X(SLICE, "Slice")                                                                          \
	X(PAD, "Pad")                                                                              \
	X(REDUCE_MEAN, "ReduceMean")                                                               \
	X(DROPOUT, "Dropout")                                                                      \
	X(ADD, "Add")                                                                              \
	X(SUB, "Sub")                                                                              \
	X(MUL, "Mul")                                                                              \
	X(DIV, "Div")                                                                              \
	X(LSTM, "LSTM")                                                                            \
	X(RNN, "RNN")                                                                              \
	X(SOFTMAX_CROSS_ENTROPY, "SoftmaxCrossEntropyLoss")                                        \
	X(HALF_SQUARES, "HalfSumOfSquares")                                                        \
	X(GATHER, "Gather")                                                                        \
	X(CONV_GRAD_INPUT, "ConvGradInput")                                                        \
	X(CONV_GRAD_WEIGHT, "ConvGradWeight")                                                      \
	X(MAX_POOL_GRAD, "MaxPoolGrad")                                                            \
	X(AVERAGE_POOL_GRAD, "AveragePoolGrad")                                                    \
	X(GLOBAL_AVERAGE_POOL_GRAD, "GlobalAveragePoolGrad")                                       \
	X(GEMM_GRAD_INPUT, "GemmGradInput")                                                        \
	X(GEMM_GRAD_WEIGHT, "GemmGradWeight")                                                      \
	X(RELU_GRAD, "ReluGrad")                                                                   \
	X(ELEMENTWISE_GRAD, "ElementwiseGrad")                                                     \
	X(SOFTMAX_GRAD, "SoftmaxGrad")                                                             \
	X(BATCH_NORM_GRAD, "BatchNormalizationGrad")                                               \
	X(LAYER_NORM_GRAD, "LayerNormalizationGrad")                                               \
	X(LRN_GRAD, "LRNGrad")                                                                     \
	X(FLATTEN_GRAD, "FlattenGrad")                                                             \
	X(RESHAPE_GRAD, "ReshapeGrad")                                                             \
	X(SLICE_GRAD, "SliceGrad")                                                                 \
	X(PAD_GRAD, "PadGrad")                                                                     \
	X(REDUCE_MEAN_GRAD, "ReduceMeanGrad")                                                      \
	X(DROPOUT_GRAD, "DropoutGrad")                                                             \
	X(BROADCAST_GRAD, "BroadcastGrad")                                                         \
	X(LSTM_GRAD, "LSTMGrad")                                                                   \
	X(RNN_GRAD, "RNNGrad")                                                                     \
	X(SOFTMAX_CROSS_ENTROPY_GRAD, "SoftmaxCrossEntropyGrad")                                   \
	X(HALF_SQUARES_GRAD, "HalfSumOfSquaresGrad")                                               \
	X(GATHER_GRAD, "GatherGrad")

enum op {
#define X(id, name) OP_##id,
	PRONY_OPERATORS(X)
#undef X
		OP_COUNT
};

#define ATTRIBUTE_MAX_INTS (2 * TENSOR_MAX_RANK)

struct int_list {
	int64_t items[ATTRIBUTE_MAX_INTS];
	int count;
};

/*
 * Attributes; which members an operator uses is said by its row. Two spatial dimensions. Shape
 * inference writes an axis that counts from the end, or a slice's open end, as what it means.
 */
struct attributes {
	int64_t kernel[2], strides[2], dilations[2];
	int64_t pads[4]; /* top, left, bottom, right (ONNX order: begins, then ends) */
	int64_t group;
	bool ceil_mode, count_include_pad;
	double alpha, beta;
	bool trans_a, trans_b;
	int64_t axis;
	double ratio;
	double epsilon, momentum; /* BatchNormalization */
	double bias;		  /* LRN */
	int64_t size;		  /* LRN */
	double min, max;	  /* Clip */
	int64_t approximate;	  /* Gelu: 0 none (erf), 1 tanh */
	double value;		  /* Pad */
	int64_t start, end, step; /* Slice */
	struct int_list ints; /* Reshape: shape; Transpose: order; Pad: pads; ReduceMean: axes */
	bool keep_dims;	      /* ReduceMean */
};

enum attribute_kind {
	ATTRIBUTE_INT,
	ATTRIBUTE_INTS2,
	ATTRIBUTE_INTS4,
	ATTRIBUTE_INTS, /* a struct int_list */
	ATTRIBUTE_REAL,
	ATTRIBUTE_BOOL,
	ATTRIBUTE_WORD /* one of `words`; an int64_t counts them from 0 */
};

/* One row yields JSON, ONNX and documentation of an attribute. */
struct attribute_row {
	const char *name; /* ONNX name; NULL ends the table */
	enum attribute_kind kind;
	size_t offset;	  /* in struct attributes */
	double otherwise; /* the value that ONNX assumes when it is absent */
	int input;	  /* in ONNX it is a constant, this input; 0 = an attribute there, too */
	const char *const *words; /* of ATTRIBUTE_WORD; NULL ends them */
	int input_since; /* the opset with which the attribute became an input; 0: always one */
};

/* A step of a decomposition: a function of one element or two of x (step 0) and earlier steps. */
struct elementwise_step {
	enum op op;
	int inputs[2];	 /* the second ELEMENTWISE_CONSTANT: the number `constant` */
	double constant; /* or the operator's alpha */
	double beta;
};

#define ELEMENTWISE_CONSTANT (-1)
#define ELEMENTWISE_MAX_STEPS 10
#define ELEMENTWISE_MAX_KINKS 2

/*
 * An operator that makes each element of y from that of x, in float64: what everybody computes is
 * held to it. The gradient is dx = slope * dy.
 */
struct elementwise {
	double (*value)(const struct attributes *a, double x);
	/* dy/dx at x; with slope_of_output at y = value(x), which is then all that the gradient
	 * reads */
	double (*slope)(const struct attributes *a, double x);
	bool slope_of_output;
	bool exact; /* value and slope times dy are not rounded: x, dy, or a number given */
	/* Where the slope jumps, in ascending order; returns their number. NULL: nowhere. */
	int (*kinks)(const struct attributes *a, double at[ELEMENTWISE_MAX_KINKS]);
	/* The same in simpler operators, for whom lacks this one; returns the number of steps, the
	 * last of which is y. NULL or 0: there is none. */
	int (*decompose)(const struct attributes *a,
			 struct elementwise_step steps[ELEMENTWISE_MAX_STEPS]);
	/* Value or slope is not finite where x is not positive: whoever draws x keeps away from it.
	 */
	bool positive;
};

/* How the elements of output 0 follow those of input 0, for who lays channels last (layout.h). */
enum operator_layout {
	LAYOUT_OTHER,
	LAYOUT_SAME_PLACES, /* each of the element at the same place */
	LAYOUT_RESHAPES,    /* the same elements in the same order */
	LAYOUT_MULTIPLIES,  /* a matrix product with input 1 */
	LAYOUT_CONVOLVES,   /* a convolution with input 1 */
};

/* What becomes of a node in an ONNX file. */
enum onnx_export {
	ONNX_EXPORT_NODE,      /* one of the same name and attributes */
	ONNX_EXPORT_NOTHING,   /* output 0 is input 0 in evaluation */
	ONNX_EXPORT_RECURRENT, /* time first, gates of one direction */
};

#define TARGET_AXIS (-1)

/* All that is known of an operator; graph/operators/ has a file for each. */
struct operator_row {
	int min_inputs, max_inputs, max_outputs;
	const struct attribute_row *attributes;
	bool is_gradient;  /* does not appear in a forward graph */
	int first_target;  /* gradient rows: output i belongs to the forward node's input
			      first_target + i; TARGET_AXIS: to the one that `axis` says */
	bool leaves_out;   /* gradient rows: any output that nobody wants is VALUE_NONE */
	bool is_loss;	   /* output 0 is the scalar objective; its backward row starts the pass */
	bool sums_batch;   /* loss rows: the sum over the samples, not their mean */
	bool is_random;	   /* what it gives in training is drawn anew in each step */
	bool is_reduction; /* each result is made of many elements of one channel: pools, means */
	/* Inputs from this one on are states that follow the outputs from 1 on: statistics of the
	 * batch, on which every result depends in training. 0: there are none. */
	int statistics;

	/* Functions of each element; NULL: something else. */
	const struct elementwise *elementwise;
	/* Functions of two elements, broadcast to each other; NULL: something else. */
	double (*broadcast)(double a, double b);

	/* Sets shape and dtype of the outputs by the inputs; PRONY_BAD_INPUT names the node. */
	enum prony_status (*infer)(struct graph *graph, struct node *node, struct error *err);

	/* Multiply-accumulates of convolutions and matrix products, without bias; NULL = 0. */
	int64_t (*macs)(const struct graph *graph, const struct node *node);

	/*
	 * The gradient of input 0 is one node of this operator, which reads dy and what
	 * `gradient_reads` says: x is input 0, y output 0. Or `backward` appends the nodes for all
	 * inputs that want a gradient (backward_internal.h). With neither it has no gradient.
	 */
	enum op gradient;
	const char *gradient_reads;
	enum prony_status (*backward)(struct graph *graph, const struct node *node,
				      struct error *err);

	/* Computes the outputs in float64: everybody is held to it. */
	void (*compute)(const struct kernel_call *call);
	/* How many terms are added up for an element of an output; 1 for what is computed of one
	 * element of each input, 0 for what is only moved, or rounds by itself (kernel_watch).
	 * NULL: macs for each element, without macs 1. */
	int64_t (*terms)(const struct graph *graph, const struct node *node, int output);
	/* Its kernel decides by comparing elements of the input before this one; 0: of none. */
	int compares;

	/*
	 * Where the samples of the batch lie in output 0 (samples.h), given where they lie in input
	 * `samples_from`, of which functions of two elements may have none. NULL, or nowhere: a
	 * result depends on several samples, or it is not known to be without them.
	 */
	int samples_from;
	struct samples_place (*samples)(const struct samples *samples, const struct node *node,
					const struct samples_place *x);
	/* Changes what attributes say of the batch, whose samples lie there in input 0 and output
	 * 0; NULL: they say nothing of it. */
	void (*rebatch)(const struct samples *samples, const struct samples_place *x,
			const struct samples_place *y, int64_t batch, struct attributes *a);

	enum operator_layout layout;
	/* Bytes that training keeps inside a node: what no one can do without, or all. NULL: 0. */
	int64_t (*kept_bytes)(const struct graph *graph, const struct node *node, bool all);
	bool keeps_less; /* gradient rows: positions or bits can stand for what it reads */

	/*
	 * In ONNX files. `onnx_inputs`: what each input is, a letter each: x is computed, p a
	 * trained weight, e either; then nodes are translated by name, attributes by
	 * their rows. NULL: onnx/ has a function for it, or no file holds it.
	 */
	const char *onnx_inputs;
	enum onnx_export onnx_export;
	const char *training_outputs; /* what a file leaves out of them: "mask" */
	int opset;		      /* the first with the operator, where that is above 17 */

	/* In pictures: it joins the box of what computes its input; its name there, if shorter. */
	bool joins_box;
	const char *short_name;
};

/* ONNX's name, or ours of a gradient. */
const char *operator_name(enum op op);
/* The row of an operator. */
const struct operator_row *operator_row(enum op op);
/* How many terms are added up for an element of an output (struct operator_row, `terms`). */
int64_t operator_terms(const struct graph *graph, const struct node *node, int output);
/* OP_COUNT when there is none of that name. */
enum op operator_from_name(const char *name);
/* What ONNX assumes for every attribute of the operator. */
void operator_default_attributes(enum op op, struct attributes *out);

#endif
