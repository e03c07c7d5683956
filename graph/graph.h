/*
 * The graph IR: a list of operators over values, shapes static, batch size fixed when it is built.
 * It is the contract between prony and every framework.
 */
#ifndef PRONY_GRAPH_GRAPH_H
#define PRONY_GRAPH_GRAPH_H

#include "base/arena.h"
#include "graph/operators.h"
#include "graph/tensor.h"

enum value_kind {
	VALUE_INPUT,	  /* a tensor of the batch; its first dimension is the batch's size */
	VALUE_LABEL,	  /* what the loss compares with: I64, first dimension the batch's size */
	VALUE_PARAMETER,  /* trained */
	VALUE_STATE,	  /* not trained but kept: running mean and variance */
	VALUE_ACTIVATION, /* computed by a forward node */
	VALUE_GRADIENT	  /* computed by a backward node */
};

enum weight_fill {
	FILL_ZERO,
	FILL_ONE,
	FILL_HE_NORMAL,
	FILL_HE_UNIFORM,
	FILL_IDENTITY,
	FILL_NORMAL,	      /* deviation 1 */
	FILL_RUNNING_MEAN,    /* normal, deviation 0.1 */
	FILL_RUNNING_VARIANCE /* uniform, 0.8 to 1.25 */
};

#define VALUE_NONE (-1)

struct value {
	const char *name; /* unique in the graph; parameters "conv1.weight" */
	enum value_kind kind;
	enum dtype dtype;
	struct shape shape;
	int producer; /* node index, or -1 */
	int gradient; /* value that holds d loss / d this after graph_add_backward, or VALUE_NONE */
	enum weight_fill fill; /* parameters and state */
	int64_t fan_in;	       /* for the He fills */
	double fill_scale;     /* the filled numbers are multiplied by it */
};

#define NODE_MAX_INPUTS 64 /* of a Concat */
#define NODE_MAX_OUTPUTS 4

struct node {
	enum op op;
	const char *name; /* unique; "conv1" */
	int inputs[NODE_MAX_INPUTS],
		outputs[NODE_MAX_OUTPUTS]; /* value indices; VALUE_NONE = left out */
	int input_count, output_count;
	struct attributes attributes;
	int differentiates; /* gradient nodes: index of the forward node, else -1 */
};

struct graph {
	struct arena arena; /* owns names, values, nodes */
	const char *name;
	struct value *values;
	struct node *nodes; /* in an order in which they can run; forward nodes first */
	int value_count, value_capacity, node_count, node_capacity;
	int logits, loss;  /* value indices; loss VALUE_NONE where there is none */
	int forward_count; /* nodes up to and including the loss; what follows is backward */
};

void graph_init(struct graph *graph, const char *name);
void graph_release(struct graph *graph);

/* A copy of the forward nodes and of all values that they know; graph_release it. */
void graph_copy_forward(const struct graph *graph, struct graph *out);

/* Index of the value of that name, or VALUE_NONE. Linear in the number of values. */
int graph_find_value(const struct graph *graph, const char *name);

/* Indices of the inputs, and of the labels, in the order of the values. Each returns their number;
 * out may be NULL. */
int graph_inputs(const struct graph *graph, int *out, int capacity);
int graph_labels(const struct graph *graph, int *out, int capacity);

/* Index of input i, or of label i, or VALUE_NONE: there are not so many. */
int graph_input(const struct graph *graph, int i);
int graph_label(const struct graph *graph, int i);

/* How many inputs of forward nodes a value is. */
int graph_forward_readers(const struct graph *graph, int value);

/* Building blocks. They record the first error inside the builder and then do nothing, so that a
 * network reads as a list of layers; graph_finish reports it. */
struct builder {
	struct graph *graph;
	struct error error;
};

int build_input(struct builder *b, const char *name, enum dtype dtype, int64_t batch, int rank,
		const int64_t *dims_without_batch);
int build_parameter(struct builder *b, const char *name, int rank, const int64_t *dims,
		    enum weight_fill fill, int64_t fan_in);
/* Appends a node, creates its outputs ("NAME" or "NAME.1"...), infers shapes; returns output 0. */
int build_node(struct builder *b, enum op op, const char *name, const int *inputs, int input_count,
	       const struct attributes *attributes);
/* Not trained: a constant, or a running statistic of batch normalisation. */
int build_state(struct builder *b, const char *name, int rank, const int64_t *dims,
		enum weight_fill fill);

/* A window that slides over height and width. */
struct window {
	int64_t kernel[2];		  /* height, width */
	int64_t strides[2], dilations[2]; /* 0 stands for 1 */
	int64_t pads[4];		  /* top, left, bottom, right */
	bool ceil_mode;			  /* pooling only: rounds the output's size up */
};

/* The same on both axes. */
struct window window_square(int64_t kernel, int64_t stride, int64_t pad);

/*
 * Layers, graph/layers.c. Parameters NAME.weight and NAME.bias are made with He-normal and zero
 * fill. Each returns the layer's output.
 */
int build_conv(struct builder *b, const char *name, int x, int64_t channels, int64_t kernel,
	       int64_t stride, int64_t pad);
/* Any window; `group` divides both channels (group = input channels: depthwise). */
int build_conv_window(struct builder *b, const char *name, int x, int64_t channels,
		      const struct window *window, int64_t group, bool bias);
int build_max_pool(struct builder *b, const char *name, int x, int64_t kernel, int64_t stride);
int build_max_pool_window(struct builder *b, const char *name, int x, const struct window *window);
int build_average_pool(struct builder *b, const char *name, int x, const struct window *window,
		       bool count_include_pad);
