/* Tests the native executor operator by operator against the float64 reference. Small networks
 * place each operator between layers with blocked and with odd numbers of channels; forward,
 * backward and updates are compared. Skipped if oneDNN is not installed. */
#include "adapters/native/cpu/kernels/winograd.h"
#include "adapters/native/native.h"
#include "exercise_networks.h"
#include "framework_exercise.h"
#include "framework_gate.h"
#include "tests/unit/test_layers.h"
#include "unit_test.h"

static const char *library;

static int flat_batch_norm(struct builder *b, int x)
{
	/* Not directly before the normalisation, where a bias has no gradient. */
	x = build_linear(b, "fc1",
			 build_flatten(b, "flatten", exercise_conv(b, "conv", x, 20, true)), 40);
	x = build_batch_norm(b, "bn", build_tanh(b, "tanh", x), 1e-3, 0.9);
	x = build_relu(b, "relu", x);
	return build_linear(b, "fc2", x, 5);
}

static int separable(struct builder *b, int x)
{
	return exercise_separable(b, x, build_tanh);
}

static int max_pools(struct builder *b, int x)
{
	struct window same = window_square(3, 1, 1), half = window_square(3, 2, 0);

	half.pads[2] = half.pads[3] = 1;
	/* No saturating function: for equal elements of a window the gradient is not defined
	 * uniquely. */
	x = build_max_pool_window(b, "same", exercise_conv(b, "conv1", x, 32, true), &same);
	x = build_relu(b, "relu", exercise_conv(b, "conv2", x, 64, true));
	x = build_max_pool_window(b, "overlap", x, &same);
	x = exercise_conv(b, "conv3", x, 64, true);
	return exercise_finish(b, build_max_pool_window(b, "half", x, &half));
}

static int lrn(struct builder *b, int x)
{
	x = build_lrn(b, "lrn1", exercise_conv(b, "conv1", x, 32, true), 5, 0.5, 0.75, 1);
	x = build_lrn(b, "lrn2", exercise_conv(b, "conv2", x, 20, true), 9, 0.3, 0.75, 2);
	return exercise_finish(
		b, build_lrn(b, "lrn3", exercise_conv(b, "conv3", x, 8, true), 4, 0.5, 0.5, 1));
}

/* After a grouped convolution, the normalisation and its gradient read a copy in another layout.
 * Values computed in between must not overwrite that copy. */
static int lrn_of_a_copy(struct builder *b, int x)
{
	struct window same = window_square(3, 1, 1);

	x = build_conv_window(b, "conv", x, 18, &same, 3, true);
	return exercise_finish(b, build_lrn(b, "lrn", x, 5, 0.5, 0.75, 1));
}

/* Products with enough weights for the executor's own few-rows loop: after blocked channels, after
 * odd channels and after another product; with a function that the loop supports and one that it
 * does not. */
static int wide_products(struct builder *b, int x)
{
	x = build_flatten(b, "flatten1", exercise_conv(b, "conv1", x, 32, true));
	x = build_relu(b, "relu1", build_linear(b, "fc1", x, 301));
	x = build_tanh(b, "tanh1", build_linear(b, "fc2", x, 3520));
	return build_linear(b, "fc3", x, 299);
}

static int odd_product(struct builder *b, int x)
{
	x = build_flatten(b, "flatten1", exercise_conv(b, "conv1", x, 7, true));
	return build_linear(b, "fc1", x, 1365);
}

/* Gradients that are sums of many terms, some of joined parts, with and without a ReLU before and
 * after. */
static int joined(struct builder *b, int x)
{
	enum { FAN = 6 };
	struct window same = window_square(3, 1, 1);
	int parts[FAN], y;

	x = build_relu(b, "relu1", x);
	for (int i = 0; i < FAN; i++) {
		char name[2][8];

		snprintf(name[0], sizeof(name[0]), "fan%d", i);
		snprintf(name[1], sizeof(name[1]), "on%d", i);
		parts[i] = exercise_conv(b, name[0], x, 16, true);
		if (i % 2)
			parts[i] = build_relu(b, name[1], parts[i]);
	}
	y = build_concat(b, "join1", parts, FAN, 1);
	parts[0] = build_relu(b, "relu2", exercise_conv(b, "conv2", y, 16, true));
	parts[1] = build_max_pool_window(b, "pool", y, &same);
	parts[2] = exercise_conv(b, "conv3", y, 16, true);
	parts[3] = x;
	y = build_concat(b, "join2", parts, 4, 1);
	x = build_add(b, "add", exercise_conv(b, "conv4", y, 32, true),
		      exercise_conv(b, "conv5", y, 32, true));
	return exercise_finish(b, build_relu(b, "relu3", x));
}

