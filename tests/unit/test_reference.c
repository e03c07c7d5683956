/* The reference interpreter: known answers, updates, masks, and the gradients of whole networks. */
#include "parity/reference_internal.h"
#include "tests/unit/operator_cases.h"
#include "tests/unit/reference_fixture.h"
#include "unit_test.h"
#include "zoo/zoo.h"

TEST(networks_are_differentiated_correctly)
{
	static const char *const names[] = {"lenet", "mlp"};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct error err = ERROR_INIT;
		struct graph graph;
		SCOPED(rig) rig;

		check(zoo_build(zoo_find(names[i], NULL), 2, &graph, &err), &err);
		rig_init(&rig, graph, true, 3);
		double error = gradient_error(&rig, 9);
		if (!(error < TOLERANCE))
			fail_msg("%s: off by %g", names[i], error);
	}
}

TEST(every_operator_has_a_kernel)
{
	for (int op = 0; op < OP_COUNT; op++)
		if (!operator_row((enum op)op)->compute)
			fail_msg("%s", operator_name((enum op)op));
}

/* Single-operator graphs, run forward on given numbers. */
TEST(known_answers)
{
	/* 1 x 3 x 3, kernel 2 x 2, by hand */
	static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4};
	static const double expected[] = {37.5, 47.5, 67.5, 77.5};
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph};
	float bias = 0.5f;
	struct tensor weights[] = {{"c.weight", DTYPE_F32, {4, {1, 1, 2, 2}}, (void *)(uintptr_t)w},
				   {"c.bias", DTYPE_F32, {1, {1}}, &bias}};
	struct tensor input = {"x", DTYPE_F32, {4, {1, 1, 3, 3}}, (void *)(uintptr_t)x};
	int64_t label = 2, count;
	struct tensor y = {"y", DTYPE_I64, {1, {1}}, &label};
	struct recipe recipe;
	SCOPED(reference) ref;

	graph_init(&graph, "conv");
	int conv =
		build_conv(&b, "c", build_input(&b, "input", DTYPE_F32, 1, 3, (int64_t[]){1, 3, 3}),
			   1, 2, 1, 0);
	check(build_finish(&b, build_flatten(&b, "f", conv), 0, NULL, &err), &err);
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	check(reference_init(&ref, &graph, &(struct tensor_set){weights, 2}, &err), &err);
	check(reference_feed(&ref, (struct batch){&input, &y, 1, 1}, &err), &err);
	assert_true(isnan(reference_loss(&ref)));
	check(reference_step(&ref, &recipe, false, &err), &err);
	const double *out = reference_value(&ref, graph.logits, &count);
	assert_int_equal(count, 4);
	for (int i = 0; i < 4; i++)
		assert_true(fabs(out[i] - expected[i]) < 1e-12);
	/* log(e^-40 + e^-30 + e^-10 + 1) + 10 */
	double loss = log1p(exp(-40) + exp(-30) + exp(-10)) + 10;
	assert_true(fabs(reference_loss(&ref) - loss) < 1e-12);
	assert_true(fabs(reference_objective(&graph, out, &label) - loss) < 1e-12);
	assert_null(reference_value(&ref, graph.value_count, &count));
	assert_null(reference_value(&ref, -1, &count));
	/* Without labels there is no loss. */
	check(reference_feed(&ref, (struct batch){&input, NULL, 1, 0}, &err), &err);
	check(reference_step(&ref, &recipe, false, &err), &err);
	assert_true(isnan(reference_loss(&ref)));
}

static int pool_of_all(struct builder *b, int x)
{
	return build_max_pool(b, "tested", x, 2, 1);
}

TEST(ties_go_to_the_first_maximum)
{
	static const struct operator_case pool = {"pool", 3, {1, 2, 2}, pool_of_all, OP_COUNT};
	struct error err = ERROR_INIT;
	static const float x[] = {1, 3, 3, 3};
	struct graph graph;
	SCOPED(rig) rig;
	int64_t count;

	check(operator_case_build(&pool, false, &graph, &err), &err);
	rig_init(&rig, graph, false, 1);
	int p = graph_find_value(&rig.graph, "p");
	memset(rig.ref.values[p], 0, 12 * sizeof(double));
	for (int i = 0; i < 12; i++)
		rig.ref.values[graph_input(&rig.graph, 0)][i] = (double)x[i % 4];
	run(&rig);
	const double *gradient = reference_value(&rig.ref, rig.graph.values[p].gradient, &count);
	for (int i = 0; i < 12; i++)
		assert_true((gradient[i] == 0) == (i % 4 != 1));
}

