#include "tests/unit/operator_cases.h"

#include <assert.h>
#include <string.h>

#define BATCH 3

static int average_pool(struct builder *b, int x)
{
	struct window window = {.kernel = {2, 3}, .strides = {1, 2}};

	return build_average_pool(b, "tested", x, &window, false);
}

static int average_pool_padded(struct builder *b, int x)
{
	struct window window = {
		.kernel = {3, 2}, .strides = {2, 2}, .pads = {1, 0, 2, 1}, .ceil_mode = true};

	return build_average_pool(b, "tested", x, &window, false);
}

static int average_pool_counting_padding(struct builder *b, int x)
{
	struct window window = {
		.kernel = {3, 2}, .strides = {2, 2}, .pads = {1, 1, 1, 0}, .ceil_mode = true};

	return build_average_pool(b, "tested", x, &window, true);
}

static int global_average_pool(struct builder *b, int x)
{
	return build_global_average_pool(b, "tested", x);
}

static int batch_norm(struct builder *b, int x)
{
	return build_batch_norm(b, "tested", x, 1e-3, 0.9);
}

/* Its gradients pass through the statistics of the first. */
static int batch_norm_twice(struct builder *b, int x)
{
	x = build_batch_norm(b, "first", x, 1e-5, 0.9);
	x = build_tanh(b, "between", x);
	return build_batch_norm(b, "tested", x, 0.1, 0.99);
}

static int lrn(struct builder *b, int x)
{
	return build_lrn(b, "tested", x, 3, 0.7, 0.75, 2);
}

static int lrn_even(struct builder *b, int x)
{
	return build_lrn(b, "tested", x, 4, 0.7, 0.6, 1);
}

static int lrn_wider_than_channels(struct builder *b, int x)
{
	return build_lrn(b, "tested", x, 11, 1.5, 0.75, 1);
}

static int tanh_layer(struct builder *b, int x)
{
	return build_tanh(b, "tested", x);
}

static int sigmoid(struct builder *b, int x)
{
	return build_sigmoid(b, "tested", x);
}

static int hard_sigmoid(struct builder *b, int x)
{
	return build_hard_sigmoid(b, "tested", x, 0.4, 0.45);
}

static int hard_sigmoid_falling(struct builder *b, int x)
{
	return build_hard_sigmoid(b, "tested", x, -0.4, 0.45);
}

static int hard_swish(struct builder *b, int x)
{
	/* Of numbers large enough to meet all three pieces. */
	int three = build_add(b, "three", build_add(b, "two", x, x), x);

	return build_hard_swish(b, "tested", three);
}

static int silu(struct builder *b, int x)
{
	return build_silu(b, "tested", x);
}

static int clip(struct builder *b, int x)
{
	return build_clip(b, "tested", x, -0.5, 0.8);
}

static int softmax(struct builder *b, int x)
{
	return build_softmax(b, "tested", x, -1);
}

static int softmax_of_channels(struct builder *b, int x)
{
	return build_softmax(b, "tested", x, 1);
}

static int identity(struct builder *b, int x)
{
	return build_identity(b, "tested", x);
}

static int concat(struct builder *b, int x)
{
	struct window window = window_square(1, 1, 0);
	int y = build_conv_window(b, "branch", x, 3, &window, 1, false);

	return build_concat(b, "tested", (const int[]){x, y, build_relu(b, "relu", y), x}, 4, -3);
}

static int concat_rows(struct builder *b, int x)
{
	return build_concat(b, "tested", (const int[]){x, build_tanh(b, "tanh", x)}, 2, 2);
}

static int slices(struct builder *b, int x)
{
	int first = build_slice(b, "first", x, 1, 0, 2, 1);
	int last = build_slice(b, "last", x, 1, -2, INT32_MAX, 1);

	return build_slice(b, "tested", build_mul(b, "product", first, last), -1, 1, -1, 2);
}

static int pad(struct builder *b, int x)
{
	return build_pad(b, "tested", x, (const int64_t[]){0, 1, 0, 2, 0, 0, 3, 1}, 0.5);
}

static int reshape(struct builder *b, int x)
{
	int y = build_reshape(b, "split", x, 4, (const int64_t[]){0, 2, -1, 3});

	return build_tanh(b, "tested", y);
}

/* Channel shuffle: not its own inverse. */
static int transpose(struct builder *b, int x)
{
	int y = build_transpose(b, "turned", x, (const int64_t[]){0, 2, 3, 1});

	return build_softmax(b, "tested", y, 1);
}

static int reduce_mean(struct builder *b, int x)
{
	return build_reduce_mean(b, "tested", x, (const int64_t[]){-1, 2}, 2, false);
}

static int reduce_mean_kept(struct builder *b, int x)
{
	return build_reduce_mean(b, "tested", x, (const int64_t[]){1, 3}, 2, true);
}

/* Squeeze and excite: a factor for each channel. */
static int mul_broadcast(struct builder *b, int x)
{
	int mean = build_global_average_pool(b, "mean", x);

	return build_mul(b, "tested", x, build_sigmoid(b, "gate", mean));
}

static int sub_broadcast(struct builder *b, int x)
{
	int w = build_parameter(b, "w", 2, (const int64_t[]){4, 1}, FILL_ZERO, 1);
	int v = build_parameter(b, "v", 3, (const int64_t[]){2, 1, 3}, FILL_ZERO, 1);

	return build_sub(b, "tested", build_sub(b, "left", w, x), v);
}

