#include "tests/unit/operator_cases.h"

#include <assert.h>

#include "tests/unit/test_layers.h"
#include "unit_test.h"

#define BATCH 3

static int conv(struct builder *b, int x)
{
	struct window window = {.kernel = {3, 2}};

	return build_conv_window(b, "tested", x, 3, &window, 1, true);
}

static int conv_lopsided(struct builder *b, int x)
{
	struct window window = {
		.kernel = {3, 3}, .strides = {2, 3}, .dilations = {2, 1}, .pads = {1, 0, 2, 3}};

	return build_conv_window(b, "tested", x, 3, &window, 1, true);
}

static int conv_in_groups(struct builder *b, int x)
{
	struct window window = window_square(2, 1, 1);

	return build_conv_window(b, "tested", x, 6, &window, 2, false);
}

static int conv_depthwise(struct builder *b, int x)
{
	struct window window = window_square(3, 1, 1);

	return build_conv_window(b, "tested", x, 3, &window, 3, true);
}

static int conv_transpose(struct builder *b, int x)
{
	struct window window = {.kernel = {2, 2}, .strides = {2, 2}};

	return build_conv_transpose(b, "tested", x, 3, &window, 1);
}

static int conv_transpose_lopsided(struct builder *b, int x)
{
	struct attributes attributes = {.kernel = {3, 2},
					.strides = {2, 3},
					.dilations = {2, 1},
					.pads = {1, 0, 2, 1},
					.output_padding = {1, 2},
					.group = 2};
	int w = build_parameter(b, "w", 4, (const int64_t[]){4, 3, 3, 2}, FILL_ZERO, 1);

	return build_node(b, OP_CONV_TRANSPOSE, "tested", (const int[]){x, w}, 2, &attributes);
}

static int conv_transpose_depthwise(struct builder *b, int x)
{
	struct window window = window_square(3, 2, 1);

	return build_conv_transpose(b, "tested", x, 3, &window, 3);
}

static int max_pool(struct builder *b, int x)
{
	return build_max_pool(b, "tested", x, 2, 2);
}

static int max_pool_overlapping(struct builder *b, int x)
{
	struct window window = {.kernel = {3, 3}, .strides = {1, 2}, .pads = {1, 0, 2, 1}};

	return build_max_pool_window(b, "tested", x, &window);
}

static int max_pool_dilated(struct builder *b, int x)
{
	struct window window = {
		.kernel = {2, 3}, .strides = {3, 2}, .dilations = {2, 2}, .ceil_mode = true};

	return build_max_pool_window(b, "tested", x, &window);
}

static int gemm_of(struct builder *b, int x, int64_t rows, int64_t columns, bool bias,
		   struct attributes attributes)
{
	int w = build_parameter(b, "w", 2, (const int64_t[]){rows, columns}, FILL_ZERO, 1);
	int c = bias ? build_parameter(b, "b", 1, (const int64_t[]){4}, FILL_ZERO, 1) : VALUE_NONE;

	return build_node(b, OP_GEMM, "tested", (const int[]){x, w, c}, bias ? 3 : 2, &attributes);
}

static int gemm(struct builder *b, int x)
{
	return gemm_of(b, x, 5, 4, true, (struct attributes){.alpha = 1, .beta = 1});
}

static int gemm_transposed(struct builder *b, int x)
{
	return gemm_of(b, x, 4, 5, true,
		       (struct attributes){.alpha = 1, .beta = 1, .trans_b = true});
}

static int gemm_scaled(struct builder *b, int x)
{
	return gemm_of(b, x, 4, 5, true,
		       (struct attributes){.alpha = 0.7, .beta = -1.3, .trans_b = true});
}

/* The product is square, so that it keeps the batch: 3 samples, 3 features. */
static int gemm_both_transposed(struct builder *b, int x)
{
	return gemm_of(
		b, x, 4, 3, false,
		(struct attributes){.alpha = 1.5, .beta = 1, .trans_a = true, .trans_b = true});
}

static int flatten(struct builder *b, int x)
{
	return build_flatten(b, "tested", x);
}

