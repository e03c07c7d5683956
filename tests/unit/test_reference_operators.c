/* Every operator: gradients against finite differences, and known answers. */
#include "tests/unit/operator_cases.h"
#include "tests/unit/reference_fixture.h"
#include "tests/unit/test_layers.h"
#include "unit_test.h"

TEST(every_gradient_is_the_finite_difference)
{
	for (size_t i = 0; operator_case_at(i); i++) {
		const struct operator_case *c = operator_case_at(i);
		struct error err = ERROR_INIT;
		struct graph graph;
		SCOPED(rig) rig;

		check(operator_case_build(c, i % 5 == 4, &graph, &err), &err);
		rig_init(&rig, graph, false, 17 + i);
		check(graph_check(&rig.graph, &err), &err);
		double error = gradient_error(&rig, 0);
		if (!(error < TOLERANCE))
			fail_msg("%s: off by %g", c->what, error);
	}
}

/* Changes an attribute that the gradient operator reads; returns false if that makes no difference.
 */
static bool spoil(struct node *node)
{
	struct attributes *a = &node->attributes;

	switch (node->op) {
	case OP_CONV_GRAD_WEIGHT:
	case OP_CONV_GRAD_INPUT:
	case OP_MAX_POOL_GRAD: /* by the padding, where there is some */
		a->pads[1]++;
		return a->pads[0] > 0;
	case OP_GEMM_GRAD_WEIGHT:
	case OP_GEMM_GRAD_INPUT:
		a->alpha *= 1.00001;
		return true;
	case OP_AVERAGE_POOL_GRAD:
		a->count_include_pad = !a->count_include_pad;
		return a->pads[0] > 0;
	case OP_BATCH_NORM_GRAD:
		a->epsilon += 1e-4;
		return true;
	case OP_LRN_GRAD:
		a->beta += 1e-4;
		return true;
	case OP_ELEMENTWISE_GRAD: /* where there are numbers to change */
		if (a->alpha == 0 && !(a->max > a->min && a->max < 1))
			return false;
		a->alpha *= 1.01;
		a->min -= 1;
		return true;
	case OP_SLICE_GRAD:
		if (a->start == 0)
			return false;
		a->start = 0;
		return true;
	case OP_PAD_GRAD:
		a->ints.items[1] = 0;
		return true;
	default:
		return false;
	}
}

TEST(a_wrong_gradient_is_found)
{
	int found = 0;

	for (size_t i = 0; operator_case_at(i); i++) {
		const struct operator_case *c = operator_case_at(i);
		struct error err = ERROR_INIT;
		struct graph graph;
		SCOPED(rig) rig;

		check(operator_case_build(c, false, &graph, &err), &err);
		rig_init(&rig, graph, false, 17 + i);
		for (int n = rig.graph.forward_count; n < rig.graph.node_count; n++) {
			struct node *node = &rig.graph.nodes[n];
			const struct attributes right = node->attributes;

			if (spoil(node)) {
				found++;
				if (!(gradient_error(&rig, 0) > TOLERANCE))
					fail_msg("%s: %s not found", c->what, node->name);
			}
			node->attributes = right;
		}
	}
	assert_true(found >= 100);
}