TEST(updates_follow_their_formulas)
{
	static const struct {
		enum optimiser optimiser;
		bool inside;
	} cases[] = {{OPTIMISER_SGD, false},
		     {OPTIMISER_MOMENTUM, false},
		     {OPTIMISER_RMSPROP, false},
		     {OPTIMISER_RMSPROP, true},
		     {OPTIMISER_ADAMW, false}};

	for (size_t c = 0; c < COUNT(cases); c++) {
		struct error err = ERROR_INIT;
		struct graph graph;
		SCOPED(rig) rig;
		double w, moment = 0, square = 0;

		check(operator_case_build(operator_case_find("Gemm"), false, &graph, &err), &err);
		rig_init(&rig, graph, false, 11);
		rig.recipe = (struct recipe){.stage = STAGE_TRAIN,
					     .optimiser = cases[c].optimiser,
					     .learning_rate = 0.05,
					     .momentum = 0.9,
					     .weight_decay = 0.01,
					     .rho = 0.9,
					     .epsilon = 1e-3,
					     .beta1 = 0.8,
					     .beta2 = 0.95};
		int index = graph_find_value(&rig.graph, "w");
		w = rig.ref.values[index][3];
		for (int step = 0; step < 3; step++) {
			check(reference_step(&rig.ref, &rig.recipe, cases[c].inside, &err), &err);
			double g = rig.ref.values[rig.graph.values[index].gradient][3] + 0.01 * w;

			if (cases[c].optimiser == OPTIMISER_SGD) {
				w -= 0.05 * g;
			} else if (cases[c].optimiser == OPTIMISER_MOMENTUM) {
				moment = 0.9 * moment + g;
				w -= 0.05 * moment;
			} else if (cases[c].optimiser == OPTIMISER_ADAMW) {
				g -= 0.01 * w;
				moment = 0.8 * moment + 0.2 * g;
				square = 0.95 * square + 0.05 * g * g;
				w -= 0.05 *
				     (0.01 * w +
				      moment / (1 - pow(0.8, step + 1)) /
					      (sqrt(square / (1 - pow(0.95, step + 1))) + 1e-3));
			} else {
				moment = 0.9 * moment + 0.1 * g * g;
				w -= 0.05 * g /
				     (cases[c].inside ? sqrt(moment + 1e-3) : sqrt(moment) + 1e-3);
			}
			assert_true(fabs(rig.ref.values[index][3] - w) < 1e-14);
		}
	}
}

TEST(gradients_are_clipped_by_their_common_norm)
{
	struct error err = ERROR_INIT;
	const double limits[] = {1e9, 1e-3};
	struct graph graph;

	for (int i = 0; i < 2; i++) {
		SCOPED(rig) rig;
		double squares = 0, before, *g;

		check(zoo_build(zoo_find("mlp", NULL), 8, &graph, &err), &err);
		rig_init(&rig, graph, true, 3);
		rig.recipe.stage = STAGE_TRAIN;
		rig.recipe.optimiser = OPTIMISER_SGD;
		rig.recipe.learning_rate = 0.1;
		rig.recipe.weight_decay = 0.5;
		rig.recipe.clip_norm = limits[i];
		int index = graph_find_value(&rig.graph, "fc2.weight");
		before = rig.ref.values[index][5];
		check(reference_step(&rig.ref, &rig.recipe, false, &err), &err);
		for (int v = 0; v < rig.graph.value_count; v++) {
			const struct value *value = &rig.graph.values[v];

			g = value->gradient >= 0 ? rig.ref.values[value->gradient] : NULL;
			for (int64_t k = 0;
			     value->kind == VALUE_PARAMETER && k < shape_elements(&value->shape);
			     k++)
				squares += g[k] * g[k];
		}
		double factor = i == 0 ? 1 : limits[i] / (sqrt(squares) + 1e-6);
		g = rig.ref.values[rig.graph.values[index].gradient];
		/* The decay is not clipped. */
		double want = before - rig.recipe.learning_rate * (factor * g[5] + 0.5 * before);
		assert_true(fabs(rig.ref.values[index][5] - want) < 1e-14);
	}
}