static int dropout(struct builder *b, int x)
{
	return build_dropout(b, "tested", x, 0.3);
}

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

/* The second's gradients pass through the statistics of the first. */
static int batch_norm_twice(struct builder *b, int x)
{
	x = build_batch_norm(b, "first", x, 1e-5, 0.9);
	x = build_tanh(b, "between", x);
	return build_batch_norm(b, "tested", x, 0.1, 0.99);
}

static int layer_norm(struct builder *b, int x)
{
	return build_layer_norm(b, "tested", x, 2, 1e-3);
}

static int layer_norm_of_images(struct builder *b, int x)
{
	return build_layer_norm(b, "tested", x, 1, 1e-3);
}

static int group_norm(struct builder *b, int x)
{
	return build_group_norm(b, "tested", x, 2);
}

static int group_norm_of_features(struct builder *b, int x)
{
	return build_group_norm(b, "tested", x, 1);
}

static int instance_norm(struct builder *b, int x)
{
	return build_group_norm(b, "tested", x, 0);
}

static int rms_norm(struct builder *b, int x)
{
	return build_rms_norm(b, "tested", x, 2, 1e-3);
}

static int rms_norm_of_images(struct builder *b, int x)
{
	return build_rms_norm(b, "tested", x, 1, 1e-3);
}

static int swish(struct builder *b, int x)
{
	struct attributes attributes = {.alpha = -1.7};

	return build_node(b, OP_SWISH, "tested", &x, 1, &attributes);
}

