/*
 * Private to the translation of a graph into an MXNet symbol: what the rows of the operators share.
 */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_TRANSLATE_INTERNAL_H
#define PRONY_ADAPTERS_MXNET_MXNET_TRANSLATE_INTERNAL_H

#include "adapters/mxnet/mxnet_api.h"
#include "base/strbuf.h"
#include "graph/graph.h"

#define MX_OPTION_MAX 10
#define MX_OPTION_BYTES 128

/* Translation of one graph: symbols by value, and everything that was created. */
struct translation {
	const struct mx_api *api;
	const struct graph *graph;
	bool loss, dropout;
	struct mx_symbol **values; /* borrowed from `owned`; NULL = not translated yet */
	struct mx_symbol **owned;
	int owned_count, owned_capacity;
	struct mx_symbol *objective; /* the head that the backward pass begins with */
};

/* Parameters of an MXNet operator as text. */
struct mx_options {
	const char *keys[MX_OPTION_MAX], *values[MX_OPTION_MAX];
	char text[MX_OPTION_MAX][MX_OPTION_BYTES];
	uint32_t count;
};

/* Inputs of an MXNet operator, by the names that it gives them. */
struct mx_inputs {
	const char *keys[NODE_MAX_INPUTS];
	struct mx_symbol *symbols[NODE_MAX_INPUTS];
	uint32_t count;
};

/* What is known of one operator of the graph. */
struct mx_row {
	/* Says why the node cannot be translated; NULL: it always can. */
	void (*refuse)(const struct graph *graph, const struct node *node, struct strbuf *reasons);
	/* Creates the symbol of the node's first output. */
	enum prony_status (*emit)(struct translation *t, const struct node *node,
				  struct error *err);
};

/* Symbols that the translation of one node creates at most, variables of the graph's values not
 * counted. */
#define MX_SYMBOLS_PER_NODE ELEMENTWISE_MAX_STEPS

void mx_option(struct mx_options *options, const char *key, const char *format, ...)
	PRONY_PRINTF(3, 4);
void mx_option_list(struct mx_options *options, const char *key, const int64_t *items, int count);
void mx_option_pair(struct mx_options *options, const char *key, int64_t a, int64_t b);
void mx_input(struct mx_inputs *inputs, const char *key, struct mx_symbol *symbol);

/* Creates one MXNet node; the symbol is owned by the translation. */
enum prony_status mx_make(struct translation *t, const char *operator, const char * name,
			  const struct mx_options *options, const struct mx_inputs *inputs,
			  struct mx_symbol **out, struct error *err);
/* mx_make under the node's name, as its first output. */
enum prony_status mx_emit(struct translation *t, const struct node *node, const char *operator,
			  const struct mx_options * options, const struct mx_inputs *inputs,
			  struct error *err);
/* mx_make of a step on the way to a node: "NODE.SUFFIX". */
enum prony_status mx_make_part(struct translation *t, const struct node *node, const char *suffix,
			       const char *operator, const struct mx_options * options,
			       const struct mx_inputs *inputs, struct mx_symbol **out,
			       struct error *err);
/* Takes the symbol: it is freed with the translation. Room was made for all of them before. */
void mx_own(struct translation *t, struct mx_symbol *symbol);

/* Fetches the node's inputs (those that are there) under the names that the MXNet operator gives
 * them; variables come into being when first used. */
enum prony_status mx_get_inputs(struct translation *t, const struct node *node,
				const char *const *keys, struct mx_inputs *inputs,
				struct error *err);
/* The only input, called "data". */
enum prony_status mx_get_data(struct translation *t, const struct node *node,
			      struct mx_inputs *inputs, struct error *err);
/* A Pad node around the only symbol in `inputs`, which becomes it. pads: begins and ends of the
 * four dimensions. */
enum prony_status mx_pad(struct translation *t, const struct node *node, const int64_t pads[8],
			 double value, struct mx_inputs *inputs, struct error *err);

const struct shape *mx_shape(const struct graph *graph, int value);
bool mx_has_bias(const struct node *node);
void mx_refuse(struct strbuf *reasons, const struct node *node, const char *what);

/* Layers with a window or weights, and losses: mxnet_layers.c. */
extern const struct mx_row mx_conv, mx_max_pool, mx_average_pool, mx_global_average_pool, mx_gemm,
	mx_batch_norm, mx_cross_entropy, mx_half_squares;
/* mxnet_lrn.c */
extern const struct mx_row mx_lrn;
/* LSTM and RNN: mxnet_recurrent.c. */
extern const struct mx_row mx_recurrent_row;
/* Functions of each element, and other arrangements of them: mxnet_functions.c. */
extern const struct mx_row mx_function, mx_softmax, mx_flatten, mx_reshape, mx_identity,
	mx_transpose, mx_concat, mx_slice, mx_pad_row, mx_reduce_mean, mx_dropout, mx_add, mx_sub,
	mx_mul, mx_div;

#endif
