/* The operators of larger networks: gradients against finite differences, and known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/unit/reference_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BATCH 3

/* What is tested stands between a parameter that is added to the input, and a linear layer. */
struct operator_case {
	const char *what;
	int rank;
	int64_t dims[3]; /* of the input without the batch */
	int (*layers)(struct builder *b, int x);
};

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
		.kernel = {3, 2}, .strides = {2, 2}, .pads = {1, 0, 1, 1}, .ceil_mode = true};

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

	return build_sub(b, "tested", build_sub(b, "left", w, x), w);
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

static const struct operator_case operator_cases[] = {
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

static void build_case(const struct operator_case *c, bool half_squares, struct graph *graph)
{
	struct error err = ERROR_INIT;
	struct builder b = {.graph = graph, .error = ERROR_INIT};
	int64_t dims[4] = {BATCH, c->dims[0], c->dims[1], c->dims[2]};

	graph_init(graph, c->what);
	int x = build_input(&b, BATCH, c->rank, c->dims);
	int p = build_parameter(&b, "p", c->rank + 1, dims, FILL_ZERO, 1);
	int h = c->layers(&b, build_add(&b, "sum", x, p));
	if (b.error.code == PRONY_OK && graph->values[h].shape.rank != 2)
		h = build_flatten(&b, "flat", h);
	int logits = build_linear(&b, "out", h, 4);
	check(half_squares ? build_finish_half_squares(&b, logits, &err)
			   : build_finish(&b, logits, &err),
	      &err);
}

static void every_gradient_is_the_finite_difference(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(operator_cases); i++) {
		struct error err = ERROR_INIT;
		struct graph graph;
		struct rig rig;

		build_case(&operator_cases[i], i % 5 == 4, &graph);
		rig_init(&rig, graph, false, 17 + i);
		check(graph_check(&rig.graph, &err), &err);
		double error = gradient_error(&rig, 0);
		if (!(error < TOLERANCE))
			fail_msg("%s: off by %g", operator_cases[i].what, error);
		rig_release(&rig);
	}
}

/* Changes an attribute that the gradient operator reads; false: it reads none. */
static bool spoil(struct node *node)
{
	struct attributes *a = &node->attributes;

	switch (node->op) {
	case OP_AVERAGE_POOL_GRAD:
		a->count_include_pad = !a->count_include_pad;
		return true;
	case OP_BATCH_NORM_GRAD:
		a->epsilon += 1e-4;
		return true;
	case OP_LRN_GRAD:
		a->beta += 1e-4;
		return true;
	case OP_HARD_SIGMOID_GRAD:
		a->alpha += 1e-4;
		return true;
	case OP_CLIP_GRAD:
		a->min -= 1;
		return true;
	case OP_SLICE_GRAD:
		a->start = 0;
		return true;
	case OP_PAD_GRAD:
		a->ints.items[1] = 0;
		return true;
	default:
		return false;
	}
}

static void a_wrong_gradient_is_found(void **state)
{
	int found = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(operator_cases); i++) {
		struct graph graph;
		struct rig rig;
		bool spoilt = false;

		build_case(&operator_cases[i], false, &graph);
		rig_init(&rig, graph, false, 17 + i);
		for (int n = rig.graph.forward_count; n < rig.graph.node_count; n++)
			spoilt |= spoil(&rig.graph.nodes[n]);
		/* Without padding it makes no difference whether padding counts. */
		if (spoilt && operator_cases[i].layers != average_pool) {
			found++;
			if (!(gradient_error(&rig, 0) > TOLERANCE))
				fail_msg("%s: not found", operator_cases[i].what);
		}
		rig_release(&rig);
	}
	assert_true(found >= 10);
}

/* Runs `layers` on x, whose batch is 1, in evaluation; the graph has no parameters of its own. */
static void answer(int (*layers)(struct builder *b, int x), int rank, const int64_t *dims,
		   const float *x, size_t count, const double *expected)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct shape shape = {.rank = rank + 1, .dims = {1}};
	struct tensor_set weights = {.count = 0};
	struct recipe recipe;
	struct reference ref;
	struct arena arena;
	int64_t elements;

	arena_init(&arena, 0);
	graph_init(&graph, "answer");
	memcpy(&shape.dims[1], dims, (size_t)rank * sizeof(*dims));
	int y = layers(&b, build_input(&b, 1, rank, dims));
	check(build_finish(&b, build_flatten(&b, "flat", y), &err), &err);
	check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	check(reference_init(&ref, &graph, &weights, &err), &err);
	struct tensor input = {"x", DTYPE_F32, shape, (void *)(uintptr_t)x};
	check(reference_feed(&ref, &input, NULL, &err), &err);
	check(reference_step(&ref, &recipe, false, &err), &err);
	const double *out = reference_value(&ref, graph.logits, &elements);
	assert_int_equal(elements, count);
	for (size_t i = 0; i < count; i++)
		if (!(fabs(out[i] - expected[i]) < 1e-6))
			fail_msg("element %zu is %g, not %g", i, out[i], expected[i]);
	reference_release(&ref);
	graph_release(&graph);
	arena_release(&arena);
}