int build_global_average_pool(struct builder *b, const char *name, int x); /* N x C x 1 x 1 */
/*
 * Parameters NAME.scale (filled with ones) and NAME.bias (zeros), states NAME.mean and NAME.var.
 * `momentum` is ONNX's: running = momentum * running + (1 - momentum) * batch; PyTorch's momentum
 * is one minus it.
 */
int build_batch_norm(struct builder *b, const char *name, int x, double epsilon, double momentum);
/* With `scale` for ones: small in the last layer of a residual branch, so that sums do not grow. */
int build_batch_norm_scaled(struct builder *b, const char *name, int x, double epsilon,
			    double momentum, double scale);
/* x / (bias + alpha / size * sum of squares over `size` channels around)^beta, as in ONNX. */
int build_lrn(struct builder *b, const char *name, int x, int64_t size, double alpha, double beta,
	      double bias);
int build_relu(struct builder *b, const char *name, int x);
/* Elementwise, with ONNX's (NumPy's) broadcasting. */
int build_add(struct builder *b, const char *name, int a, int c);
/* At most NODE_MAX_INPUTS values. Negative axes count from the end, here and below. */
int build_concat(struct builder *b, const char *name, const int *values, int count, int64_t axis);
/* Elements start, start + step... before end, on one axis; negative ends count from the end. */
int build_slice(struct builder *b, const char *name, int x, int64_t axis, int64_t start,
		int64_t end, int64_t step);
int build_flatten(struct builder *b, const char *name, int x);
/* Constant padding: `pads` holds the begins of all axes of x, then the ends; none negative. */
int build_pad(struct builder *b, const char *name, int x, const int64_t *pads, double value);
int build_dropout(struct builder *b, const char *name, int x, double ratio);
int build_linear(struct builder *b, const char *name, int x, int64_t features);
/* x (batch x time x features) -> the last state (batch x hidden). NAME.weight, .recurrent, .bias.
 */
int build_lstm(struct builder *b, const char *name, int x, int64_t hidden);
/* h = relu(W x + R h + b), R the identity at first, W normal of that deviation (Le 2015). */
int build_irnn(struct builder *b, const char *name, int x, int64_t hidden, double deviation);
/* Rows `indices` (I64 or I32, any shape) of a parameter NAME.weight, rows x width, filled normally.
 */
int build_embedding(struct builder *b, const char *name, int indices, int64_t rows, int64_t width);
/* Declares the logits and appends SoftmaxCrossEntropyLoss and its labels: a class a sample. */
enum prony_status build_finish(struct builder *b, int logits, struct error *err);
/* With labels of the shape batch x dims, a label for each row of the logits. */
enum prony_status build_finish_labels(struct builder *b, int logits, int rank, const int64_t *dims,
				      struct error *err);
/* With half the sum of squares of the "logits" as the objective; labels are declared but unused. */
enum prony_status build_finish_half_squares(struct builder *b, int logits, struct error *err);

/*
 * Appends the backward pass: for each forward node in reverse, its operator's backward row. After
 * it every parameter's `gradient` is set. Gradients of values with several users are summed by Add.
 * No gradient of the network's inputs is computed. Several values may share one gradient value
 * (both terms of a forward Add): nothing may overwrite it in place while it has readers. Defined in
 * graph/backward.c; on error the graph is as it was.
 */
enum prony_status graph_add_backward(struct graph *graph, struct error *err);

/* Checks every invariant (indices, order, names, shapes agree with infer); names the node. */
enum prony_status graph_check(const struct graph *graph, struct error *err);

int64_t graph_parameter_count(const struct graph *graph); /* elements of trained parameters */
int64_t graph_macs(const struct graph *graph);		  /* of the forward nodes, whole batch */
int64_t graph_classes(const struct graph *graph);	  /* last dimension of the logits */
bool graph_has_dropout(const struct graph *graph);
/*
 * For a state that is a running statistic: the value that holds the batch's, with the momentum of
 * its BatchNormalization in *momentum. When the forward pass of a training stage (forward-backward,
 * train) is over, state = momentum * state + (1 - momentum) * statistic. VALUE_NONE for constants.
 */
int graph_state_statistic(const struct graph *graph, int state, double *momentum);
int64_t graph_batch(const struct graph *graph);

/*
 * Estimated bytes that running the graph takes in fp32: parameters, gradients and optimiser state
 * of the stage, activations that live at once (all of them when training).
 */
int64_t graph_memory_estimate(const struct graph *graph, bool training);

/*
 * Bytes that running the graph takes at the least, whoever does it, but for the batch itself. With
 * its backward pass: parameters, gradients, `optimiser_copies` numbers beside each parameter, and
 * the activations that the backward pass reads (implementations that compute some of them again
 * take less; none of ours does). Without: parameters, and input and output of the layer where they
 * are largest. Activations have `element_bytes` a number; what is trained has 4.
 */
int64_t graph_memory_least(const struct graph *graph, int optimiser_copies, int64_t element_bytes);

/* The parameters and states in graph order, filled from the seed (He et al. 2015, arXiv
 * 1502.01852), F32, in `arena`. The stream depends on seed and name only, not on batch or order. */
enum prony_status graph_initial_weights(const struct graph *graph, uint64_t seed,
					struct arena *arena, struct tensor_set *out,
					struct error *err);

/* Indices of parameters (not state) in graph order; returns their number; out may be NULL. */
int graph_parameters(const struct graph *graph, int *out, int capacity);

/* SHA-256 over the canonical JSON of the forward graph. 65 bytes. */
enum prony_status graph_digest(const struct graph *graph, char *hex, struct error *err);

#endif
