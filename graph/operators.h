/* The table of operators. Forward operators have ONNX semantics (opset 17,
 * https://onnx.ai/onnx/operators/); gradient operators are prony's own and are named after the
 * operator that they differentiate. */
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
struct samples_axis;

/*
 * X(enumerator, name). Inputs and outputs, in order (layout NCHW, weights OIHW):
 *   Conv               x, w[, b] -> y
 *   ConvTranspose      x, w[, b] -> y        w: I x O/group x H x W; the gradient of a Conv
 *   MaxPool            x -> y
 *   AveragePool        x -> y         padding counts only with count_include_pad; elements that
 *                                     ceil_mode adds after it never count
 *   GlobalAveragePool  x -> y         N x C x 1 x 1
 *   Gemm               a, b[, c] -> y        alpha * A' * B' + beta * C, rank 2
 *   MatMul             a, b -> y      ranks 2 to 4; the leading dimensions are broadcast
 *   Softmax            x -> y
 *   functions of each element (PRONY_ELEMENTWISE: Relu, Tanh...)    x -> y
 *   BatchNormalization x, scale, bias, running mean, running var -> y, mean, var
 *       In training stages, mean and var (divided by n, not n - 1) are those of the batch and
 *       normalise x. At the end of the forward pass, each running statistic, a state that only this
 *       node reads, becomes momentum * running + (1 - momentum) * batch. In evaluation, the running
 *       statistics normalise x, and mean and var are copies of them. graph_state_statistic finds
 *       the output that a state follows.
 *   LayerNormalization x, scale, bias -> y       over the axes from `axis` on; scale and bias
 *                                     have the shape of these axes
 *   RMSNormalization   x, scale -> y  x / sqrt(mean x^2 + epsilon) * scale, over the same axes
 *   GroupNormalization, InstanceNormalization  x, scale, bias -> y     over the channels of a
 *                                     group, or each channel; scale and bias are by channel
 *   LRN                x -> y         across channels
 *   Flatten, Reshape, Transpose, Slice (one axis), Pad (constant), ReduceMean   x -> y
 *   Expand             x -> y         broadcast to `shape`
 *   Resize             x -> y         height and width times whole `scales`
 *   Concat             x0, x1... -> y
 *   Dropout            x -> y, mask   training: y = x * mask; mask is 0 or 1/(1-ratio), F32
 *   Add, Sub, Mul, Div a, b -> y      with ONNX's broadcasting
 *   LSTM               x, w, r, b -> h
 *       x: N x T x I; w: 4H x I, r: 4H x H, b: 4H, gates in ONNX's order i, o, f, c; sigmoid and
 *       tanh; initial state 0; h: N x H, the last state, or with `sequence` N x T x H, the state
 *       of each time. With direction reverse, the last time comes first. ONNX's two biases are one.
 *   RNN                x, w, r, b -> h       h = activation(w x + r h + b), shapes as LSTM with
 *                                            one gate
 *   GRU                x, w, r, b -> h       gates z, r, h; with linear_before_reset, b has a
 *       fourth block: the recurrent bias of h, which the gate r multiplies
 *   Gather             table, indices -> y   rows of the table (axis 0): the shape of y is that
 *       of the indices (I64 or I32, 0 to rows - 1) followed by that of a row
 *   TensorScatter      past, update[, index] -> present    past, a state, with `update` written
 *       from row `index` of its sample on (I64, one for each sample; row 0 if there is none). At
 *       the end of every forward pass the state becomes `present`. Nothing else reads the state.
 *   SoftmaxCrossEntropyLoss  logits, labels -> loss    a scalar. Logits M x C, M labels of any
 *       shape. The mean over the valid labels: a label of -1 does not count, nor in the divisor.
 *   HalfSumOfSquares   logits -> loss        sum of x^2 / 2 over the whole batch, no mean
 * Gradients (dy = gradient of the first output):
 *   ConvGradInput  dy, w -> dx             ConvGradWeight  x, dy -> dw[, db]
 *   ConvTransposeGradInput  dy, w -> dx    ConvTransposeGradWeight  x, dy -> dw[, db]
 *   MaxPoolGrad    dy, x, y -> dx          ties: the first maximum in row-major order
 *   GemmGradInput  dy, b -> da             GemmGradWeight  a, dy -> db[, dc]
 *   ReluGrad       dy, y -> dx             zero where y == 0
 *   SoftmaxGrad    dy, y -> dx
 *   ElementwiseGrad  dy, x -> dx           for functions of each element except Relu, Neg and
 *                                          Identity; reads y, not x, if the slope is given by y
 *   ResizeGrad, AveragePoolGrad, GlobalAveragePoolGrad, FlattenGrad, ReshapeGrad, SliceGrad,
 * PadGrad, ReduceMeanGrad dy -> dx                dx has the shape of the forward node's input
 *   BatchNormalizationGrad  dy, x, scale, mean, var -> dx, dscale, dbias
 *                                          through the statistics of the batch
 *   LayerNormalizationGrad  dy, x, scale -> dx, dscale, dbias
 *   RMSNormalizationGrad    dy, x, scale -> dx, dscale
 *   GroupNormalizationGrad, InstanceNormalizationGrad  dy, x, scale -> dx, dscale, dbias
 *   LRNGrad        dy, x, y -> dx
 *   DropoutGrad    dy, mask -> dx
 *   BroadcastGrad  dy -> dx                sums over the repetitions of input `axis`; for Expand
 *                                          and MatMul too
 *   LSTMGrad, RNNGrad, GRUGrad  dy, x, w, r, b -> dx, dw, dr, db; they repeat the forward pass
 *   GatherGrad     dy, indices -> dtable   dense: adds each row of dy to the row it came from
 *   SoftmaxCrossEntropyGrad  logits, labels -> dlogits       (softmax - onehot) / valid labels,
 *                                          0 where the label is ignored
 *   HalfSumOfSquaresGrad     x -> dx       a copy
 * Gradients of normalisations and recurrent layers leave out (VALUE_NONE) gradients that are not
 * needed. The backward pass also uses forward operators:
 * Add for sums, Slice for Concat, Transpose, MatMul, Mul, Div, Neg.
 */
