#include "adapters/mxnet/mxnet_symbol.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_MAX 8
#define INPUT_MAX 3

/* Translation of one graph: symbols by value, and everything that was created. */
struct translation {
	const struct mx_api *api;
	const struct graph *graph;
	bool loss, dropout;
	struct mx_symbol **values; /* borrowed from `owned`; NULL = not translated yet */
	struct mx_symbol **owned;
	int owned_count, owned_capacity;
	struct mx_symbol *probabilities;
};

/* Parameters of an MXNet operator as text. */
struct options {
	const char *keys[OPTION_MAX], *values[OPTION_MAX];
	char text[OPTION_MAX][64];
	uint32_t count;
};

struct inputs {
	const char *keys[INPUT_MAX];
	struct mx_symbol *symbols[INPUT_MAX];
	uint32_t count;
};

struct row {
	/* Says why the node cannot be translated. */
	void (*refuse)(const struct graph *graph, const struct node *node, struct strbuf *reasons);
	enum prony_status (*emit)(struct translation *t, const struct node *node,
				  struct error *err);
};

static void option(struct options *options, const char *key, const char *format, ...)
	PRONY_PRINTF(3, 4);
static void option(struct options *options, const char *key, const char *format, ...)
{
	va_list arguments;
	uint32_t i = options->count++;

	va_start(arguments, format);
	vsnprintf(options->text[i], sizeof(options->text[i]), format, arguments);
	va_end(arguments);
	options->keys[i] = key;
	options->values[i] = options->text[i];
}

static void option_pair(struct options *options, const char *key, int64_t a, int64_t b)
{
	option(options, key, "(%lld,%lld)", (long long)a, (long long)b);
}

static void input(struct inputs *inputs, const char *key, struct mx_symbol *symbol)
{
	inputs->keys[inputs->count] = key;
	inputs->symbols[inputs->count++] = symbol;
}

/* Takes the symbol: it is freed with the translation. Room was made for all of them before. */
static void own(struct translation *t, struct mx_symbol *symbol)
{
	assert(t->owned_count < t->owned_capacity);
	t->owned[t->owned_count++] = symbol;
}

/* Creates one MXNet node. */
static enum prony_status make(struct translation *t, const char *operator, const char * name,
			      struct options *options, struct inputs *inputs,
			      struct mx_symbol **out, struct error *err)
{
	const struct mx_api *api = t->api;
	const struct mx_operator *handle = NULL;
	struct mx_symbol *symbol = NULL;
	enum prony_status status;

	status = mx_check(api, api->NNGetOpHandle(operator, & handle), operator, err);
	if (status != PRONY_OK)
		return status;
	status = mx_check(api,
			  api->MXSymbolCreateAtomicSymbol(handle, options->count, options->keys,
							  options->values, &symbol),
			  name, err);
	if (status != PRONY_OK)
		return status;
	own(t, symbol);
	status = mx_check(
		api,
		api->NNSymbolCompose(symbol, name, inputs->count, inputs->keys, inputs->symbols),
		name, err);
	if (status == PRONY_OK)
		*out = symbol;
	return status;
}

/* The symbol of a node's input; variables come into being when first used. */
static enum prony_status get(struct translation *t, const struct node *node, int index,
			     struct mx_symbol **out, struct error *err)
{
	int value = node->inputs[index];
	struct mx_symbol *symbol = NULL;

	if (!t->values[value]) {
		const char *name = t->graph->values[value].name;
		enum prony_status status =
			mx_check(t->api, t->api->MXSymbolCreateVariable(name, &symbol), name, err);

		if (status != PRONY_OK)
			return status;
		own(t, symbol);
		t->values[value] = symbol;
	}
	*out = t->values[value];
	return PRONY_OK;
}