static int joined_blocks(struct builder *b, int x)
{
	return joined(b, exercise_conv(b, "conv1", x, 32, true));
}

/* Channels last: the rows of the parts are interleaved. */
static int joined_channels_last(struct builder *b, int x)
{
	static const int64_t to[] = {0, 2, 3, 1}, back[] = {0, 3, 1, 2};

	x = build_transpose(b, "to", exercise_conv(b, "conv1", x, 32, true), to);
	return joined(b, build_transpose(b, "back", x, back));
}

/* Windows of 3x3 with enough channels for the executor's own algorithm if the batch has enough
 * tiles. Followed by a batch normalisation to fold, a sum, a ReLU and a function that it does not
 * support; without padding, with uneven padding, before and after channels last. */
static int square_windows(struct builder *b, int x)
{
	static const int64_t to[] = {0, 2, 3, 1}, back[] = {0, 3, 1, 2};
	struct window uneven = {.kernel = {3, 3}, .pads = {2, 0, 1, 3}}, none = {.kernel = {3, 3}};
	int y;

	y = build_global_average_pool(b, "mean", exercise_conv(b, "conv0", x, 32, true));
	y = exercise_conv(b, "point", build_sigmoid(b, "sigmoid0", y), 32, true);
	x = build_relu(b, "relu1", exercise_conv(b, "conv1", x, 32, true));
	x = build_mul(b, "mul1", x, build_sigmoid(b, "sigmoid1", y));
	x = build_batch_norm(b, "bn2", exercise_conv(b, "conv2", x, 48, false), 1e-3, 0.9);
	x = build_relu(b, "relu2", x);
	y = build_relu(b, "relu3", exercise_conv(b, "conv3", x, 48, true));
	y = build_batch_norm(b, "bn4", exercise_conv(b, "conv4", y, 48, false), 1e-3, 0.9);
	x = build_relu(b, "relu4", build_add(b, "add4", y, x));
	x = build_tanh(b, "tanh5", build_conv_window(b, "conv5", x, 80, &uneven, 1, true));
	x = build_transpose(b, "to", x, to);
	x = build_transpose(b, "back", build_sigmoid(b, "sigmoid6", x), back);
	return exercise_finish(b, build_conv_window(b, "conv7", x, 32, &none, 1, true));
}

/* A row of blocked channels becomes a column: the same bytes, which a sum adds to others. */
static int turned_row(struct builder *b, int x)
{
	static const int64_t turn[] = {0, 1, 3, 2};
	struct window row = {.kernel = {3, 3}, .pads = {0, 2, 0, 3}};

	x = build_transpose(b, "turn", build_conv_window(b, "row", x, 16, &row, 1, true), turn);
	x = build_add(b, "add", exercise_conv(b, "conv", x, 16, true), x);
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

/* Side and channels of the depthwise layers under test. */
static int64_t depthwise_side, depthwise_channels;

/* Strides 1 and 2 with uneven padding, with and without a bias; dilation; a ReLU that the layer may
 * fuse, and a batch normalisation that it may fold. */
static int depthwise(struct builder *b, int x)
{
	int64_t channels = depthwise_channels, side = depthwise_side, half = side / 2;
	struct window same = {.kernel = {side, side}, .strides = {1, 1}};
	struct window uneven = {.kernel = {side, side}, .strides = {2, 2}};
	/*
	 * Windows that lie completely in the padding: the library has no implementation for them.
	 */
	struct window far = {.kernel = {side, side}, .pads = {side, half, half, side + 1}};
	struct window wide = {.kernel = {3, 3}, .dilations = {2, 2}, .pads = {2, 1, 2, 3}};

	for (int i = 0; i < 4; i++) {
		same.pads[i] = half;
		uneven.pads[i] = half + (i == 3) - (i == 0);
	}
	x = build_tanh(b, "tanh1", exercise_conv(b, "conv1", x, channels, true));
	x = build_tanh(b, "tanh2",
		       build_conv_window(b, "d1", x, channels, &uneven, channels, true));
	x = build_relu(b, "relu3", build_conv_window(b, "d2", x, channels, &same, channels, true));
	x = build_tanh(b, "tanh3", build_conv_window(b, "d3", x, channels, &wide, channels, false));
	x = build_conv_window(b, "d4", x, channels, &far, channels, false);
	x = build_relu(b, "relu4", build_batch_norm(b, "bn4", x, 1e-3, 0.9));
	x = build_relu(b, "relu5", build_conv_window(b, "d5", x, channels, &far, channels, true));
	return exercise_finish(b, x);
}

#define IMAGE_OF(labels)                                                                           \
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 10, 11}}}, .input_count = 1,           \
	.classes = (labels)
