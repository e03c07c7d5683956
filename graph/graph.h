/* The graph IR: a list of operators over values, with static shapes and a batch size that is fixed
 * when the graph is built. It is the contract between prony and every framework. */
#ifndef PRONY_GRAPH_GRAPH_H
#define PRONY_GRAPH_GRAPH_H

#include "base/arena.h"
#include "graph/operators.h"
#include "graph/tensor.h"

enum value_kind {
	VALUE_INPUT,	  /* a tensor of the batch; its first dimension is the batch size */
	VALUE_LABEL,	  /* the target of the loss: I64, its first dimension is the batch size */
	VALUE_PARAMETER,  /* trained */
	VALUE_STATE,	  /* not trained but kept: constants, running mean and variance */
	VALUE_ACTIVATION, /* computed by a forward node */
	VALUE_GRADIENT	  /* computed by a backward node */
};

enum weight_fill {
	FILL_ZERO,
	FILL_ONE,
	FILL_HE_NORMAL,
	FILL_HE_UNIFORM,
	FILL_IDENTITY,
	FILL_NORMAL,	       /* deviation 1 */
	FILL_RUNNING_MEAN,     /* normal, deviation 0.1 */
	FILL_RUNNING_VARIANCE, /* uniform, 0.8 to 1.25 */
	FILL_CAUSAL,	       /* 0, and -1e9 where the last index is above the one before it */
	/* Row t, column i of d: the cosine or sine of t * base^(-2j/d), j = i modulo d/2. */
	FILL_ROTARY_COSINE,
	FILL_ROTARY_SINE
};

#define VALUE_NONE (-1)

struct value {
	const char *name; /* unique in the graph; parameters "conv1.weight" */
	enum value_kind kind;
	enum dtype dtype;
	struct shape shape;
	int producer;	       /* node index, or -1 */
	int gradient;	       /* the value that holds d loss / d this after graph_add_backward, or
				  VALUE_NONE */
	enum weight_fill fill; /* parameters and state */
	int64_t fan_in;	       /* for the He fills; the base of the rotary ones */
	double fill_scale;     /* the filled numbers are multiplied by this */
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
	int logits, loss;  /* value indices; loss is VALUE_NONE if there is none */
	int forward_count; /* nodes up to and including the loss; later nodes are backward */
};

void graph_init(struct graph *graph, const char *name);
void graph_release(struct graph *graph);

/*
 * Copies the forward nodes and all values that they use; the caller frees *out with graph_release.
 */
void graph_copy_forward(const struct graph *graph, struct graph *out);

/* Index of the value with that name, or VALUE_NONE. Takes time linear in the number of values. */
int graph_find_value(const struct graph *graph, const char *name);

/* Write the indices of the inputs, and of the labels, in the order of the values. Each returns
 * their number; out may be NULL. */
int graph_inputs(const struct graph *graph, int *out, int capacity);
int graph_labels(const struct graph *graph, int *out, int capacity);

/* Index of input i, or of label i; VALUE_NONE if there are fewer. */
int graph_input(const struct graph *graph, int i);
int graph_label(const struct graph *graph, int i);

/* The number of inputs of forward nodes that read a value. */
int graph_forward_readers(const struct graph *graph, int value);

/* Functions that build a graph. They record the first error in the builder and then do nothing, so
 * that a network reads as a list of layers; build_finish reports the error. */
struct builder {
	struct graph *graph;
	struct error error;
};

int build_input(struct builder *b, const char *name, enum dtype dtype, int64_t batch, int rank,
		const int64_t *dims_without_batch);
int build_parameter(struct builder *b, const char *name, int rank, const int64_t *dims,
		    enum weight_fill fill, int64_t fan_in);
/*
 * Appends a node, creates its outputs ("NAME" or "NAME.1"...) and infers shapes; returns output 0.
 */
int build_node(struct builder *b, enum op op, const char *name, const int *inputs, int input_count,
	       const struct attributes *attributes);
/* Adds a value that is not trained: a constant, or a running statistic of batch normalisation. */
int build_state(struct builder *b, const char *name, int rank, const int64_t *dims,
		enum weight_fill fill);

/* A window that slides over height and width. */
struct window {
	int64_t kernel[2];		  /* height, width */
	int64_t strides[2], dilations[2]; /* 0 means 1 */
	int64_t pads[4];		  /* top, left, bottom, right */
	bool ceil_mode;			  /* pooling only: rounds the output size up */
};