TEST(dropout_masks_come_from_seed_step_and_node)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	SCOPED(rig) rig;
	double losses[3];
	int64_t dropped = 0, count;

	check(zoo_build(zoo_find("mlp", NULL), 8, &graph, &err), &err);
	rig_init(&rig, graph, true, 3);
	losses[0] = run(&rig);
	assert_true(losses[0] == run(&rig));
	int mask = rig.graph.nodes[2].outputs[1];
	assert_int_equal(rig.graph.nodes[2].op, OP_DROPOUT);
	const double *factors = reference_value(&rig.ref, mask, &count);
	for (int64_t i = 0; i < count; i++) {
		assert_true(factors[i] == 0 || fabs(factors[i] - 1.25) < 1e-12);
		dropped += factors[i] == 0;
	}
	/* 4096 draws at 0.2: six standard deviations are 154. */
	assert_true(llabs((long long)dropped - 819) < 154);
	check(reference_step(&rig.ref, &rig.recipe, false, &err), &err);
	losses[1] = reference_loss(&rig.ref);
	assert_true(losses[1] != losses[0]);
	/* reference_redraw repeats the same step from the first dropout on. */
	run(&rig);
	check(reference_redraw(&rig.ref, &rig.recipe, &err), &err);
	assert_true(reference_loss(&rig.ref) == losses[1]);
	rig.recipe.seed++;
	losses[2] = run(&rig);
	assert_true(losses[2] != losses[0]);
	rig.recipe.dropout = false;
	double without = run(&rig);
	rig.recipe.dropout = true;
	rig.recipe.stage = STAGE_FORWARD;
	assert_true(run(&rig) == without);
}

TEST(bad_input_is_refused)
{
	struct error err = ERROR_INIT;
	struct graph graph, forward;
	struct reference ref;
	SCOPED(rig) rig;

	check(zoo_build(zoo_find("mlp", NULL), 2, &graph, &err), &err);
	check(zoo_build(zoo_find("mlp", NULL), 2, &forward, &err), &err);
	rig_init(&rig, graph, true, 3);
	((int64_t *)rig.y.data)[1] = 10;
	expect_error(reference_feed(&rig.ref, (struct batch){&rig.x, &rig.y, 1, 1}, &err),
		     PRONY_BAD_INPUT, &err, "element 1 is label 10");
	assert_int_equal(reference_step(&rig.ref, &rig.recipe, false, &err), PRONY_BAD_INPUT);
	error_clear(&err);
	rig.x.shape.dims[0] = 3;
	assert_int_equal(reference_feed(&rig.ref, (struct batch){&rig.x, NULL, 1, 0}, &err),
			 PRONY_BAD_INPUT);
	error_clear(&err);
	rig.recipe.stage = STAGE_LOAD;
	assert_int_equal(reference_step(&rig.ref, &rig.recipe, false, &err), PRONY_UNSUPPORTED);
	error_clear(&err);

	/* Missing weights, and a graph without backward pass. */
	struct tensor_set fewer = {rig.weights.tensors, rig.weights.count - 1};
	expect_error(reference_init(&ref, &forward, &fewer, &err), PRONY_BAD_INPUT, &err,
		     "fc3.bias");
	reference_release(&ref);
	check(reference_init(&ref, &forward, &rig.weights, &err), &err);
	rig.x.shape.dims[0] = 2;
	((int64_t *)rig.y.data)[1] = 1;
	check(reference_feed(&ref, (struct batch){&rig.x, &rig.y, 1, 1}, &err), &err);
	rig.recipe.stage = STAGE_TRAIN;
	assert_int_equal(reference_step(&ref, &rig.recipe, false, &err), PRONY_INTERNAL);
	reference_release(&ref);
	reference_release(NULL);
	assert_int_equal(reference_cost(&forward, STAGE_FORWARD), 2 * 668672);
	assert_int_equal(reference_cost(&forward, STAGE_TRAIN), 6 * 668672);
	graph_release(&forward);
}