/* Functions of each element. Each has one line here and a row in operators/elementwise.c. */
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
	X(LOG, "Log")                                                                              \
	X(SQRT, "Sqrt")                                                                            \
	X(GELU, "Gelu")                                                                            \
	X(ERF, "Erf")                                                                              \
	X(POW, "Pow")                                                                              \
	X(SWISH, "Swish")                                                                          \
	X(NEG, "Neg")                                                                              \
	X(IDENTITY, "Identity")

#define PRONY_OPERATORS(X)                                                                         \
	PRONY_ELEMENTWISE(X)                                                                       \
	X(CONV, "Conv")                                                                            \
	X(CONV_TRANSPOSE, "ConvTranspose")                                                         \
	X(MAX_POOL, "MaxPool")                                                                     \
	X(AVERAGE_POOL, "AveragePool")                                                             \
	X(GLOBAL_AVERAGE_POOL, "GlobalAveragePool")                                                \
	X(GEMM, "Gemm")                                                                            \
	X(MATMUL, "MatMul")                                                                        \
	X(SOFTMAX, "Softmax")                                                                      \
	X(BATCH_NORM, "BatchNormalization")                                                        \
	X(LAYER_NORM, "LayerNormalization")                                                        \
	X(RMS_NORM, "RMSNormalization")                                                            \
	X(GROUP_NORM, "GroupNormalization")                                                        \
	X(INSTANCE_NORM, "InstanceNormalization")                                                  \
	X(LRN, "LRN")                                                                              \
	X(FLATTEN, "Flatten")                                                                      \
	X(RESHAPE, "Reshape")                                                                      \
	X(TRANSPOSE, "Transpose")                                                                  \
	X(EXPAND, "Expand")                                                                        \
	X(CONCAT, "Concat")                                                                        \
	X(SLICE, "Slice")                                                                          \
	X(RESIZE, "Resize")                                                                        \
	X(PAD, "Pad")                                                                              \
	X(REDUCE_MEAN, "ReduceMean")                                                               \
	X(DROPOUT, "Dropout")                                                                      \
	X(ADD, "Add")                                                                              \
	X(SUB, "Sub")                                                                              \
	X(MUL, "Mul")                                                                              \
	X(DIV, "Div")                                                                              \
	X(LSTM, "LSTM")                                                                            \
	X(RNN, "RNN")                                                                              \
	X(GRU, "GRU")                                                                              \
	X(SOFTMAX_CROSS_ENTROPY, "SoftmaxCrossEntropyLoss")                                        \
	X(HALF_SQUARES, "HalfSumOfSquares")                                                        \
	X(GATHER, "Gather")                                                                        \
	X(TENSOR_SCATTER, "TensorScatter")                                                         \
	X(CONV_GRAD_INPUT, "ConvGradInput")                                                        \
	X(CONV_GRAD_WEIGHT, "ConvGradWeight")                                                      \
	X(CONV_TRANSPOSE_GRAD_INPUT, "ConvTransposeGradInput")                                     \
	X(CONV_TRANSPOSE_GRAD_WEIGHT, "ConvTransposeGradWeight")                                   \
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
	X(RMS_NORM_GRAD, "RMSNormalizationGrad")                                                   \
	X(GROUP_NORM_GRAD, "GroupNormalizationGrad")                                               \
	X(INSTANCE_NORM_GRAD, "InstanceNormalizationGrad")                                         \
	X(LRN_GRAD, "LRNGrad")                                                                     \
	X(FLATTEN_GRAD, "FlattenGrad")                                                             \
	X(RESHAPE_GRAD, "ReshapeGrad")                                                             \
	X(SLICE_GRAD, "SliceGrad")                                                                 \
	X(RESIZE_GRAD, "ResizeGrad")                                                               \
	X(PAD_GRAD, "PadGrad")                                                                     \
	X(REDUCE_MEAN_GRAD, "ReduceMeanGrad")                                                      \
	X(DROPOUT_GRAD, "DropoutGrad")                                                             \
	X(BROADCAST_GRAD, "BroadcastGrad")                                                         \
	X(LSTM_GRAD, "LSTMGrad")                                                                   \
	X(RNN_GRAD, "RNNGrad")                                                                     \
	X(GRU_GRAD, "GRUGrad")                                                                     \
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