/* Fetches the node's inputs under the keys that the MXNet operator gives them. */
static enum prony_status get_inputs(struct translation *t, const struct node *node,
				    const char *const *keys, struct inputs *inputs,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < node->input_count; i++) {
		struct mx_symbol *symbol = NULL;

		if (node->inputs[i] == VALUE_NONE)
			continue;
		status = get(t, node, i, &symbol, err);
		if (status == PRONY_OK)
			input(inputs, keys[i], symbol);
	}
	return status;
}

static bool has_bias(const struct node *node)
{
	return node->input_count > 2 && node->inputs[2] != VALUE_NONE;
}

static const struct shape *shape_of(const struct graph *graph, int value)
{
	return &graph->values[value].shape;
}

static bool pads_symmetric(const struct node *node)
{
	const int64_t *pads = node->attributes.pads;

	return pads[0] == pads[2] && pads[1] == pads[3];
}

static void refuse(struct strbuf *reasons, const struct node *node, const char *what)
{
	strbuf_printf(reasons, "%s%s %s: %s", reasons->length > 0 ? "; " : "",
		      operator_row(node->op)->name, node->name, what);
}

/* Convolution has one padding for both sides: uneven ones become a Pad node in front. */
static enum prony_status emit_pad(struct translation *t, const struct node *node,
				  struct mx_symbol **data, struct error *err)
{
	const int64_t *pads = node->attributes.pads;
	struct options options = {0};
	struct inputs inputs = {0};
	char name[128];

	snprintf(name, sizeof(name), "%s.pad", node->name);
	option(&options, "mode", "constant");
	option(&options, "constant_value", "0");
	option(&options, "pad_width", "(0,0,0,0,%lld,%lld,%lld,%lld)", (long long)pads[0],
	       (long long)pads[2], (long long)pads[1], (long long)pads[3]);
	input(&inputs, "data", *data);
	return make(t, "Pad", name, &options, &inputs, data, err);
}

static enum prony_status emit_conv(struct translation *t, const struct node *node,
				   struct error *err)
{
	static const char *const keys[] = {"data", "weight", "bias"};
	const struct attributes *a = &node->attributes;
	const struct shape *weight = shape_of(t->graph, node->inputs[1]);
	struct options options = {0};
	struct inputs inputs = {0};
	bool symmetric = pads_symmetric(node);
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);

	if (status == PRONY_OK && !symmetric)
		status = emit_pad(t, node, &inputs.symbols[0], err);
	if (status != PRONY_OK)
		return status;
	option_pair(&options, "kernel", weight->dims[2], weight->dims[3]);
	option_pair(&options, "stride", a->strides[0], a->strides[1]);
	option_pair(&options, "dilate", a->dilations[0], a->dilations[1]);
	option_pair(&options, "pad", symmetric ? a->pads[0] : 0, symmetric ? a->pads[1] : 0);
	option(&options, "num_filter", "%lld", (long long)weight->dims[0]);
	option(&options, "num_group", "%lld", (long long)a->group);
	option(&options, "no_bias", "%s", has_bias(node) ? "False" : "True");
	return make(t, "Convolution", node->name, &options, &inputs, &t->values[node->outputs[0]],
		    err);
}

static void refuse_pool(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	(void)graph;
	if (!pads_symmetric(node))
		refuse(reasons, node, "uneven padding");
	if (node->attributes.dilations[0] != 1 || node->attributes.dilations[1] != 1)
		refuse(reasons, node, "dilations");
}

static enum prony_status emit_pool(struct translation *t, const struct node *node,
				   struct error *err)
{
	static const char *const keys[] = {"data"};
	const struct attributes *a = &node->attributes;
	struct options options = {0};
	struct inputs inputs = {0};
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	option(&options, "pool_type", "max");
	option_pair(&options, "kernel", a->kernel[0], a->kernel[1]);
	option_pair(&options, "stride", a->strides[0], a->strides[1]);
	option_pair(&options, "pad", a->pads[0], a->pads[1]);
	option(&options, "pooling_convention", "%s", a->ceil_mode ? "full" : "valid");
	return make(t, "Pooling", node->name, &options, &inputs, &t->values[node->outputs[0]], err);
}