static int add_broadcast(struct builder *b, int x)
{
	int w = build_parameter(b, "w", 3, (const int64_t[]){2, 1, 5}, FILL_ZERO, 1);

	return build_add(b, "tested", x, w);
}

/* By numbers that keep away from zero. */
static int div_broadcast(struct builder *b, int x)
{
	int w = build_parameter(b, "w", 1, (const int64_t[]){5}, FILL_ZERO, 1);
	int two = build_state(b, "two", 0, NULL, FILL_ONE);

	w = build_add(b, "positive", build_mul(b, "square", w, w), two);
	return build_div(b, "tested", x, w);
}

static int div_by_itself(struct builder *b, int x)
{
	int one = build_state(b, "one", 0, NULL, FILL_ONE);
	int y = build_add(b, "positive", build_mul(b, "square", x, x), one);

	return build_div(b, "tested", build_sub(b, "other", one, x), y);
}

static int lstm(struct builder *b, int x)
{
	return build_lstm(b, "tested", x, 3);
}

static int irnn(struct builder *b, int x)
{
	return build_irnn(b, "tested", x, 4, 0.5);
}

static int rectangular_conv(struct builder *b, int x)
{
	struct window wide = {.kernel = {1, 5}, .pads = {0, 3, 0, 1}};
	struct window high = {.kernel = {3, 1}, .dilations = {2, 1}, .pads = {2, 0, 1, 0}};

	x = build_conv_window(b, "wide", x, 4, &wide, 2, false);
	return build_conv_window(b, "tested", x, 2, &high, 1, true);
}

const struct operator_case operator_cases[] = {
	{"AveragePool", 3, {2, 4, 7}, average_pool},
	{"AveragePool, padded", 3, {2, 4, 6}, average_pool_padded},
	{"AveragePool, padding counts", 3, {2, 6, 6}, average_pool_counting_padding},
	{"GlobalAveragePool", 3, {2, 3, 4}, global_average_pool},
	{"BatchNormalization", 3, {2, 3, 2}, batch_norm},
	{"BatchNormalization of features", 1, {4}, batch_norm},
	{"BatchNormalization twice", 3, {3, 2, 2}, batch_norm_twice},
	{"LRN", 3, {5, 2, 2}, lrn},
	{"LRN, even size", 3, {6, 2, 2}, lrn_even},
	{"LRN, wider than the channels", 3, {4, 2, 2}, lrn_wider_than_channels},
	{"Tanh", 1, {6}, tanh_layer},
	{"Sigmoid", 1, {6}, sigmoid},
	{"HardSigmoid", 3, {2, 3, 3}, hard_sigmoid},
	{"HardSigmoid, falling", 3, {2, 3, 3}, hard_sigmoid_falling},
	{"HardSwish", 3, {2, 3, 3}, hard_swish},
	{"SiLU", 1, {6}, silu},
	{"Clip", 3, {2, 3, 3}, clip},
	{"Softmax", 1, {6}, softmax},
	{"Softmax of channels", 3, {4, 2, 3}, softmax_of_channels},
	{"Identity", 1, {6}, identity},
	{"Concat of channels", 3, {2, 3, 2}, concat},
	{"Concat of rows", 3, {2, 3, 2}, concat_rows},
	{"Slice", 3, {3, 2, 6}, slices},
	{"Pad", 3, {2, 2, 3}, pad},
	{"Reshape", 3, {4, 2, 3}, reshape},
	{"Transpose", 3, {2, 3, 4}, transpose},
	{"ReduceMean", 3, {2, 3, 4}, reduce_mean},
	{"ReduceMean, dimensions kept", 3, {2, 3, 4}, reduce_mean_kept},
	{"Mul, broadcast", 3, {3, 2, 2}, mul_broadcast},
	{"Sub, broadcast", 3, {2, 4, 3}, sub_broadcast},
	{"Add, broadcast", 3, {2, 4, 5}, add_broadcast},
	{"Div, broadcast", 3, {2, 2, 5}, div_broadcast},
	{"Div by what depends on the same", 1, {6}, div_by_itself},
	{"LSTM", 2, {5, 4}, lstm},
	{"RNN", 2, {5, 3}, irnn},
	{"Conv, rectangular", 3, {4, 5, 6}, rectangular_conv},
};
const size_t operator_case_count = sizeof(operator_cases) / sizeof(operator_cases[0]);

const struct operator_case *operator_case_find(const char *what)
{
	for (size_t i = 0; i < operator_case_count; i++) {
		if (strcmp(operator_cases[i].what, what) == 0)
			return &operator_cases[i];
	}
	assert(false);
	return NULL;
}

enum prony_status operator_case_build(const struct operator_case *c, bool half_squares,
				      struct graph *graph, struct error *err)
{
	struct builder b = {.graph = graph, .error = ERROR_INIT};
	int64_t dims[4] = {BATCH, c->dims[0], c->dims[1], c->dims[2]};

	graph_init(graph, c->what);
	int x = build_input(&b, BATCH, c->rank, c->dims);
	int p = build_parameter(&b, "p", c->rank + 1, dims, FILL_ZERO, 1);
	int h = c->layers(&b, build_add(&b, "sum", x, p));
	if (b.error.code == PRONY_OK && graph->values[h].shape.rank != 2)
		h = build_flatten(&b, "flat", h);
	int logits = build_linear(&b, "out", h, 4);
	return half_squares ? build_finish_half_squares(&b, logits, err)
			    : build_finish(&b, logits, err);
}