/* The attributes of a node; the operator's row tells which members it uses. There are two spatial
 * dimensions. Shape inference replaces an axis that counts from the end, or a slice's open end, by
 * its actual value. */
struct attributes {
	int64_t kernel[2], strides[2], dilations[2];
	int64_t pads[4]; /* top, left, bottom, right (ONNX order: begins, then ends) */
	int64_t group;
	int64_t output_padding[2]; /* ConvTranspose */
	int64_t mode, coordinates; /* Resize; its scales are `strides` */
	bool ceil_mode, count_include_pad;
	double alpha, beta;
	bool trans_a, trans_b;
	int64_t axis;
	double ratio;
	double epsilon, momentum; /* BatchNormalization */
	/* BatchNormalization: equal parts of the batch that are normalised apart, each by its own
	 * statistics (graph_set_ranks); 0 is 1. No attribute of ONNX or of case.json. */
	int64_t ranks;
	double bias;		  /* LRN */
	int64_t size;		  /* LRN */
	double min, max;	  /* Clip */
	double exponent;	  /* Pow */
	int64_t approximate;	  /* Gelu: 0 none (erf), 1 tanh */
	double value;		  /* Pad */
	int64_t start, end, step; /* Slice */
	struct int_list ints; /* Reshape: shape; Transpose: order; Pad: pads; ReduceMean: axes */
	bool keep_dims;	      /* ReduceMean */
	bool sequence;	      /* LSTM, GRU, RNN: every state is an output, not only the last one */
	int64_t reverse;      /* LSTM, GRU, RNN: 1 reads the last time first */
	int64_t activation;   /* RNN: 0 Relu, 1 Tanh */
	bool linear_before_reset; /* GRU */
};