static int average_two(struct builder *b, int x)
{
	struct window window = {
		.kernel = {2, 2}, .strides = {2, 2}, .pads = {1, 1, 0, 0}, .ceil_mode = true};

	return build_average_pool(b, "tested", x, &window, false);
}

static int average_two_counting(struct builder *b, int x)
{
	struct window window = {
		.kernel = {2, 2}, .strides = {2, 2}, .pads = {1, 1, 0, 0}, .ceil_mode = true};

	return build_average_pool(b, "tested", x, &window, true);
}

static int lrn_two(struct builder *b, int x)
{
	return build_lrn(b, "tested", x, 2, 1, 0.5, 1);
}

static int shuffle(struct builder *b, int x)
{
	x = build_reshape(b, "apart", x, 3, (const int64_t[]){1, 2, 3});
	return build_transpose(b, "tested", x, (const int64_t[]){0, 2, 1});
}

static int every_second(struct builder *b, int x)
{
	return build_slice(b, "tested", x, 1, 1, 100, 2);
}

static int activations(struct builder *b, int x)
{
	int values[] = {build_tanh(b, "tanh", x),
			build_sigmoid(b, "sigmoid", x),
			build_hard_sigmoid(b, "hard_sigmoid", x, 0.2, 0.5),
			build_hard_swish(b, "hard_swish", x),
			build_silu(b, "silu", x),
			build_clip(b, "clip", x, -1, 1),
			build_softmax(b, "softmax", x, 1)};

	return build_concat(b, "tested", values, (int)COUNT(values), 1);
}

/* Worked out by hand, and as ONNX's and PyTorch's documentation has them. */
static void known_answers(void **state)
{
	static const float nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, six[] = {1, 2, 3, 4, 5, 6};
	static const float two[] = {-4, 2};

	(void)state;
	answer(average_two, 3, (const int64_t[]){1, 3, 3}, nine, 4,
	       (const double[]){1, 2.5, 5.5, 7});
	answer(average_two_counting, 3, (const int64_t[]){1, 3, 3}, nine, 4,
	       (const double[]){0.25, 1.25, 2.75, 7});
	/* One channel above, none below: ONNX's floor and ceil. */
	answer(lrn_two, 1, (const int64_t[]){3}, six, 3,
	       (const double[]){1 / sqrt(1 + 2.5), 2 / sqrt(1 + 6.5), 3 / sqrt(1 + 4.5)});
	answer(shuffle, 1, (const int64_t[]){6}, six, 6, (const double[]){1, 4, 2, 5, 3, 6});
	answer(every_second, 1, (const int64_t[]){6}, six, 3, (const double[]){2, 4, 6});
	answer(activations, 1, (const int64_t[]){2}, two, 14,
	       (const double[]){tanh(-4), tanh(2), 1 / (1 + exp(4)), 1 / (1 + exp(-2)), 0, 0.9, 0,
				5.0 / 3, -4 / (1 + exp(4)), 2 / (1 + exp(-2)), -1, 1,
				1 / (1 + exp(6)), 1 / (1 + exp(-6))});
}