/* A window with the same sizes on both axes. */
struct window window_square(int64_t kernel, int64_t stride, int64_t pad);

/* Layers (graph/layers.c). Parameters NAME.weight and NAME.bias are created with He-normal and zero
 * fill. Each function returns the layer's output. */
int build_conv(struct builder *b, const char *name, int x, int64_t channels, int64_t kernel,
	       int64_t stride, int64_t pad);
/* With any window; `group` divides both channel counts (group = input channels: depthwise). */
int build_conv_window(struct builder *b, const char *name, int x, int64_t channels,
		      const struct window *window, int64_t group, bool bias);
/* Weights: input channels x channels / group x window. With a bias. */
int build_conv_transpose(struct builder *b, const char *name, int x, int64_t channels,
			 const struct window *window, int64_t group);
int build_max_pool(struct builder *b, const char *name, int x, int64_t kernel, int64_t stride);
int build_max_pool_window(struct builder *b, const char *name, int x, const struct window *window);
int build_average_pool(struct builder *b, const char *name, int x, const struct window *window,
		       bool count_include_pad);
int build_global_average_pool(struct builder *b, const char *name, int x); /* N x C x 1 x 1 */
/* Creates parameters NAME.scale (ones) and NAME.bias (zeros), and states NAME.mean and NAME.var.
 * `momentum` is ONNX's: running = momentum * running + (1 - momentum) * batch; PyTorch's momentum
 * is 1 minus this. */
int build_batch_norm(struct builder *b, const char *name, int x, double epsilon, double momentum);
/* With `scale` instead of ones: a small number in the last layer of a residual branch keeps the
 * sums from growing. */
int build_batch_norm_scaled(struct builder *b, const char *name, int x, double epsilon,
			    double momentum, double scale);
/* x / (bias + alpha / size * sum of squares over `size` channels around it)^beta, as in ONNX. */
int build_lrn(struct builder *b, const char *name, int x, int64_t size, double alpha, double beta,
	      double bias);
int build_relu(struct builder *b, const char *name, int x);
/* Elementwise, with the broadcasting of ONNX and NumPy. */
int build_add(struct builder *b, const char *name, int a, int c);
/* Joins at most NODE_MAX_INPUTS values. Negative axes count from the end, here and below. */
int build_concat(struct builder *b, const char *name, const int *values, int count, int64_t axis);
/*
 * Takes elements start, start + step, ... before end on one axis; negative ends count from the end.
 */
int build_slice(struct builder *b, const char *name, int x, int64_t axis, int64_t start,
		int64_t end, int64_t step);
int build_flatten(struct builder *b, const char *name, int x);
/* Constant padding: `pads` holds the begins of all axes of x, then the ends; none is negative. */
int build_pad(struct builder *b, const char *name, int x, const int64_t *pads, double value);
int build_dropout(struct builder *b, const char *name, int x, double ratio);
int build_linear(struct builder *b, const char *name, int x, int64_t features);
/* x (batch x time x features) -> the last state (batch x hidden). Parameters NAME.weight,
 * .recurrent, .bias. */
int build_lstm(struct builder *b, const char *name, int x, int64_t hidden);
/* The same for OP_LSTM, OP_GRU or OP_RNN; with `sequence` all states (batch x time x hidden). */
int build_recurrent(struct builder *b, enum op op, const char *name, int x, int64_t hidden,
		    const struct attributes *attributes);
/* h = relu(W x + R h + b). R starts as the identity, W is normal with the given deviation (Le
 * 2015). */
int build_irnn(struct builder *b, const char *name, int x, int64_t hidden, double deviation);
/* Rows `indices` (I64 or I32, any shape) of a parameter NAME.weight, rows x width, with normal
 * fill. */
int build_embedding(struct builder *b, const char *name, int indices, int64_t rows, int64_t width);
/* Normalises over the axes from `axis` on. Parameters: NAME.scale (ones) and NAME.bias (zeros). */
int build_layer_norm(struct builder *b, const char *name, int x, int64_t axis, double epsilon);
/* The same without mean and bias. */
int build_rms_norm(struct builder *b, const char *name, int x, int64_t axis, double epsilon);
int build_swish(struct builder *b, const char *name, int x); /* x * sigmoid(x) */
int build_reshape(struct builder *b, const char *name, int x, int rank, const int64_t *dims);
/* Dimension i of the result is dimension order[i] of x. */
int build_transpose(struct builder *b, const char *name, int x, const int64_t *order);
int build_softmax(struct builder *b, const char *name, int x, int64_t axis);
/* Products of the matrices in the last two dimensions; the leading ones are broadcast. */
int build_matmul(struct builder *b, const char *name, int a, int c);
int build_mul(struct builder *b, const char *name, int a, int c);
/* x broadcast to that shape. */
int build_expand(struct builder *b, const char *name, int x, int rank, const int64_t *dims);
/* Declares the logits, and appends SoftmaxCrossEntropyLoss and its labels, of the shape batch x
 * dims: one for each sample (rank 0) or for each row of the logits. */