static void refuse_gemm(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const struct attributes *a = &node->attributes;

	if (a->trans_a || !a->trans_b)
		refuse(reasons, node,
		       "FullyConnected multiplies by a transposed weight only (transA 0, transB "
		       "1)");
	if (a->alpha != 1 || (has_bias(node) && a->beta != 1))
		refuse(reasons, node, "alpha or beta other than 1");
	if (has_bias(node) && (shape_of(graph, node->inputs[2])->rank != 1 ||
			       shape_of(graph, node->inputs[2])->dims[0] !=
				       shape_of(graph, node->inputs[1])->dims[0]))
		refuse(reasons, node, "C is not a vector of one bias per output");
}

static enum prony_status emit_gemm(struct translation *t, const struct node *node,
				   struct error *err)
{
	static const char *const keys[] = {"data", "weight", "bias"};
	struct options options = {0};
	struct inputs inputs = {0};
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	option(&options, "num_hidden", "%lld",
	       (long long)shape_of(t->graph, node->inputs[1])->dims[0]);
	option(&options, "no_bias", "%s", has_bias(node) ? "False" : "True");
	option(&options, "flatten", "False");
	return make(t, "FullyConnected", node->name, &options, &inputs,
		    &t->values[node->outputs[0]], err);
}

static enum prony_status emit_relu(struct translation *t, const struct node *node,
				   struct error *err)
{
	static const char *const keys[] = {"data"};
	struct options options = {0};
	struct inputs inputs = {0};
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	option(&options, "act_type", "relu");
	return make(t, "Activation", node->name, &options, &inputs, &t->values[node->outputs[0]],
		    err);
}

static void refuse_flatten(const struct graph *graph, const struct node *node,
			   struct strbuf *reasons)
{
	(void)graph;
	if (node->attributes.axis != 1)
		refuse(reasons, node, "axis other than 1");
}

static enum prony_status emit_flatten(struct translation *t, const struct node *node,
				      struct error *err)
{
	static const char *const keys[] = {"data"};
	struct options options = {0};
	struct inputs inputs = {0};
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	return make(t, "Flatten", node->name, &options, &inputs, &t->values[node->outputs[0]], err);
}

static enum prony_status emit_dropout(struct translation *t, const struct node *node,
				      struct error *err)
{
	static const char *const keys[] = {"data"};
	struct options options = {0};
	struct inputs inputs = {0};
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	if (!t->dropout) {
		t->values[node->outputs[0]] = inputs.symbols[0];
		return PRONY_OK;
	}
	option(&options, "p", "%.9g", node->attributes.ratio);
	return make(t, "Dropout", node->name, &options, &inputs, &t->values[node->outputs[0]], err);
}

static enum prony_status emit_add(struct translation *t, const struct node *node, struct error *err)
{
	static const char *const keys[] = {"lhs", "rhs"};
	struct options options = {0};
	struct inputs inputs = {0};
	bool same = shape_equal(shape_of(t->graph, node->inputs[0]),
				shape_of(t->graph, node->inputs[1])) != 0;
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	return make(t, same ? "elemwise_add" : "broadcast_add", node->name, &options, &inputs,
		    &t->values[node->outputs[0]], err);
}

static void refuse_loss(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	if (shape_of(graph, node->inputs[0])->rank != 2)
		refuse(reasons, node, "logits are not batch x classes");
	if (node->inputs[0] != graph->logits)
		refuse(reasons, node, "is not taken of the logits");
}

static enum prony_status emit_loss(struct translation *t, const struct node *node,
				   struct error *err)
{
	static const char *const keys[] = {"data", "label"};
	struct options options = {0};
	struct inputs inputs = {0};

	if (!t->loss)
		return PRONY_OK;
	enum prony_status status = get_inputs(t, node, keys, &inputs, err);
	if (status != PRONY_OK)
		return status;
	/* Divides the gradient by the batch size: the loss is a mean. */
	option(&options, "normalization", "batch");
	return make(t, "SoftmaxOutput", node->name, &options, &inputs, &t->probabilities, err);
}

