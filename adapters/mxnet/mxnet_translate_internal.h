/* Private to the translation of a graph into an MXNet symbol. The translation stores its first
 * error, and later calls do nothing. So the translation of an operator is a plain sequence of calls
 * that create MXNet's operators. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_TRANSLATE_INTERNAL_H
#define PRONY_ADAPTERS_MXNET_MXNET_TRANSLATE_INTERNAL_H

#include "adapters/mxnet/mxnet_api.h"
#include "base/strbuf.h"
#include "graph/graph.h"

#define MX_OPTIONS_BYTES 512
#define MX_LIST_BYTES 200

/* The translation of one graph: symbols by value, and all created symbols. */
struct translation {
	const struct mx_api *api;
	const struct graph *graph;
	bool loss, dropout;
	const struct node *node;   /* being translated: nodes of MXNet have its name */
	struct mx_symbol **values; /* borrowed from `owned`; NULL = not translated yet */
	struct mx_symbol **owned;
	int owned_count, owned_capacity;
	struct mx_symbol *objective; /* the head where the backward pass begins */
	char text[MX_OPTIONS_BYTES]; /* for mx_text */
	struct error error;
};

/* The largest number of symbols that the translation of one node creates, without the variables of
 * the graph's values. */
#define MX_SYMBOLS_PER_NODE 24

/* A list of inputs, written in the call. */
#define MX_IN(...)                                                                                 \
	(struct mx_symbol *const[]){__VA_ARGS__},                                                  \
		(int)(sizeof((struct mx_symbol *const[]){__VA_ARGS__}) /                           \
		      sizeof(struct mx_symbol *))

/* Creates an MXNet node, owned by the translation. It is the graph's node under its own name
 * (suffix ""), or an intermediate node "NODE.SUFFIX". Inputs are in the order of MXNet's operator;
 * options are "kernel=(3,3) no_bias=True" (NULL: none). */
struct mx_symbol *mx_op(struct translation *t, const char *suffix, const char *type,
			struct mx_symbol *const *inputs, int count, const char *options);
/* The node itself as an operator on its first input. */
struct mx_symbol *mx_unary(struct translation *t, const char *type, const char *options);
/* An operator with a scalar: "_mul_scalar" and similar. */
struct mx_symbol *mx_scalar(struct translation *t, const char *suffix, const char *type,
			    struct mx_symbol *x, double scalar);
/* Pads the height and width of an image with `value`. */
struct mx_symbol *mx_pad_image(struct translation *t, struct mx_symbol *x, const int64_t begins[2],
			       const int64_t ends[2], double value);

/* Broadcasts x from one shape to another; `aligned` and `suffix` name the two nodes. */
struct mx_symbol *mx_broadcast(struct translation *t, const char *aligned, const char *suffix,
			       struct mx_symbol *x, const struct shape *from,
			       const struct shape *to);

/* Formats options; the text is valid until the next call. */
const char *mx_text(struct translation *t, const char *format, ...) PRONY_PRINTF(2, 3);
struct mx_list {
	char text[MX_LIST_BYTES];
};
struct mx_list mx_list(const int64_t *items, int count); /* "(2,3,)" */
struct mx_list mx_pair(const int64_t two[2]);		 /* "(2,3)" */
const char *mx_bool(bool value);

/* Input i of the node, and all its inputs (room for NODE_MAX_INPUTS). Variables are created at
 * their first use. */
struct mx_symbol *mx_in(struct translation *t, int i);
int mx_all_in(struct translation *t, struct mx_symbol **out);
struct mx_symbol *mx_variable(struct translation *t, const char *name);
/* Another output of a symbol. */
struct mx_symbol *mx_output(struct translation *t, struct mx_symbol *symbol, uint32_t index);

const struct shape *mx_shape(const struct graph *graph, int value);
bool mx_has_bias(const struct node *node);
void mx_refuse(struct strbuf *reasons, const struct node *node, const char *what);

/* Appends the reason why a node cannot be translated. */
typedef void mx_refusal(const struct graph *graph, const struct node *node, struct strbuf *reasons);
/* Creates the symbol of the node's first output. */
typedef struct mx_symbol *mx_translator(struct translation *t, const struct node *node);

/* Layers with a window or weights, and losses: mxnet_layers.c. */
mx_refusal mx_refuse_pool, mx_refuse_loss;
mx_translator mx_conv, mx_pool, mx_global_pool, mx_gemm, mx_matmul, mx_batch_norm, mx_layer_norm,
	mx_cross_entropy, mx_half_squares, mx_gather, mx_conv_transpose, mx_group_norm, mx_resize;
/* mxnet_lrn.c */
mx_refusal mx_refuse_lrn;
mx_translator mx_lrn;
/* LSTM, GRU and RNN: mxnet_recurrent.c. */
mx_refusal mx_refuse_recurrent;
mx_translator mx_recurrent;
/* Element-wise functions and rearrangements of elements: mxnet_functions.c. */
mx_refusal mx_refuse_function, mx_refuse_scalar, mx_refuse_pad;
mx_translator mx_function, mx_softmax, mx_flatten, mx_reshape, mx_identity, mx_transpose, mx_expand,
	mx_concat, mx_slice, mx_pad, mx_reduce_mean, mx_dropout, mx_arithmetic;

#endif