enum prony_status build_finish(struct builder *b, int logits, int rank, const int64_t *dims,
			       struct error *err);
/* The same with half the sum of squares of the "logits" as the objective; labels are declared but
 * unused. */
enum prony_status build_finish_half_squares(struct builder *b, int logits, struct error *err);

/* Appends the backward pass: for each forward node in reverse order, the backward row of its
 * operator. Then `gradient` of every parameter is set. Gradients of values with several users are
 * summed by Add. Gradients of the network's inputs are not computed. Several values may share one
 * gradient value (both terms of a forward Add), so it must not be overwritten in place while it has
 * readers. Defined in graph/backward.c. On error the graph is unchanged. */
enum prony_status graph_add_backward(struct graph *graph, struct error *err);

/* Checks every invariant (indices, order, names, agreement of shapes with infer); the error names
 * the node. */
enum prony_status graph_check(const struct graph *graph, struct error *err);

int64_t graph_parameter_count(const struct graph *graph); /* elements of trained parameters */
int64_t graph_macs(const struct graph *graph);		  /* of the forward nodes, whole batch */
int64_t graph_classes(const struct graph *graph);	  /* last dimension of the logits */
bool graph_has_dropout(const struct graph *graph);
/* Whether a node normalises by the batch's statistics in training. */
bool graph_has_statistics(const struct graph *graph);
/* Makes the normalisations by the batch's statistics use those of each of `ranks` equal parts of
 * the batch, as processes do that train it together; 1: of the whole. Only the reference follows
 * it. */
void graph_set_ranks(struct graph *graph, int ranks);
/* For a state that is a running statistic: returns the value that holds the batch's statistic, and
 * writes the momentum of its BatchNormalization to *momentum. At the end of the forward pass of a
 * training stage (forward-backward, train), state = momentum * state + (1 - momentum) * statistic.
 * VALUE_NONE for constants. */
int graph_state_statistic(const struct graph *graph, int state, double *momentum);
/* For a state that a TensorScatter writes: the value that replaces it at the end of every forward
 * pass; VALUE_NONE for others. */
int graph_state_present(const struct graph *graph, int state);
int64_t graph_batch(const struct graph *graph);

/* Estimated bytes for running the graph in fp32: parameters, gradients and optimiser state of the
 * stage, and activations that live at the same time (all of them in training). */
int64_t graph_memory_estimate(const struct graph *graph, bool training);

/* The fewest bytes that any implementation needs for the graph, without the batch itself. With a
 * backward pass: parameters, gradients, `optimiser_copies` numbers per parameter, and the
 * activations that the backward pass reads (implementations that compute some of them again need
 * less; none of prony's does). Without one: parameters, and input and output of the layer where
 * these are largest. An activation has `element_bytes` bytes per number; trained values have 4. */
int64_t graph_memory_least(const struct graph *graph, int optimiser_copies, int64_t element_bytes);

/* Makes the parameters and states in graph order, filled from the seed (He et al. 2015, arXiv
 * 1502.01852), F32, in `arena`. The random stream depends only on seed and name, not on batch or
 * order. */
enum prony_status graph_initial_weights(const struct graph *graph, uint64_t seed,
					struct arena *arena, struct tensor_set *out,
					struct error *err);

/* The same with the parameters of `given`, whose data is shared; only the others are filled. */
enum prony_status graph_weights_like(const struct graph *graph, const struct tensor_set *given,
				     uint64_t seed, struct arena *arena, struct tensor_set *out,
				     struct error *err);

/* Writes the indices of the parameters (not states) in graph order; returns their number; out may
 * be NULL. */
int graph_parameters(const struct graph *graph, int *out, int capacity);

/* SHA-256 over the canonical JSON of the forward graph. 65 bytes. */
enum prony_status graph_digest(const struct graph *graph, char *hex, struct error *err);

#endif