static const struct row rows[OP_COUNT] = {
	[OP_CONV] = {NULL, emit_conv},
	[OP_MAX_POOL] = {refuse_pool, emit_pool},
	[OP_GEMM] = {refuse_gemm, emit_gemm},
	[OP_RELU] = {NULL, emit_relu},
	[OP_FLATTEN] = {refuse_flatten, emit_flatten},
	[OP_DROPOUT] = {NULL, emit_dropout},
	[OP_ADD] = {NULL, emit_add},
	[OP_SOFTMAX_CROSS_ENTROPY] = {refuse_loss, emit_loss},
};

/* States would need arrays of their own, which are written once and never trained. */
static void refuse_states(const struct graph *graph, const struct node *node,
			  struct strbuf *reasons)
{
	for (int i = 0; i < node->input_count; i++) {
		if (node->inputs[i] != VALUE_NONE &&
		    graph->values[node->inputs[i]].kind == VALUE_STATE)
			refuse(reasons, node, "takes a constant or a running statistic");
	}
}

void mx_symbol_refusals(const struct graph *graph, struct strbuf *reasons)
{
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (!rows[node->op].emit)
			refuse(reasons, node, "no translation into MXNet's operators");
		else if (rows[node->op].refuse)
			rows[node->op].refuse(graph, node, reasons);
		if (rows[node->op].emit)
			refuse_states(graph, node, reasons);
	}
}

/* The heads, of the logits' symbol and the loss's. */
static enum prony_status finish(struct translation *t, struct mx_symbol **out, struct error *err)
{
	struct mx_symbol *heads[MX_HEAD_COUNT];
	struct options options = {0};
	struct inputs inputs = {0};
	enum prony_status status;

	/* A copy of its own in both cases: the translation frees everything it made. */
	if (!t->loss) {
		heads[0] = t->values[t->graph->logits];
		return mx_check(t->api, t->api->MXSymbolCreateGroup(1, heads, out), "logits", err);
	}
	input(&inputs, "data", t->values[t->graph->logits]);
	status = make(t, "BlockGrad", "prony.logits", &options, &inputs, &heads[MX_HEAD_LOGITS],
		      err);
	if (status != PRONY_OK)
		return status;
	heads[MX_HEAD_PROBABILITIES] = t->probabilities;
	return mx_check(t->api, t->api->MXSymbolCreateGroup(MX_HEAD_COUNT, heads, out),
			"group of heads", err);
}

enum prony_status mx_symbol_new(const struct mx_api *api, const struct graph *graph, bool loss,
				bool dropout, struct mx_symbol **out, struct error *err)
{
	struct translation t = {.api = api, .graph = graph, .loss = loss, .dropout = dropout};
	enum prony_status status = PRONY_OK;

	/* One per value, one per node and one for its padding, one for the logits' head. */
	t.owned_capacity = graph->value_count + 2 * graph->node_count + 1;
	t.owned = calloc((size_t)t.owned_capacity, sizeof(struct mx_symbol *));
	t.values = calloc((size_t)graph->value_count, sizeof(struct mx_symbol *));
	if (!t.owned || !t.values) {
		status = error_set(err, PRONY_NOMEM, "no memory for the symbol");
		goto out;
	}
	for (int i = 0; status == PRONY_OK && i < graph->forward_count; i++)
		status = rows[graph->nodes[i].op].emit(&t, &graph->nodes[i], err);
	if (status == PRONY_OK && loss && !t.probabilities)
		status = error_set(err, PRONY_BAD_INPUT, "network %s has no loss", graph->name);
	if (status == PRONY_OK)
		status = finish(&t, out, err);
out:
	for (int i = 0; i < t.owned_count; i++)
		api->MXSymbolFree(t.owned[i]);
	free(t.owned);
	free(t.values);
	return status;
}