/* Runs `layers` on x, with batch 1, in evaluation; the graph has no parameters of its own. */
static void answer(int (*layers)(struct builder *b, int x), int rank, const int64_t *dims,
		   const float *x, size_t count, const double *expected)
{
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct shape shape = {.rank = rank + 1, .dims = {1}};
	struct tensor_set weights = {.count = 0};
	struct recipe recipe;
	SCOPED(reference) ref;
	SCOPED(arena) arena;
	int64_t elements;

	arena_init(&arena, 0);
	graph_init(&graph, "answer");
	memcpy(&shape.dims[1], dims, (size_t)rank * sizeof(*dims));
	int y = layers(&b, build_input(&b, "input", DTYPE_F32, 1, rank, dims));
	check(build_finish(&b, build_flatten(&b, "flat", y), 0, NULL, &err), &err);
	check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	check(reference_init(&ref, &graph, &weights, &err), &err);
	struct tensor input = {"x", DTYPE_F32, shape, (void *)(uintptr_t)x};
	check(reference_feed(&ref, (struct batch){&input, NULL, 1, 0}, &err), &err);
	check(reference_step(&ref, &recipe, false, &err), &err);
	const double *out = reference_value(&ref, graph.logits, &elements);
	assert_int_equal(elements, count);
	for (size_t i = 0; i < count; i++)
		if (!(fabs(out[i] - expected[i]) < 1e-6))
			fail_msg("element %zu is %g, not %g", i, out[i], expected[i]);
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

/* Expected numbers computed by hand, and as in the documentation of ONNX and PyTorch. */
TEST(known_answers)
{
	static const float nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, six[] = {1, 2, 3, 4, 5, 6};
	static const float two[] = {-4, 2};

	answer(average_two, 3, (const int64_t[]){1, 3, 3}, nine, 4,
	       (const double[]){1, 2.5, 5.5, 7});
	answer(average_two_counting, 3, (const int64_t[]){1, 3, 3}, nine, 4,
	       (const double[]){0.25, 1.25, 2.75, 7});
	/* One channel above, none below: floor and ceil in ONNX's definition. */
	answer(lrn_two, 1, (const int64_t[]){3}, six, 3,
	       (const double[]){1 / sqrt(1 + 2.5), 2 / sqrt(1 + 6.5), 3 / sqrt(1 + 4.5)});
	answer(shuffle, 1, (const int64_t[]){6}, six, 6, (const double[]){1, 4, 2, 5, 3, 6});
	answer(every_second, 1, (const int64_t[]){6}, six, 3, (const double[]){2, 4, 6});
	answer(activations, 1, (const int64_t[]){2}, two, 14,
	       (const double[]){tanh(-4), tanh(2), 1 / (1 + exp(4)), 1 / (1 + exp(-2)), 0, 0.9, 0,
				5.0 / 3, -4 / (1 + exp(4)), 2 / (1 + exp(-2)), -1, 1,
				1 / (1 + exp(6)), 1 / (1 + exp(-6))});
}

/* Evaluation uses the running statistics and leaves them unchanged; training updates them by the
 * momentum. */
TEST(running_statistics_follow_the_batch)
{
	struct error err = ERROR_INIT;
	double mean = 0, variance = 0, momentum;
	struct graph graph;
	SCOPED(rig) rig;

	check(operator_case_build(operator_case_find("BatchNormalization"), false, &graph, &err),
	      &err);
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
}

/* Two time steps of an LSTM with one unit, compared with its formulas. */
TEST(an_lstm_follows_its_formulas)
{
	struct operator_case c = {.what = "lstm", .dims = {2, 1}};
	struct error err = ERROR_INIT;
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	SCOPED(rig) rig;
	double h = 0, cell = 0;

	graph_init(&graph, c.what);
	int y = build_lstm(&b, "l", build_input(&b, "input", DTYPE_F32, 1, 2, c.dims), 1);
	check(build_finish(&b, build_linear(&b, "out", y, 2), 0, NULL, &err), &err);
	rig_init(&rig, graph, false, 29);
	const double *x = rig.ref.values[graph_input(&rig.graph, 0)];
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
}

TEST(shapes_that_do_not_fit_are_refused)
{
	static const struct {
		int rank;
		int64_t dims[3];
		const char *what;
		const char *message;
	} cases[] = {
		{3, {3, 2, 2}, "Slice", "the slice from"},
		{3, {2, 3, 4}, "Sub, broadcast", "cannot be broadcast"},
		{3, {2, 2, 2}, "Reshape", "cannot be reshaped"},
		{2, {2, 3}, "Transpose", "each axis exactly once"},
		{1, {3}, "LSTM", "3 dimensions"},
		{1, {3}, "GlobalAveragePool", "4 dimensions"},
		{2, {4, 4}, "Softmax of channels", NULL},
		{1, {4}, "Softmax of channels", NULL},
		{2, {4, 4}, "Concat of rows", NULL},
		{1, {4}, "Concat of rows", "axis is 2"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		SCOPED(graph) graph;
		struct builder b = {.graph = &graph, .error = ERROR_INIT};

		graph_init(&graph, "refused");
		int x = build_input(&b, "input", DTYPE_F32, 2, cases[i].rank, cases[i].dims);
		operator_case_find(cases[i].what)->layers(&b, x);
		if (cases[i].message == NULL)
			check(b.error.code, &b.error);
		else if (b.error.code != PRONY_BAD_INPUT || !strstr(b.error.text, cases[i].message))
			fail_msg("%zu: %s", i, b.error.text);
	}
}