/* Evaluation uses the running statistics and leaves them; training moves them by the momentum. */
static void running_statistics_follow_the_batch(void **state)
{
	struct operator_case c = {"statistics", 3, {2, 3, 2}, batch_norm};
	double mean = 0, variance = 0, momentum;
	struct graph graph;
	struct rig rig;

	(void)state;
	build_case(&c, false, &graph);
	rig_init(&rig, graph, false, 23);
	int m = graph_find_value(&rig.graph, "tested.mean");
	int v = graph_find_value(&rig.graph, "tested.var");
	int sum = graph_find_value(&rig.graph, "sum"), y = graph_find_value(&rig.graph, "tested");
	const double *x = rig.ref.values[sum] + 6; /* channel 1 of sample 0 */
	double before[] = {rig.ref.values[m][1], rig.ref.values[v][1]};
	double scale = rig.ref.values[graph_find_value(&rig.graph, "tested.scale")][1];
	double bias = rig.ref.values[graph_find_value(&rig.graph, "tested.bias")][1];

	assert_int_equal(rig.graph.values[m].kind, VALUE_STATE);
	assert_int_equal(graph_find_value(&rig.graph, "tested.1"),
			 graph_state_statistic(&rig.graph, m, &momentum));
	assert_true(momentum == 0.9);
	assert_true(before[0] != 0 && before[1] >= 0.8 && before[1] <= 1.25 && before[1] != 1);
	rig.recipe.stage = STAGE_FORWARD;
	run(&rig);
	double expected = (x[3] - before[0]) / sqrt(before[1] + 1e-3) * scale + bias;
	assert_true(fabs(rig.ref.values[y][9] - expected) < 1e-12);
	assert_true(rig.ref.values[m][1] == before[0] && rig.ref.values[v][1] == before[1]);

	rig.recipe.stage = STAGE_FORWARD_BACKWARD;
	run(&rig);
	for (int i = 0; i < 18; i++)
		mean += x[i / 6 * 12 + i % 6] / 18;
	for (int i = 0; i < 18; i++)
		variance += pow(x[i / 6 * 12 + i % 6] - mean, 2) / 18;
	expected = (x[3] - mean) / sqrt(variance + 1e-3) * scale + bias;
	assert_true(fabs(rig.ref.values[y][9] - expected) < 1e-12);
	assert_true(fabs(rig.ref.values[m][1] - (0.9 * before[0] + 0.1 * mean)) < 1e-12);
	assert_true(fabs(rig.ref.values[v][1] - (0.9 * before[1] + 0.1 * variance)) < 1e-12);
	rig_release(&rig);
}

/* Two steps of an LSTM with one unit, step by step. */
static void an_lstm_follows_its_formulas(void **state)
{
	struct operator_case c = {"lstm", 2, {2, 1}, NULL};
	struct error err = ERROR_INIT;
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct rig rig;
	double h = 0, cell = 0;

	(void)state;
	graph_init(&graph, c.what);
	int y = build_lstm(&b, "l", build_input(&b, 1, 2, c.dims), 1);
	check(build_finish(&b, build_linear(&b, "out", y, 2), &err), &err);
	rig_init(&rig, graph, false, 29);
	const double *x = rig.ref.values[rig.graph.input];
	const double *w = rig.ref.values[graph_find_value(&rig.graph, "l.weight")];
	const double *r = rig.ref.values[graph_find_value(&rig.graph, "l.recurrent")];
	const double *bias = rig.ref.values[graph_find_value(&rig.graph, "l.bias")];
	run(&rig);
	for (int t = 0; t < 2; t++) {
		double a[4];

		for (int g = 0; g < 4; g++)
			a[g] = w[g] * x[t] + r[g] * h + bias[g];
		cell = cell / (1 + exp(-a[2])) + tanh(a[3]) / (1 + exp(-a[0]));
		h = tanh(cell) / (1 + exp(-a[1]));
	}
	assert_true(fabs(rig.ref.values[y][0] - h) < 1e-12);
	rig_release(&rig);
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
	static const struct {
		int rank;
		int64_t dims[3];
		int (*layers)(struct builder *b, int x);
		const char *message;
	} cases[] = {
		{3, {3, 2, 2}, slices, "nothing lies between"},
		{3, {2, 3, 4}, sub_broadcast, "cannot be broadcast"},
		{3, {2, 2, 2}, reshape, "does not fit"},
		{2, {2, 3}, transpose, "each axis once"},
		{1, {3}, lstm, "3 dimensions"},
		{1, {3}, global_average_pool, "4 dimensions"},
		{2, {4, 4}, softmax_of_channels, NULL},
		{1, {4}, softmax_of_channels, NULL},
		{2, {4, 4}, concat_rows, NULL},
		{1, {4}, concat_rows, "axis is 2"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct graph graph;
		struct builder b = {.graph = &graph, .error = ERROR_INIT};

		graph_init(&graph, "refused");
		int x = build_input(&b, 2, cases[i].rank, cases[i].dims);
		cases[i].layers(&b, x);
		if (cases[i].message == NULL)
			check(b.error.code, &b.error);
		else if (b.error.code != PRONY_BAD_INPUT || !strstr(b.error.text, cases[i].message))
			fail_msg("%zu: %s", i, b.error.text);
		graph_release(&graph);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_gradient_is_the_finite_difference),
		cmocka_unit_test(a_wrong_gradient_is_found),
		cmocka_unit_test(known_answers),
		cmocka_unit_test(running_statistics_follow_the_batch),
		cmocka_unit_test(an_lstm_follows_its_formulas),
		cmocka_unit_test(shapes_that_do_not_fit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