static int cube(struct builder *b, int x)
{
	struct attributes attributes = {.exponent = 3};

	return build_node(b, OP_POW, "tested", &x, 1, &attributes);
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

static int hard_sigmoid(struct builder *b, int x)
{
	return build_hard_sigmoid(b, "tested", x, 0.4, 0.45);
}

static int hard_sigmoid_falling(struct builder *b, int x)
{
	return build_hard_sigmoid(b, "tested", x, -0.4, 0.45);
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

static int resize_nearest(struct builder *b, int x)
{
	return build_resize(b, "tested", x, 3, 2, RESIZE_NEAREST, RESIZE_HALF_PIXEL);
}

static int resize_linear(struct builder *b, int x)
{
	return build_resize(b, "tested", x, 2, 3, RESIZE_LINEAR, RESIZE_HALF_PIXEL);
}

static int resize_corners(struct builder *b, int x)
{
	return build_resize(b, "tested", x, 2, 4, RESIZE_LINEAR, RESIZE_ALIGN_CORNERS);
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

/* A channel shuffle: not its own inverse. */
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

/* The divisors stay away from zero. */
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

/* Self-attention of two heads, whose factors depend on the same values. */
static int attention(struct builder *b, int x)
{
	int keys = build_transpose(b, "keys", x, (const int64_t[]){0, 1, 3, 2});
	int weights = build_softmax(b, "weights", build_matmul(b, "scores", x, keys), -1);

	return build_matmul(b, "tested", weights, build_tanh(b, "tanh", x));
}

/* Each factor is repeated for samples or heads; none is square. */
static int matmul_broadcast(struct builder *b, int x)
{
	int right = build_parameter(b, "right", 3, (const int64_t[]){2, 4, 5}, FILL_ZERO, 1);
	int left = build_parameter(b, "left", 2, (const int64_t[]){6, 3}, FILL_ZERO, 1);
	int last = build_parameter(b, "last", 4, (const int64_t[]){1, 2, 5, 2}, FILL_ZERO, 1);

	x = build_matmul(b, "first", left, build_matmul(b, "second", x, right));
	return build_matmul(b, "tested", x, last);
}

static int matmul_of_matrices(struct builder *b, int x)
{
	int w = build_parameter(b, "w", 2, (const int64_t[]){7, 4}, FILL_ZERO, 1);

	return build_matmul(b, "tested", x,
			    build_transpose(b, "turned", w, (const int64_t[]){1, 0}));
}

/* A learned token before those of each sample. */
static int expand(struct builder *b, int x)
{
	int token = build_parameter(b, "token", 3, (const int64_t[]){1, 1, 4}, FILL_ZERO, 1);
	int two = build_parameter(b, "two", 1, (const int64_t[]){4}, FILL_ZERO, 1);

	token = build_expand(b, "repeated", token, 3, (const int64_t[]){BATCH, 1, 4});
	two = build_expand(b, "more", two, 3, (const int64_t[]){BATCH, 2, 1});
	return build_concat(b, "tested", (const int[]){token, two, x}, 3, 1);
}

static int lstm(struct builder *b, int x)
{
	return build_lstm(b, "tested", x, 3);
}

static int irnn(struct builder *b, int x)
{
	return build_irnn(b, "tested", x, 4, 0.5);
}

static int recurrent(struct builder *b, enum op op, int x, bool sequence, bool reverse, int option)
{
	struct attributes a;

	operator_default_attributes(op, &a);
	a.sequence = sequence;
	a.reverse = reverse;
	a.activation = option;
	a.linear_before_reset = op == OP_GRU && option;
	x = build_recurrent(b, op, "tested", x, 3, &a);
	return sequence ? build_slice(b, "late", x, 1, 1, 4, 1) : x;
}

static int lstm_backwards(struct builder *b, int x)
{
	return recurrent(b, OP_LSTM, x, true, true, 0);
}

static int rnn_tanh(struct builder *b, int x)
{
	return recurrent(b, OP_RNN, x, true, false, 1);
}

static int rnn_backwards(struct builder *b, int x)
{
	return recurrent(b, OP_RNN, x, false, true, 1);
}

static int gru(struct builder *b, int x)
{
	return recurrent(b, OP_GRU, x, false, false, 0);
}

static int gru_sequence(struct builder *b, int x)
{
	return recurrent(b, OP_GRU, x, true, false, 1);
}

static int gru_backwards(struct builder *b, int x)
{
	return recurrent(b, OP_GRU, x, true, true, 0);
}

static int rectangular_conv(struct builder *b, int x)
{
	struct window wide = {.kernel = {1, 5}, .pads = {0, 3, 0, 1}};
	struct window high = {.kernel = {3, 1}, .dilations = {2, 1}, .pads = {2, 0, 1, 0}};

	x = build_conv_window(b, "wide", x, 4, &wide, 2, false);
	return build_conv_window(b, "tested", x, 2, &high, 1, true);
}

/* Gathers rows of a parameter by a separate input: one row twice, and some never. */
static int gather(struct builder *b, int x)
{
	int rows = build_input(b, "rows", DTYPE_I64, BATCH, 1, (const int64_t[]){2});
	int taken = build_embedding(b, "tested", rows, 5, 4);

	return build_mul(b, "weighted", taken, x);
}

static const struct operator_case cases[] = {
	{"Conv", 3, {2, 5, 6}, conv, OP_COUNT},
	{"Conv with stride, dilation and lopsided padding", 3, {2, 7, 8}, conv_lopsided, OP_COUNT},
	{"Conv in groups, without bias", 3, {4, 4, 4}, conv_in_groups, OP_COUNT},
	{"Conv, depthwise", 3, {3, 4, 4}, conv_depthwise, OP_COUNT},
	{"ConvTranspose", 3, {4, 3, 2}, conv_transpose, OP_COUNT},
	{"ConvTranspose in groups, with everything",
	 3,
	 {4, 3, 4},
	 conv_transpose_lopsided,
	 OP_COUNT},
	{"ConvTranspose, depthwise", 3, {3, 3, 2}, conv_transpose_depthwise, OP_COUNT},
	{"MaxPool", 3, {2, 4, 6}, max_pool, OP_COUNT},
	{"MaxPool, overlapping, padded", 3, {2, 5, 6}, max_pool_overlapping, OP_COUNT},
	{"MaxPool, dilated, rounded up", 3, {1, 6, 8}, max_pool_dilated, OP_COUNT},
	{"Gemm", 1, {5}, gemm, OP_COUNT},
	{"Gemm, transposed weights", 1, {5}, gemm_transposed, OP_COUNT},
	{"Gemm, everything scaled", 1, {5}, gemm_scaled, OP_COUNT},
	{"Gemm, both transposed", 1, {3}, gemm_both_transposed, OP_COUNT},
	{"Flatten", 3, {2, 3, 2}, flatten, OP_COUNT},
	{"Dropout", 1, {12}, dropout, OP_COUNT},
	{"AveragePool", 3, {2, 4, 7}, average_pool, OP_COUNT},
	{"AveragePool, padded", 3, {2, 4, 6}, average_pool_padded, OP_COUNT},
	{"AveragePool, padding counts", 3, {2, 6, 6}, average_pool_counting_padding, OP_COUNT},
	{"GlobalAveragePool", 3, {2, 3, 4}, global_average_pool, OP_COUNT},
	{"BatchNormalization", 3, {2, 3, 2}, batch_norm, OP_COUNT},
	{"BatchNormalization of features", 1, {4}, batch_norm, OP_COUNT},
	{"BatchNormalization twice", 3, {3, 2, 2}, batch_norm_twice, OP_COUNT},
	{"LayerNormalization", 2, {3, 5}, layer_norm, OP_COUNT},
	{"LayerNormalization over several axes", 3, {2, 3, 2}, layer_norm_of_images, OP_COUNT},
	{"GroupNormalization", 3, {4, 2, 3}, group_norm, OP_COUNT},
	{"GroupNormalization, one group", 2, {3, 4}, group_norm_of_features, OP_COUNT},
	{"InstanceNormalization", 3, {3, 2, 3}, instance_norm, OP_COUNT},
	{"RMSNormalization", 2, {3, 5}, rms_norm, OP_COUNT},
	{"RMSNormalization over several axes", 3, {2, 3, 2}, rms_norm_of_images, OP_COUNT},
	{"Swish of another slope", 1, {6}, swish, OP_COUNT},
	{"Pow, any sign", 1, {6}, cube, OP_COUNT},
	{"LRN", 3, {5, 2, 2}, lrn, OP_COUNT},
	{"LRN, even size", 3, {6, 2, 2}, lrn_even, OP_COUNT},
	{"LRN, wider than the channels", 3, {4, 2, 2}, lrn_wider_than_channels, OP_COUNT},
	{"HardSigmoid, rising", 3, {2, 3, 3}, hard_sigmoid, OP_COUNT},
	{"HardSigmoid, falling", 3, {2, 3, 3}, hard_sigmoid_falling, OP_COUNT},
	{"SiLU", 1, {6}, silu, OP_COUNT},
	{"Clip, both ends", 3, {2, 3, 3}, clip, OP_COUNT},
	{"Softmax", 1, {6}, softmax, OP_COUNT},
	{"Softmax of channels", 3, {4, 2, 3}, softmax_of_channels, OP_COUNT},
	{"Softmax of the last of four axes", 3, {2, 3, 5}, softmax, OP_COUNT},
	{"MatMul, attention", 3, {2, 3, 4}, attention, OP_COUNT},
	{"MatMul, broadcast", 3, {2, 3, 4}, matmul_broadcast, OP_COUNT},
	{"MatMul of matrices", 1, {4}, matmul_of_matrices, OP_COUNT},
	{"Expand", 2, {3, 4}, expand, OP_COUNT},
	{"Concat of channels", 3, {2, 3, 2}, concat, OP_COUNT},
	{"Concat of rows", 3, {2, 3, 2}, concat_rows, OP_COUNT},
	{"Slice", 3, {3, 2, 6}, slices, OP_COUNT},
	{"Resize, nearest", 3, {2, 2, 3}, resize_nearest, OP_COUNT},
	{"Resize, linear", 3, {2, 3, 2}, resize_linear, OP_COUNT},
	{"Resize, linear with aligned corners", 3, {2, 1, 3}, resize_corners, OP_COUNT},
	{"Pad", 3, {2, 2, 3}, pad, OP_COUNT},
	{"Reshape", 3, {4, 2, 3}, reshape, OP_COUNT},
	{"Transpose", 3, {2, 3, 4}, transpose, OP_COUNT},
	{"ReduceMean", 3, {2, 3, 4}, reduce_mean, OP_COUNT},
	{"ReduceMean, dimensions kept", 3, {2, 3, 4}, reduce_mean_kept, OP_COUNT},
	{"Mul, broadcast", 3, {3, 2, 2}, mul_broadcast, OP_COUNT},
	{"Sub, broadcast", 3, {2, 4, 3}, sub_broadcast, OP_COUNT},
	{"Add, broadcast", 3, {2, 4, 5}, add_broadcast, OP_COUNT},
	{"Div, broadcast", 3, {2, 2, 5}, div_broadcast, OP_COUNT},
	{"Div by what depends on the same", 1, {6}, div_by_itself, OP_COUNT},
	{"LSTM", 2, {5, 4}, lstm, OP_COUNT},
	{"LSTM, every state, last time first", 2, {5, 4}, lstm_backwards, OP_COUNT},
	{"RNN", 2, {5, 3}, irnn, OP_COUNT},
	{"RNN of tanh, every state", 2, {5, 3}, rnn_tanh, OP_COUNT},
	{"RNN of tanh, last time first", 2, {5, 3}, rnn_backwards, OP_COUNT},
	{"GRU", 2, {5, 4}, gru, OP_COUNT},
	{"GRU, linear before reset, every state", 2, {5, 4}, gru_sequence, OP_COUNT},
	{"GRU, every state, last time first", 2, {5, 4}, gru_backwards, OP_COUNT},
	{"Gather", 2, {2, 4}, gather, OP_COUNT},
	{"Conv, rectangular", 3, {4, 5, 6}, rectangular_conv, OP_COUNT},
};

#define CASES (COUNT(cases))

static struct operator_case functions[OP_COUNT];

const struct operator_case *operator_case_at(size_t i)
{
	size_t place = CASES;

	if (i < CASES)
		return &cases[i];
	for (int op = 0; op < OP_COUNT; op++) {
		if (!operator_row((enum op)op)->elementwise || place++ < i)
			continue;
		functions[op] = (struct operator_case){
			operator_name((enum op)op), 3, {2, 3, 3}, NULL, (enum op)op};
		return &functions[op];
	}
	return NULL;
}

const struct operator_case *operator_case_find(const char *what)
{
	const struct operator_case *c;

	for (size_t i = 0; (c = operator_case_at(i)) != NULL; i++) {
		if (strcmp(c->what, what) == 0)
			return c;
	}
	assert(false);
	return NULL;
}

int operator_case_function(struct builder *b, enum op op, const char *name, int x)
{
	char names[2][64];

	snprintf(names[0], sizeof(names[0]), "%s.one", name);
	snprintf(names[1], sizeof(names[1]), "%s.two", name);
	if (operator_row(op)->elementwise->positive)
		x = build_node(b, OP_SIGMOID, names[0], &x, 1, NULL);
	else if (operator_row(op)->elementwise->kinks)
		x = build_add(b, names[1], build_add(b, names[0], x, x), x);
	return build_node(b, op, name, &x, 1, NULL);
}

enum prony_status operator_case_build(const struct operator_case *c, bool half_squares,
				      struct graph *graph, struct error *err)
{
	struct builder b = {.graph = graph, .error = ERROR_INIT};
	int64_t dims[4] = {BATCH, c->dims[0], c->dims[1], c->dims[2]};

	graph_init(graph, c->what);
	int x = build_input(&b, "input", DTYPE_F32, BATCH, c->rank, c->dims);
	int p = build_parameter(&b, "p", c->rank + 1, dims, FILL_ZERO, 1);
	int h = build_add(&b, "sum", x, p);

	h = c->layers ? c->layers(&b, h) : operator_case_function(&b, c->op, "tested", h);
	if (b.error.code == PRONY_OK && graph->values[h].shape.rank != 2)
		h = build_flatten(&b, "flat", h);
	int logits = build_linear(&b, "out", h, 4);
	return half_squares ? build_finish_half_squares(&b, logits, err)
			    : build_finish(&b, logits, 0, NULL, err);
}
