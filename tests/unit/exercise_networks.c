/* Small networks that hold each operator between layers with weights: otherwise no gradient of the
 * operator is needed. */
#include "exercise_networks.h"

#include "tests/unit/test_layers.h"
#include <stdio.h>

int exercise_conv(struct builder *b, const char *name, int x, int64_t channels, bool bias)
{
	struct window window = window_square(3, 1, 1);

	return build_conv_window(b, name, x, channels, &window, 1, bias);
}

int exercise_finish(struct builder *b, int x)
{
	x = build_relu(b, "relu.last", exercise_conv(b, "last", x, 16, true));
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

static int batch_norm(struct builder *b, int x)
{
	int y;

	x = build_batch_norm(b, "bn1", exercise_conv(b, "conv1", x, 32, false), 1e-3, 0.9);
	y = x = build_relu(b, "relu1", x);
	x = build_batch_norm(b, "bn2", exercise_conv(b, "conv2", x, 32, false), 1e-5, 0.7);
	x = build_relu(b, "sum.relu", build_add(b, "sum", x, y));
	x = build_batch_norm(b, "bn3", x, 1e-5, 0.9);
	x = build_relu(b, "relu3", x);
	return exercise_finish(
		b, build_batch_norm(b, "bn4", exercise_conv(b, "conv4", x, 7, false), 1e-5, 0.9));
}

static int flat_batch_norm(struct builder *b, int x)
{
	x = build_linear(b, "fc1",
			 build_flatten(b, "flatten", exercise_conv(b, "conv", x, 20, true)), 40);
	/* Without the ReLU, the gradients of the preceding biases would be zero except for
	 * rounding. */
	x = build_batch_norm(b, "bn", build_relu(b, "relu", x), 1e-3, 0.9);
	return build_linear(b, "fc2", x, 5);
}

static int pools(struct builder *b, int x)
{
	struct window same = window_square(3, 1, 1), ceil = window_square(3, 2, 0);
	struct window uneven = {.kernel = {2, 3}, .strides = {1, 2}, .pads = {1, 0, 0, 2}};

	ceil.ceil_mode = true;
	x = build_average_pool(b, "inside", exercise_conv(b, "conv1", x, 32, true), &same, false);
	x = build_average_pool(b, "padded", exercise_conv(b, "conv2", x, 20, true), &same, true);
	x = build_average_pool(b, "ceil", x, &ceil, false);
	x = build_average_pool(b, "uneven", x, &uneven, true);
	x = build_relu(b, "relu", exercise_conv(b, "conv3", x, 48, true));
	x = build_flatten(b, "flatten", build_global_average_pool(b, "global", x));
	return build_linear(b, "fc", x, 5);
}

/* Adds ceil_mode windows that extend past the padding, with the padding counted or not. */
static int overhang(struct builder *b, int x, bool counts)
{
	struct window window = window_square(3, 2, 1);

	window.ceil_mode = true;
	x = build_average_pool(b, "pool", exercise_conv(b, "conv", x, 8, true), &window, counts);
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

static int overhang_counts(struct builder *b, int x)
{
	return overhang(b, x, true);
}

static int overhang_leaves(struct builder *b, int x)
{
	return overhang(b, x, false);
}

static int max_pools(struct builder *b, int x)
{
	struct window same = {.kernel = {3, 3}, .strides = {2, 2}, .pads = {0, 1, 1, 0}};
	struct window wide = {.kernel = {3, 2}, .strides = {1, 2}, .pads = {2, 0, 1, 1}};

	x = build_max_pool_window(b, "same", exercise_conv(b, "conv1", x, 8, true), &same);
	same.ceil_mode = true;
	x = build_max_pool_window(b, "ceil", exercise_conv(b, "conv2", x, 8, true), &same);
	x = build_max_pool_window(b, "wide", exercise_conv(b, "conv3", x, 8, true), &wide);
	return exercise_finish(b, x);
}

/* Normalises images, whose channels may lie last, and vectors. A bias before the second
 * normalisation would have a gradient of zero except for rounding. */
static int layer_norm(struct builder *b, int x)
{
	x = build_layer_norm(b, "image", exercise_conv(b, "conv1", x, 9, true), 1, 1e-3);
	x = build_layer_norm(b, "width", exercise_conv(b, "conv2", x, 16, false), 3, 1e-3);
	return build_linear(
		b, "fc", build_layer_norm(b, "flat", build_flatten(b, "flatten", x), 1, 1e-3), 5);
}

/* Attention over the rows of an image and a learned token, and products with repeated factors. */
static int attention(struct builder *b, int x)
{
	int64_t batch = b->graph->values[x].shape.dims[0];
	int token = build_parameter(b, "token", 3, (const int64_t[]){1, 1, 16}, FILL_NORMAL, 1);
	int heads, keys;

	x = build_reshape(b, "rows", exercise_conv(b, "conv", x, 16, true), 3,
			  (const int64_t[]){0, 16, 110});
	x = build_transpose(b, "tokens", x, (const int64_t[]){0, 2, 1});
	token = build_expand(b, "repeated", token, 3, (const int64_t[]){batch, 1, 16});
	x = build_concat(b, "joined", (const int[]){token, x}, 2, 1);
	x = build_reshape(b, "parts", x, 4, (const int64_t[]){0, 111, 2, 8});
	heads = build_transpose(b, "heads", x, (const int64_t[]){0, 2, 1, 3});
	keys = build_transpose(b, "keys", x, (const int64_t[]){0, 2, 3, 1});
	x = build_softmax(b, "softmax", build_matmul(b, "scores", heads, keys), 3);
	x = build_matmul(b, "mixed", x, heads);
	token = build_parameter(b, "head", 3, (const int64_t[]){2, 8, 5}, FILL_HE_NORMAL, 8);
	x = build_matmul(b, "headed", x, token);
	token = build_parameter(b, "pool", 2, (const int64_t[]){4, 111}, FILL_HE_NORMAL, 111);
	x = build_matmul(b, "pooled", token, x);
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

static int lrn(struct builder *b, int x)
{
	x = build_lrn(b, "lrn1", exercise_conv(b, "conv1", x, 32, true), 5, 0.5, 0.75, 1);
	return exercise_finish(
		b, build_lrn(b, "lrn2", exercise_conv(b, "conv2", x, 20, true), 9, 0.3, 0.75, 2));
}

/* Layers that keep channels in blocks on both sides. */
static int lrn_pool(struct builder *b, int x)
{
	struct window same = {.kernel = {3, 3}, .strides = {2, 2}, .pads = {0, 0, 1, 1}};

	x = build_relu(b, "relu", exercise_conv(b, "conv", x, 64, true));
	x = build_max_pool_window(b, "pool", build_lrn(b, "lrn", x, 5, 0.5, 0.75, 1), &same);
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

static int lrn_root(struct builder *b, int x)
{
	return exercise_finish(
		b, build_lrn(b, "lrn", exercise_conv(b, "conv", x, 8, true), 3, 0.5, 0.5, 1));
}

static int functions(struct builder *b, int x)
{
	x = build_tanh(b, "tanh", exercise_conv(b, "conv1", x, 20, true));
	x = build_sigmoid(b, "sigmoid", exercise_conv(b, "conv2", x, 32, true));
	x = build_hard_sigmoid(b, "hard_sigmoid", exercise_conv(b, "conv3", x, 20, true), 0.3, 0.4);
	x = build_hard_swish(b, "hard_swish", exercise_conv(b, "conv4", x, 32, true));
	x = build_clip(b, "clip", exercise_conv(b, "conv5", x, 20, true), -0.3, 0.6);
	x = build_silu(b, "silu", exercise_conv(b, "conv6", x, 32, true));
	x = build_clip(b, "relu6", exercise_conv(b, "conv7", x, 32, true), 0, 6);
	x = build_identity(b, "identity",
			   build_silu(b, "silu2", exercise_conv(b, "conv8", x, 9, true)));
	return exercise_finish(b, x);
}

/* Adds each function of the operator table, between convolutions with full blocks of channels and
 * with odd channel counts. */
static int every_function(struct builder *b, int x)
{
	int branches[NODE_MAX_INPUTS], count = 0;

	for (int op = 0; op < OP_COUNT; op++) {
		char conv[64], positive[64];
		int y;

		if (!operator_row((enum op)op)->elementwise)
			continue;
		snprintf(conv, sizeof(conv), "conv.%d", op);
		snprintf(positive, sizeof(positive), "positive.%d", op);
		y = exercise_conv(b, conv, x, op % 2 ? 16 : 9, true);
		if (operator_row((enum op)op)->elementwise->positive)
			y = build_sigmoid(b, positive, y);
		branches[count++] =
			build_node(b, (enum op)op, operator_name((enum op)op), &y, 1, NULL);
	}
	return exercise_finish(b, build_concat(b, "concat", branches, count, 1));
}

static int joins(struct builder *b, int x)
{
	int parts[4], halves[2];

	x = build_relu(b, "relu", exercise_conv(b, "conv", x, 32, true));
	parts[0] = build_relu(b, "a.relu", exercise_conv(b, "a", x, 16, true));
	parts[1] = exercise_conv(b, "b", x, 32, true);
	parts[2] = x;
	x = build_concat(b, "aligned", parts, 3, 1);
	parts[0] = exercise_conv(b, "c", x, 20, true);
	parts[1] = build_relu(b, "d.relu", exercise_conv(b, "d", x, 7, true));
	parts[2] = x;
	parts[3] = parts[0];
	x = build_concat(b, "odd", parts, 4, 1);
	x = exercise_conv(b, "e", x, 48, true);
	halves[0] = build_slice(b, "low", x, 1, 0, 16, 1);
	halves[1] = exercise_conv(b, "f", build_slice(b, "high", x, 1, 16, 48, 1), 16, true);
	x = build_add(b, "halves", halves[0], halves[1]);
	halves[0] = build_slice(b, "odd_channels", x, 1, 3, 16, 2);
	halves[1] = build_slice(b, "rest", x, -1, 5, 9, 1);
	x = build_concat(b, "rows",
			 (const int[]){build_slice(b, "r0", halves[0], 2, 0, 10, 3),
				       build_slice(b, "r1", halves[0], 2, 1, 3, 1)},
			 2, -2);
	x = build_concat(
		b, "columns",
		(const int[]){build_slice(b, "c0", x, 3, 0, 4, 1),
			      build_slice(b, "c1", build_slice(b, "c2", halves[1], 1, 0, 7, 1), 2,
					  4, 10, 1)},
		2, 3);
	return exercise_finish(b, x);
}

static int pads(struct builder *b, int x)
{
	x = build_pad(b, "zero", exercise_conv(b, "conv1", x, 32, true),
		      (const int64_t[]){0, 0, 1, 0, 0, 0, 2, 3}, 0);
	x = build_pad(b, "one", exercise_conv(b, "conv2", x, 32, true),
		      (const int64_t[]){0, 0, 1, 1, 0, 0, 0, 0}, 1);
	x = build_pad(b, "odd", exercise_conv(b, "conv4", x, 9, true),
		      (const int64_t[]){0, 0, 0, 2, 0, 0, 1, 0}, 0);
	return exercise_finish(b, x);
}

static int channel_pads(struct builder *b, int x)
{
	x = build_pad(b, "channels", exercise_conv(b, "conv1", x, 13, true),
		      (const int64_t[]){0, 2, 0, 0, 0, 1, 0, 1}, 0.5);
	return exercise_finish(b, x);
}

/* Adds a channel shuffle, a transposition to channels last and back, and a head that keeps more
 * than a matrix. */
static int orders(struct builder *b, int x)
{
	x = build_relu(b, "relu", exercise_conv(b, "conv1", x, 32, true));
	x = build_reshape(b, "groups", x, 5, (const int64_t[]){0, 4, 8, 10, 11});
	x = build_transpose(b, "swap", x, (const int64_t[]){0, 2, 1, 3, 4});
	x = build_reshape(b, "channels", x, 4, (const int64_t[]){0, -1, 10, 11});
	x = exercise_conv(b, "conv2", x, 32, true);
	x = build_transpose(b, "last", x, (const int64_t[]){0, 2, 3, 1});
	x = build_tanh(b, "tanh", x);
	x = build_transpose(b, "first", x, (const int64_t[]){0, 3, 1, 2});
	x = build_transpose(b, "sides", exercise_conv(b, "conv3", x, 20, true),
			    (const int64_t[]){0, 1, 3, 2});
	x = build_relu(b, "relu4", exercise_conv(b, "conv4", x, 16, true));
	x = build_reshape(b, "tokens", x, 3, (const int64_t[]){0, 16, 110});
	x = build_transpose(b, "turn", x, (const int64_t[]){0, 2, 1});
	x = build_softmax(b, "softmax", x, 2);
	x = build_reshape(b, "matrix", x, 2, (const int64_t[]){0, -1});
	return build_linear(b, "fc", x, 5);
}

static int channel_parameter(struct builder *b, const char *name, int64_t channels)
{
	return build_parameter(b, name, 3, (const int64_t[]){channels, 1, 1}, FILL_NORMAL, 1);
}

/* Adds squeeze and excite, and every kind of broadcast. */
static int broadcasts(struct builder *b, int x)
{
	int gate, mean, one;

	x = build_relu(b, "relu", exercise_conv(b, "conv1", x, 32, true));
	gate = build_global_average_pool(b, "squeeze", x);
	gate = build_sigmoid(b, "gate", exercise_conv(b, "excite", gate, 32, true));
	x = build_mul(b, "scaled", x, gate);
	x = build_mul(b, "gated", gate, exercise_conv(b, "conv2", x, 32, true));
	mean = build_reduce_mean(b, "mean", x, (const int64_t[]){2, -1}, 2, true);
	x = build_sub(b, "centred", x, mean);
	x = build_sub(b, "turned", mean, exercise_conv(b, "conv3", x, 32, true));
	one = build_state(b, "one", 0, NULL, FILL_ONE);
	gate = build_add(b, "above", build_sigmoid(b, "s", exercise_conv(b, "conv4", x, 32, true)),
			 one);
	x = build_div(b, "ratio", x, gate);
	x = build_div(b, "inverse", one, build_add(b, "a", build_sigmoid(b, "s2", x), one));
	x = build_mul(b, "gain", x, channel_parameter(b, "gain.weight", 32));
	x = build_add(b, "shift", channel_parameter(b, "shift.weight", 32), x);
	x = build_mul(b, "square", x, x);
	mean = build_reduce_mean(b, "rows", x, (const int64_t[]){1, 2}, 2, false);
	return build_add(b, "out", exercise_finish(b, x), build_linear(b, "fc.rows", mean, 5));
}

int exercise_separable(struct builder *b, int x,
		       int (*function)(struct builder *b, const char *name, int x))
{
	struct window window = window_square(5, 2, 2), point = window_square(1, 1, 0);

	x = build_batch_norm(b, "bn0", exercise_conv(b, "conv", x, 44, false), 1e-3, 0.9);
	for (int i = 0; i < 2; i++) {
		char name[2][8];

		snprintf(name[0], sizeof(name[0]), "d%d", i);
		snprintf(name[1], sizeof(name[1]), "p%d", i);
		x = function(b, i ? "function1" : "function0", x);
		x = build_conv_window(b, name[0], x, 44, &window, 44, false);
		x = build_conv_window(b, name[1], x, 44, &point, 1, false);
		x = build_batch_norm(b, i ? "bn2" : "bn1", x, 1e-3, 0.9);
		window = window_square(3, 1, 1);
	}
	return exercise_finish(b, x);
}

static int separable(struct builder *b, int x)
{
	return exercise_separable(b, x, build_relu);
}

/* Biases are zero in other networks, whatever the framework's order of gates. */
static int with_bias(struct builder *b, const char *bias, int x)
{
	int value = graph_find_value(b->graph, bias);

	if (value != VALUE_NONE) {
		b->graph->values[value].fill = FILL_NORMAL;
		b->graph->values[value].fill_scale = 0.3;
	}
	return x;
}

static int lstm(struct builder *b, int x)
{
	x = with_bias(b, "lstm.bias", build_lstm(b, "lstm", x, 24));
	return build_linear(b, "fc", x, 5);
}

static int rnn(struct builder *b, int x)
{
	x = with_bias(b, "rnn.bias", build_irnn(b, "rnn", x, 20, 0.1));
	return build_linear(b, "fc", x, 5);
}

/* Adds two recurrent layers after a convolution, so that the gradient of their input is needed. The
 * operators after them may be computed in place; this must not affect their own gradients. */
static int sequences(struct builder *b, int x)
{
	int last[2];

	x = build_relu(b, "relu", exercise_conv(b, "conv", x, 8, true));
	x = build_reshape(b, "rows", x, 3, (const int64_t[]){0, 8, 110});
	last[0] = with_bias(b, "lstm.bias", build_lstm(b, "lstm", x, 12));
	last[0] = build_relu(b, "relu_lstm", last[0]);
	last[1] = with_bias(b, "rnn.bias", build_irnn(b, "rnn", x, 7, 0.1));
	last[1] = build_node(b, OP_TANH, "tanh", &last[1], 1, NULL);
	return build_linear(b, "fc", build_concat(b, "concat", last, 2, 1), 5);
}

static int recurrent(struct builder *b, enum op op, const char *name, int x, int how)
{
	struct attributes a = {
		.sequence = how & 1,
		.reverse = (how & 2) / 2,
		.linear_before_reset = op == OP_GRU && how & 4,
		.activation = op == OP_RNN && how & 4,
	};
	char bias[32];

	snprintf(bias, sizeof(bias), "%s.bias", name);
	return with_bias(b, bias, build_recurrent(b, op, name, x, 9, &a));
}

/* All states and the last one, in both directions, of an LSTM, a GRU and an RNN with tanh. */
static int recurrences(struct builder *b, int x)
{
	int last[3];

	x = build_relu(b, "relu", exercise_conv(b, "conv", x, 8, true));
	x = build_reshape(b, "rows", x, 3, (const int64_t[]){0, 8, 110});
	x = recurrent(b, OP_LSTM, "lstm", x, 1 | 2);
	x = recurrent(b, OP_GRU, "linear", x, 1 | 2 | 4);
	last[0] = recurrent(b, OP_RNN, "tanh", x, 2 | 4);
	last[1] = recurrent(b, OP_GRU, "last", x, 4);
	x = recurrent(b, OP_RNN, "states", x, 1 | 4);
	last[2] = build_flatten(b, "flat", build_slice(b, "one", x, 1, 3, 4, 1));
	return build_linear(b, "fc", build_concat(b, "concat", last, 3, 1), 5);
}

/* The GRU that resets before the product, with all states and the last one. */
static int gru_reset(struct builder *b, int x)
{
	x = build_relu(b, "relu", exercise_conv(b, "conv", x, 8, true));
	x = build_reshape(b, "rows", x, 3, (const int64_t[]){0, 8, 110});
	x = recurrent(b, OP_GRU, "every", x, 1);
	return build_linear(b, "fc", recurrent(b, OP_GRU, "last", x, 2), 5);
}

static int squares(struct builder *b, int x)
{
	struct window window = window_square(3, 2, 0);

	x = build_relu(b, "relu", exercise_conv(b, "conv1", x, 20, true));
	x = build_max_pool_window(
		b, "pool", build_relu(b, "relu2", exercise_conv(b, "conv2", x, 32, true)), &window);
	return build_flatten(b, "flatten", x);
}

/* Adds a weight in MatMul's layout, [in, out], and a scaled product. */
static int products(struct builder *b, int x)
{
	struct attributes attributes;
	int inputs[3];

	operator_default_attributes(OP_GEMM, &attributes);
	x = build_relu(b, "relu", exercise_conv(b, "conv", x, 4, true));
	inputs[0] = build_flatten(b, "flatten", x);
	inputs[1] = build_parameter(b, "plain.weight", 2, (const int64_t[]){440, 24},
				    FILL_HE_NORMAL, 440);
	inputs[0] = build_relu(b, "relu.plain",
			       build_node(b, OP_GEMM, "plain", inputs, 2, &attributes));
	inputs[1] = build_parameter(b, "scaled.weight", 2, (const int64_t[]){24, 18},
				    FILL_HE_NORMAL, 24);
	inputs[2] = build_parameter(b, "scaled.bias", 1, (const int64_t[]){18}, FILL_NORMAL, 1);
	attributes.alpha = 0.5;
	attributes.beta = 2;
	x = build_node(b, OP_GEMM, "scaled", inputs, 3, &attributes);
	return build_linear(b, "fc", build_relu(b, "relu.scaled", x), 5);
}

/* Adds the output of a convolution to itself, and to a function of itself: fusions may expect
 * another value there. */
static int doubled(struct builder *b, int x)
{
	x = exercise_conv(b, "conv1", x, 16, true);
	x = exercise_conv(b, "conv2", build_add(b, "twice", x, x), 16, true);
	x = build_add(b, "bent", x, build_tanh(b, "tanh", x));
	x = build_relu(b, "relu", x);
	return exercise_finish(b, build_add(b, "again", x, x));
}

#define IMAGE                                                                                      \
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 10, 11}}}, .input_count = 1,           \
	.classes = 5

const struct network exercise_operators[EXERCISE_OPERATORS] = {
	{.name = "batch_norm", IMAGE, .layers = batch_norm},
	{.name = "flat_batch_norm", IMAGE, .layers = flat_batch_norm},
	{.name = "pools", IMAGE, .layers = pools},
	{.name = "overhang_counts", IMAGE, .layers = overhang_counts},
	{.name = "overhang_leaves", IMAGE, .layers = overhang_leaves},
	{.name = "max_pools", IMAGE, .layers = max_pools},
	{.name = "layer_norm", IMAGE, .layers = layer_norm},
	{.name = "attention", IMAGE, .layers = attention},
	{.name = "lrn", IMAGE, .layers = lrn},
	{.name = "lrn_pool", IMAGE, .layers = lrn_pool},
	{.name = "lrn_root", IMAGE, .layers = lrn_root},
	{.name = "functions", IMAGE, .layers = functions},
	{.name = "every_function", IMAGE, .layers = every_function},
	{.name = "joins", IMAGE, .layers = joins},
	{.name = "pads", IMAGE, .layers = pads},
	{.name = "channel_pads", IMAGE, .layers = channel_pads},
	{.name = "orders", IMAGE, .layers = orders},
	{.name = "broadcasts", IMAGE, .layers = broadcasts},
	{.name = "separable", IMAGE, .layers = separable},
	{.name = "lstm",
	 .inputs = {{.name = "input", .rank = 2, .dims = {9, 13}}},
	 .input_count = 1,
	 .classes = 5,
	 .layers = lstm},
	{.name = "rnn",
	 .inputs = {{.name = "input", .rank = 2, .dims = {12, 3}}},
	 .input_count = 1,
	 .classes = 5,
	 .layers = rnn},
	{.name = "sequences", IMAGE, .layers = sequences},
	{.name = "recurrences", IMAGE, .layers = recurrences},
	{.name = "gru_reset", IMAGE, .layers = gru_reset},
	{.name = "products", IMAGE, .layers = products},
	{.name = "doubled", IMAGE, .layers = doubled},
	{.name = "squares", IMAGE, .half_squares = true, .layers = squares},
};