enum attribute_kind {
	ATTRIBUTE_INT,
	ATTRIBUTE_INTS2,
	ATTRIBUTE_INTS4,
	ATTRIBUTE_INTS, /* a struct int_list */
	ATTRIBUTE_REAL,
	ATTRIBUTE_BOOL,
	ATTRIBUTE_WORD /* one of `words`; an int64_t with its index */
};

/* JSON, ONNX and documentation of an attribute come from its row. */
struct attribute_row {
	const char *name; /* ONNX name; NULL ends the table */
	enum attribute_kind kind;
	size_t offset;	  /* in struct attributes */
	double otherwise; /* the value that ONNX assumes if it is absent */
	int input; /* ONNX: the index of the constant input that holds it; 0 = an attribute */
	const char *const *words; /* for ATTRIBUTE_WORD; NULL ends them */
	int input_since;	  /* the first opset in which it is an input; 0: in every opset */
};

/* A step of a decomposition: a function of one or two elements, of x (step 0) or earlier steps. */
struct elementwise_step {
	enum op op;
	int inputs[2];	 /* if the second is ELEMENTWISE_CONSTANT: the number `constant` */
	double constant; /* or the operator's alpha */
	double beta;
};

#define ELEMENTWISE_CONSTANT (-1)
#define ELEMENTWISE_MAX_STEPS 10
#define ELEMENTWISE_MAX_KINKS 2

/* An operator that computes each element of y from the same element of x, in float64. This is the
 * reference for all frameworks. The gradient is dx = slope * dy. */
struct elementwise {
	double (*value)(const struct attributes *a, double x);
	/* dy/dx at x. With slope_of_output: at y = value(x); then the gradient reads y only. */
	double (*slope)(const struct attributes *a, double x);
	bool slope_of_output;
	bool exact; /* value and slope times dy need no rounding: x, dy or a given number */
	/* Writes where the slope jumps, in ascending order; returns how many there are. NULL:
	 * nowhere. */
	int (*kinks)(const struct attributes *a, double at[ELEMENTWISE_MAX_KINKS]);
	/* The same function in simpler operators, for frameworks that lack this one. Returns the
	 * number of steps; the last step is y. NULL or 0: there is none. */
	int (*decompose)(const struct attributes *a,
			 struct elementwise_step steps[ELEMENTWISE_MAX_STEPS]);
	/* Value or slope is not finite if x is not positive; random x must avoid these values. */
	bool positive;
};

/* How the elements of output 0 relate to those of input 0, for channels-last layouts (layout.h). */
enum operator_layout {
	LAYOUT_OTHER,
	LAYOUT_SAME_PLACES, /* each depends on the element at the same place */
	LAYOUT_RESHAPES,    /* the same elements in the same order */
	LAYOUT_MULTIPLIES,  /* a matrix product with input 1 */
	LAYOUT_CONVOLVES,   /* a convolution with input 1, transposed or not */
};

/* How a node is written to an ONNX file. */
enum onnx_export {
	ONNX_EXPORT_NODE,      /* as a node of the same name and attributes */
	ONNX_EXPORT_NOTHING,   /* not at all: in evaluation, output 0 is input 0 */
	ONNX_EXPORT_RESIZE,    /* with the scales of all four axes as an input */
	ONNX_EXPORT_RECURRENT, /* with time first, and the gates of one direction */
};

#define TARGET_AXIS (-1)
#define SAMPLES_FROM_ANY (-1)

/* Everything that prony knows about an operator; graph/operators/ has a file for each. */
struct operator_row {
	int min_inputs, max_inputs, max_outputs;
	const struct attribute_row *attributes;
	bool is_gradient;  /* does not appear in a forward graph */
	int first_target;  /* gradient rows: output i belongs to the forward node's input
			      first_target + i; TARGET_AXIS: to the input that `axis` names */
	bool leaves_out;   /* gradient rows: outputs that are not needed are VALUE_NONE */
	bool is_loss;	   /* output 0 is the scalar objective; its backward row starts the pass */
	bool sums_batch;   /* loss rows: sums over the samples, no mean */
	bool is_random;	   /* its output in training is drawn again in each step */
	bool is_reduction; /* each result depends on many elements of one channel: pools, means */
	/* The index of the first running statistic among the inputs. These states follow the
	 * outputs from 1 on, the statistics of the batch, on which every result depends in
	 * training. 0: there are none. */
	int statistics;
	bool replaces_state; /* input 0 is a state; output 0 replaces it after every forward pass */