#define IMAGE IMAGE_OF(5)

static int resized(struct builder *b, int x)
{
	x = build_resize(b, "repeat", exercise_conv(b, "conv1", x, 12, true), 2, 3, RESIZE_NEAREST,
			 RESIZE_HALF_PIXEL);
	x = build_max_pool(b, "pool", exercise_conv(b, "conv2", x, 9, true), 5, 5);
	x = build_resize(b, "linear", x, 2, 2, RESIZE_LINEAR, RESIZE_HALF_PIXEL);
	x = build_resize(b, "corners", exercise_conv(b, "conv3", x, 8, true), 1, 3, RESIZE_LINEAR,
			 RESIZE_ALIGN_CORNERS);
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

static int group_norm(struct builder *b, int x)
{
	x = build_group_norm(b, "groups", exercise_conv(b, "conv1", x, 12, true), 3);
	x = build_relu(b, "relu",
		       build_group_norm(b, "each", exercise_conv(b, "conv2", x, 16, false), 0));
	x = build_group_norm(b, "all", exercise_conv(b, "conv3", x, 6, true), 1);
	return build_linear(b, "fc", build_flatten(b, "flatten", x), 5);
}

static int rms_norm(struct builder *b, int x)
{
	struct attributes cube = {.exponent = 3};

	x = build_rms_norm(b, "image", exercise_conv(b, "conv1", x, 9, true), 1, 1e-3);
	x = build_swish(b, "swish", exercise_conv(b, "conv2", x, 16, false));
	x = build_flatten(b, "flatten", build_rms_norm(b, "width", x, 3, 1e-3));
	x = build_sigmoid(b, "gate", build_rms_norm(b, "flat", x, 1, 1e-3));
	return build_linear(b, "fc", build_node(b, OP_POW, "cube", &x, 1, &cube), 5);
}

static int transposed(struct builder *b, int x)
{
	struct window twice = {.kernel = {2, 2}, .strides = {2, 2}};
	struct window wide = {.kernel = {3, 2}, .strides = {2, 1}, .pads = {1, 0, 0, 1}};
	struct window own = window_square(3, 2, 1);

	x = build_relu(b, "relu1", build_conv_transpose(b, "twice", x, 16, &twice, 1));
	x = build_relu(b, "relu2", build_conv_transpose(b, "groups", x, 8, &wide, 2));
	x = build_relu(b, "relu3", exercise_conv(b, "conv", x, 9, true));
	x = build_conv_transpose(b, "depthwise", x, 9, &own, 9);
	return build_linear(b, "fc",
			    build_flatten(b, "flatten", build_max_pool(b, "pool", x, 8, 8)), 5);
}

/* Networks for which this executor needs other layers than the shared list has: no kinks before the
 * compared values, blocked channels, an even window. */
/* Every state of each kind of layer, in both directions. */
static int recurrences(struct builder *b, int x)
{
	static const enum op ops[] = {OP_GRU, OP_GRU, OP_LSTM, OP_RNN, OP_GRU};
	static const char *const names[] = {"gru", "reset_first", "lstm", "rnn", "last"};
	struct attributes a;

	for (int i = 0; i < (int)COUNT(ops); i++) {
		operator_default_attributes(ops[i], &a);
		a.sequence = i < 4;
		a.reverse = i % 2;
		a.linear_before_reset = i == 0;
		a.activation = ops[i] == OP_RNN;
		x = build_recurrent(b, ops[i], names[i], x, 12 - i, &a);
	}
	return build_linear(b, "fc", x, 5);
}

static const struct network own[] = {
	{.name = "flat_batch_norm", IMAGE, .layers = flat_batch_norm},
	{.name = "max_pools", IMAGE, .layers = max_pools},
	{.name = "resized", IMAGE, .layers = resized},
	{.name = "group_norm", IMAGE, .layers = group_norm},
	{.name = "rms_norm", IMAGE, .layers = rms_norm},
	{.name = "transposed", IMAGE, .layers = transposed},
	{.name = "lrn", IMAGE, .layers = lrn},
	{.name = "lrn_of_a_copy", IMAGE, .layers = lrn_of_a_copy},
	{.name = "separable", IMAGE, .layers = separable},
	{.name = "wide_products", IMAGE_OF(299), .layers = wide_products},
	{.name = "odd_product", IMAGE_OF(1365), .layers = odd_product},
	{.name = "square_windows", IMAGE, .layers = square_windows},
	{.name = "turned_row",
	 .inputs = {{.name = "input", .rank = 3, .dims = {16, 3, 4}}},
	 .input_count = 1,
	 .classes = 5,
	 .layers = turned_row},
	{.name = "recurrences",
	 .inputs = {{.name = "input", .rank = 2, .dims = {9, 13}}},
	 .input_count = 1,
	 .classes = 5,
	 .layers = recurrences},
	{.name = "joined_blocks", IMAGE, .layers = joined_blocks},
	{.name = "joined_channels_last", IMAGE, .layers = joined_channels_last},
};
static const struct network depthwise_layers = {.name = "depthwise", IMAGE, .layers = depthwise};

/* Networks of the shared list. */
static const char *const shared[] = {
	"batch_norm", "pools", "functions", "joins",   "layer_norm", "orders",	    "broadcasts",
	"lstm",	      "rnn",   "sequences", "squares", "pads",	     "channel_pads"};

enum { OWN = COUNT(own), SHARED = COUNT(shared) };

static const struct network *network_at(int i)
{
	for (int k = 0; i >= OWN && k < EXERCISE_OPERATORS; k++)
		if (strcmp(exercise_operators[k].name, shared[i - OWN]) == 0)
			return &exercise_operators[k];
	assert_true(i < OWN);
	return &own[i];
}

/* Runs all networks, so that one failure does not hide the next. */
static void run_all(exercise_body *body, enum precision precision)
{
	static const int64_t batches[] = {1, 4};
	/* Where tanh saturates, a batch of few rounded samples has too little variance to
	 * normalise. */
	int64_t flat = precision == PRECISION_FP32 ? 4 : 16;
	const char *only = getenv("PRONY_TEST_ONLY");
	int failed = 0;

	for (int i = 0; i < OWN + SHARED; i++) {
		const struct network *network = network_at(i);

		for (int k = 0; k < 2; k++) {
			bool flat_norm = strcmp(network->name, "flat_batch_norm") == 0;

			/* One sample has no variance. */
			if (batches[k] == 1 && flat_norm)
				continue;
			if (only && strcmp(only, network->name) != 0)
				continue;
			failed += !exercise_run(&adapter_native, library, network,
						flat_norm ? flat : batches[k], body);
		}
	}
	assert_int_equal(failed, 0);
}

TEST(forward_agrees)
{
	run_all(exercise_forward, PRECISION_FP32);
}

TEST(gradients_agree)
{
	run_all(exercise_gradients, PRECISION_FP32);
}

static enum prony_status updates(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_SGD;
	/* Large enough that the change exceeds the rounding of the weights. Not so large that the
	 * loss grows sixfold in one step, which would amplify differences in the last digit. */
	e->recipe.learning_rate = strcmp(e->graph.name, "lrn") == 0 ? 0.02 : 0.05;
	return exercise_updates(e, false, err);
}

TEST(updates_and_statistics_agree)
{
	run_all(updates, PRECISION_FP32);
}

static enum prony_status forward_bf16(struct exercise *e, struct error *err)
{
	e->recipe.precision = PRECISION_BF16;
	e->recipe.stage = STAGE_FORWARD;
	return exercise_gate(e, NULL, err);
}

static enum prony_status gradients_bf16(struct exercise *e, struct error *err)
{
	e->recipe.precision = PRECISION_BF16;
	e->recipe.stage = STAGE_FORWARD_BACKWARD;
	return exercise_gate(e, NULL, err);
}

static enum prony_status train_bf16(struct exercise *e, struct error *err)
{
	e->recipe.precision = PRECISION_BF16;
	e->recipe.stage = STAGE_TRAIN;
	e->recipe.learning_rate = 0.001;
	return exercise_gate(e, NULL, err);
}

TEST(passes_the_gate_in_bf16)
{
	if (!exercise_has_precision(&adapter_native, library, PRECISION_BF16))
		skip();
	run_all(forward_bf16, PRECISION_BF16);
	run_all(gradients_bf16, PRECISION_BF16);
	run_all(train_bf16, PRECISION_BF16);
}

TEST(depthwise_layers_agree)
{
	static const int64_t sides[] = {3, 5, 7}, channels[] = {8, 16, 24, 33};
	static const int64_t batches[] = {1, 2, 5};
	const char *only = getenv("PRONY_TEST_ONLY");
	int failed = 0;

	for (int i = 0; !only && i < 36; i++) {
		int64_t batch = batches[i % 3];

		depthwise_side = sides[i / 12];
		depthwise_channels = channels[i / 3 % 4];
		failed += !exercise_run(&adapter_native, library, &depthwise_layers, batch,
					exercise_forward);
		failed += !exercise_run(&adapter_native, library, &depthwise_layers, batch,
					exercise_gradients);
		failed +=
			!exercise_run(&adapter_native, library, &depthwise_layers, batch, updates);
	}
	assert_int_equal(failed, 0);
}

/* Minimal filtering computes the layers meant for it, and fuses what follows, if the processor
 * supports it. If an image is a single output, the library computes the layer, because it skips the
 * padding. */
static enum prony_status filtered(struct exercise *e, struct error *err)
{
	TRY(exercise_forward(e, err));
	bool has = winograd_pick(instruction_set_best()) != NULL;
	const char *notes = e->built.notes;

	if ((strstr(notes, "conv2+BatchNormalization+Relu=winograd") != NULL) != has ||
	    (strstr(notes, "conv4+BatchNormalization+Add+Relu=winograd") != NULL) != has ||
	    strstr(notes, "point=winograd"))
		return error_set(err, PRONY_MISMATCH, "%s", notes);
	return PRONY_OK;
}

/* In training, forward and the gradient of the input use it. The first such layer needs no gradient
 * of its input. */
static enum prony_status gradients_filtered(struct exercise *e, struct error *err)
{
	TRY(exercise_gradients(e, err));
	bool has = winograd_pick(instruction_set_best()) != NULL;
	const char *notes = e->built.notes;

	if ((strstr(notes, "conv2=winograd,winograd,jit:") != NULL) != has ||
	    (strstr(notes, "conv3+Relu=winograd,winograd,jit:") != NULL) != has)
		return error_set(err, PRONY_MISMATCH, "%s", notes);
	return PRONY_OK;
}

TEST(square_windows_are_filtered)
{
	const struct network *network = NULL;

	for (int i = 0; i < OWN; i++) {
		if (own[i].layers == square_windows)
			network = &own[i];
	}
	assert_true(exercise_run(&adapter_native, library, network, 4, filtered));
	assert_true(exercise_run(&adapter_native, library, network, 4, gradients_filtered));
}

int main(void)
{
	library = exercise_library("PRONY_NATIVE_LIBRARY", "native/*/data/lib/libdnnl.so.3*");
	return unit_tests_run(NULL, NULL);
}
