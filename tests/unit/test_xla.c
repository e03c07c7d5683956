/* XLA's adapter against the float64 reference. Skipped if no plug-in is installed. */
#include "adapters/xla/compiled.h"
#include "adapters/xla/emit.h"
#include "adapters/xla/pjrt.h"
#include "adapters/xla/xla.h"
#include "exercise_networks.h"
#include "framework_cases.h"
#include "framework_gate.h"

static const char *library;

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_TRAIN;
	e->recipe.threads = 1; /* differs from the available processors: open has to set it */
	TRY(exercise_open(e, err));
	if (strncmp(e->probe.version, "PJRT 0.", 7) != 0 || e->effective.threads != 1 ||
	    strcmp(e->probe.devices[0], "cpu") != 0 || e->probe.device_count != 1 ||
	    !strstr(e->effective.settings, "NPROC=1"))
		return error_set(err, PRONY_MISMATCH, "version %s, %d threads, %s",
				 e->probe.version, e->effective.threads, e->effective.settings);
	return exercise_trainer(e, err);
}

/* Why supports refuses the gradient of a dilated pool: XLA's error for the only operator that
 * computes it. */
static enum prony_status check_dilated(struct exercise *e, struct error *err)
{
	static const char text[] =
		"func.func @main(%x: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {\n"
		"  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
		"  %d = \"stablehlo.select_and_scatter\"(%x, %y, %z) <{window_dilations = "
		"array<i64: "
		"2>, window_dimensions = array<i64: 3>}> ({\n"
		"  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
		"    %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
		"    stablehlo.return %c : tensor<i1>\n"
		"  }, {\n"
		"  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
		"    %s = stablehlo.add %a, %b : tensor<f32>\n"
		"    stablehlo.return %s : tensor<f32>\n"
		"  }) : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>\n"
		"  return %d : tensor<8xf32>\n"
		"}\n";
	struct pjrt pjrt = {.api = NULL};
	struct pjrt_executable *executable = NULL;
	struct error refused = ERROR_INIT;

	TRY(pjrt_load(&pjrt, e->library, err));
	TRY(pjrt_start(&pjrt, err));
	pjrt_compile(&pjrt, text, sizeof(text) - 1, &executable, &refused);
	pjrt_stop(&pjrt);
	/* A window of three elements with dilation 2 has 4 positions in 8 elements, like the shape
	 * of %y; XLA counts those of an undilated window. */
	if (!strstr(refused.text, "expects source-type to be 'tensor<6xf32>'"))
		return error_set(err, PRONY_MISMATCH, "XLA says: %s", refused.text);
	return PRONY_OK;
}

TEST(test_dilated)
{
	static const struct refusal rows[] = {{"lenet",
					       STAGE_TRAIN,
					       PRECISION_FP32,
					       dilated_pools,
					       {"MaxPool pool1", "MaxPool pool2"}}};
	struct target target;
	struct recipe recipe;
	SCOPED(graph) graph;

	target_defaults(&target);
	framework_refuses(&adapter_xla, rows, COUNT(rows));
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	assert_int_equal(zoo_build(zoo_find("lenet", NULL), 4, &graph, NULL), PRONY_OK);
	dilated_pools(&graph);
	assert_int_equal(adapter_xla.supports(&target, &graph, &recipe, NULL), PRONY_OK);
}

/* bf16 passes the gate, and the gate's own check proves that it can detect errors there. */
static enum prony_status narrow(struct exercise *e, struct error *err)
{
	e->recipe.precision = PRECISION_BF16;
	return exercise_gate(e, NULL, err);
}

static enum prony_status narrow_at_another_rate(struct exercise *e, struct error *err)
{
	static const struct gate_mutant mutant = {.what = "twice the rate", .rate = 2};

	e->recipe.precision = PRECISION_BF16;
	return exercise_gate(e, &mutant, err);
}

/* The compiled precision is read back: a program in one precision does not pass for the other. */
static enum prony_status check_read_back(struct exercise *e, struct error *err)
{
	static const enum precision precisions[] = {PRECISION_FP32, PRECISION_BF16};
	struct pjrt pjrt = {.api = NULL};
	enum prony_status status = pjrt_load(&pjrt, e->library, err);

	if (status == PRONY_OK)
		status = pjrt_start(&pjrt, err);
	e->recipe.stage = STAGE_FORWARD;
	for (int i = 0; i < 2 && status == PRONY_OK; i++) {
		struct pjrt_executable *executable = NULL;
		struct program program;
		char right[128], wrong[128];
		struct error refused = ERROR_INIT;

		e->recipe.precision = precisions[i];
		status = emit_program(&e->graph, &e->recipe, false, &e->arena, &program, err);
		if (status != PRONY_OK)
			return status;
		status = pjrt_compile(&pjrt, program.text, program.bytes, &executable, err);
		free(program.text);
		if (status == PRONY_OK)
			status = compiled_check(&pjrt, executable, precisions[i], right,
						sizeof(right), err);
		if (status == PRONY_OK &&
		    (!strstr(right, "products 4 f32") ||
		     compiled_check(&pjrt, executable, precisions[1 - i], wrong, sizeof(wrong),
				    &refused) != PRONY_INVALID ||
		     !strstr(refused.text, precision_name(precisions[1 - i]))))
			status = error_set(err, PRONY_MISMATCH, "%s; %s", right, refused.text);
		pjrt_executable_free(&pjrt, executable);
	}
	pjrt_stop(&pjrt);
	return status;
}

static const struct framework_case cases[] = {
	CASE("lenet", 1, check_dilated),
	CASE("lenet", 8, exercise_forward),
	CASE("tagger", 4, exercise_forward),
	CASE("odd", 4, exercise_forward),
	CASE("lenet", 8, exercise_gradients),
	CASE("tagger", 4, exercise_gradients),
	CASE("odd", 4, exercise_gradients),
	/* Gradients include the forward pass. With four samples, `separable` has an element before
	 * a ReLU that is 0 except for rounding. */
	CASE(OPERATORS, 5, exercise_gradients),
	CASE("lenet", 8, exercise_update_sgd),
	CASE("lenet", 8, exercise_update_momentum),
	CASE("tagger", 4, exercise_update_momentum),
	CASE("mlp", 8, exercise_update_rmsprop),
	CASE("mlp", 8, exercise_update_adamw),
	CASE("mlp", 8, exercise_update_clipped),
	/* Running statistics are written, too. */
	CASE("operator:batch_norm", 4, exercise_update_momentum),
	CASE("lenet", 4, check_reports),
	CASE("mlp", 8, exercise_dropout_on),
	CASE("mlp", 8, exercise_dropout_off),
	CASE("mlp", 4, exercise_wrong_weight),
	CASE("lenet", 8, narrow),
	CASE("mlp", 8, narrow),
	CASE("lenet", 8, narrow_at_another_rate),
	CASE("lenet", 4, check_read_back),
};

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	library = exercise_library("PRONY_XLA_LIBRARY",
				   "xla/{,*/}xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
	return FRAMEWORK_CASES_RUN(&adapter_xla, library, cases, argc > 1 ? argv[1] : NULL);
}