	/* Functions of each element; NULL for other operators. */
	const struct elementwise *elementwise;
	/* Functions of two elements with broadcasting; NULL for other operators. */
	double (*broadcast)(double a, double b);

	/* Sets shape and dtype of the outputs from the inputs; PRONY_BAD_INPUT names the node. */
	enum prony_status (*infer)(struct graph *graph, struct node *node, struct error *err);

	/* Multiply-accumulates of convolutions and matrix products, without bias; NULL = 0. */
	int64_t (*macs)(const struct graph *graph, const struct node *node);

	/* Either: the gradient of input 0 is one node of operator `gradient`, which reads dy and
	 * the values in `gradient_reads` (x is input 0, y output 0). Or: `backward` appends the
	 * nodes for all inputs that want a gradient (backward_internal.h). With neither, the
	 * operator has no gradient. */
	enum op gradient;
	const char *gradient_reads;
	enum prony_status (*backward)(struct graph *graph, const struct node *node,
				      struct error *err);

	/* Computes the outputs in float64: the reference for all frameworks. */
	void (*compute)(const struct kernel_call *call);
	/* The number of terms that are summed for an element of an output: 1 if it is computed from
	 * one element of each input; 0 if it is only moved, or if the kernel adds the rounding
	 * itself (kernel_hooks). NULL: the macs per element, or 1 if there are no macs. */
	int64_t (*terms)(const struct graph *graph, const struct node *node, int output);
	/* The kernel decides by comparing elements of the inputs before this one; 0: it compares
	 * none. */
	int compares;

	/* Returns where the samples of the batch lie in output 0 (samples.h), given where they lie
	 * in input `samples_from` (SAMPLES_FROM_ANY: the function looks at the inputs, of which
	 * each may have none). NULL, or nowhere: a result depends on several samples, or is not
	 * known to depend on one only. */
	int samples_from;
	struct samples_axis (*samples)(const struct samples *samples, const struct node *node,
				       const struct samples_axis *x);
	/* Changes attributes that depend on the batch; its samples lie at `x` in input 0 and at `y`
	 * in output 0. NULL: no attribute depends on it. */
	void (*rebatch)(const struct samples *samples, const struct samples_axis *x,
			const struct samples_axis *y, int64_t batch, struct attributes *a);

	enum operator_layout layout;
	/* Bytes that training keeps inside a node: only those that every implementation needs, or
	 * `all`. NULL: 0. */
	int64_t (*kept_bytes)(const struct graph *graph, const struct node *node, bool all);
	bool keeps_less; /* gradient rows: positions or bits can replace the values that it reads */

	/* For ONNX files. `onnx_inputs` has one letter for each input: x is computed, p is a
	 * trained weight, e is either. Then nodes are translated by name, and attributes by their
	 * rows. NULL: onnx/ has a function for the operator, or no file contains it. */
	const char *onnx_inputs;
	enum onnx_export onnx_export;
	const char *training_outputs; /* outputs that a file leaves out: "mask" */
	int opset;		      /* the first opset with the operator, if above 17 */

	/* For pictures: joins_box draws it in the box of the node that computes its input;
	 * short_name is a shorter name, if there is one. */
	bool joins_box;
	const char *short_name;
};

/* ONNX's name; for gradients, prony's. */
const char *operator_name(enum op op);
/* The row of an operator. */
const struct operator_row *operator_row(enum op op);
/*
 * The number of terms that are summed for an element of an output (`terms` of struct operator_row).
 */
int64_t operator_terms(const struct graph *graph, const struct node *node, int output);
/* The operator of that name, or OP_COUNT. */
enum op operator_from_name(const char *name);
/* Sets every attribute of the operator to the value that ONNX assumes. */
void operator_default_attributes(enum op op, struct attributes *out);

#endif
