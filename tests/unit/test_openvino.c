/* OpenVINO's adapter against the float64 reference. Skipped where it is not installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/openvino/openvino.h"
#include "exercise_networks.h"
#include "framework_exercise.h"
#include "parity/reference.h"

static const char *library;

static bool run(const char *network, int64_t batch, exercise_body *body)
{
	return exercise_run(&adapter_openvino, library, zoo_find(network, NULL), batch, body);
}

static void test_forward(void **state)
{
	(void)state;
	assert_true(run("lenet", 8, exercise_forward));
	assert_true(run("lenet", 1, exercise_forward));
	assert_true(run("mlp", 8, exercise_forward));
	assert_true(run("lstm", 4, exercise_forward));
	assert_true(exercise_run(&adapter_openvino, library, &exercise_network_odd, 4,
				 exercise_forward));
	assert_true(exercise_run(&adapter_openvino, library, &exercise_network_wide, 4,
				 exercise_forward));
}

/* All of them, so that one failure does not hide the next. */
static void test_operators(void **state)
{
	int failed = 0;

	(void)state;
	for (int i = 0; i < EXERCISE_OPERATORS; i++)
		if (strcmp(exercise_operators[i].name, "overhang_counts") != 0)
			failed += !exercise_run(&adapter_openvino, library, &exercise_operators[i],
						4, exercise_forward);
	assert_int_equal(failed, 0);
}

/* Where it computes something else than ONNX says. */
static void test_refused_operators(void **state)
{
	struct recipe recipe;
	struct graph graph;
	struct error err = ERROR_INIT;
	int refused = 0;

	(void)state;
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	for (int i = 0; i < EXERCISE_OPERATORS; i++) {
		assert_int_equal(zoo_build(&exercise_operators[i], 4, &graph, NULL), PRONY_OK);
		refused += adapter_openvino.supports(&graph, &recipe, &err) != PRONY_OK;
		graph_release(&graph);
	}
	assert_int_equal(refused, 1);
	assert_non_null(strstr(err.text, "AveragePool pool: padding that counts"));
}

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	enum prony_status status;

	e->recipe.stage = STAGE_FORWARD;
	e->recipe.threads = 1; /* other than the cores at hand */
	status = exercise_open(e, err);
	if (status != PRONY_OK)
		return status;
	if (strncmp(e->probe.version, "20", 2) != 0 || strcmp(e->effective.device, "cpu") != 0 ||
	    e->probe.stages != 1u << STAGE_FORWARD ||
	    !(e->probe.precisions & 1u << PRECISION_FP32) ||
	    !strstr(e->effective.settings, "INFERENCE_PRECISION_HINT=f32;INFERENCE_NUM_THREADS=1;"
					   "PERFORMANCE_HINT=LATENCY;NUM_STREAMS=1") ||
	    !strstr(e->built.notes, "EXECUTION_DEVICES=CPU NUM_STREAMS=1"))
		return error_set(err, PRONY_MISMATCH, "version %s, %s; %s", e->probe.version,
				 e->effective.settings, e->built.notes);
	return exercise_inference(e, err);
}

static void test_reports(void **state)
{
	(void)state;
	assert_true(run("mlp", 4, check_reports));
}

/* In a precision that the processor lacks it would compute in another one without a word. */
static enum prony_status check_precision(struct exercise *e, enum precision precision,
					 struct error *err)
{
	struct error why = ERROR_INIT;

	e->recipe.stage = STAGE_FORWARD;
	e->recipe.precision = precision;
	enum prony_status status = exercise_open(e, &why);
	bool has = e->probe.precisions & 1u << precision;

	if (has && status == PRONY_OK)
		return PRONY_OK;
	if (!has && status == PRONY_UNSUPPORTED &&
	    strstr(why.text, "OpenVINO compiled the network with INFERENCE_PRECISION_HINT="))
		return PRONY_OK;
	return error_set(err, PRONY_MISMATCH, "precision %s, %s: %s", precision_name(precision),
			 has ? "which it says it has" : "which it lacks",
			 status == PRONY_OK ? "was taken" : why.text);
}

static enum prony_status check_bf16(struct exercise *e, struct error *err)
{
	return check_precision(e, PRECISION_BF16, err);
}

static enum prony_status check_fp16(struct exercise *e, struct error *err)
{
	return check_precision(e, PRECISION_FP16, err);
}

static void test_precisions(void **state)
{
	(void)state;
	assert_true(run("lenet", 4, check_bf16));
	assert_true(run("lenet", 4, check_fp16));
}

static enum prony_status throughput(struct exercise *e, struct error *err)
{
	snprintf(e->session.target.options, sizeof(e->session.target.options), "throughput");
	enum prony_status status = exercise_in_flight(e, err);

	if (status == PRONY_OK && !strstr(e->effective.settings, "PERFORMANCE_HINT=THROUGHPUT"))
		status = error_set(err, PRONY_MISMATCH, "%s", e->effective.settings);
	return status;
}

static void test_throughput(void **state)
{
	(void)state;
	assert_true(run("lenet", 8, throughput));
}

static void test_wrong_weight(void **state)
{
	(void)state;
	assert_true(run("mlp", 4, exercise_wrong_weight));
}

static void test_refusals(void **state)
{
	struct recipe recipe;
	struct graph graph;
	struct error err = ERROR_INIT;

	(void)state;
	recipe_defaults(&recipe);
	recipe.stage = STAGE_TRAIN;
	recipe.precision = PRECISION_TF32;
	assert_int_equal(zoo_build(zoo_find("mlp", NULL), 4, &graph, NULL), PRONY_OK);
	assert_int_equal(adapter_openvino.supports(&graph, &recipe, &err), PRONY_UNSUPPORTED);
	assert_non_null(strstr(err.text, "stage train: OpenVINO"));
	assert_non_null(strstr(err.text, "tf32"));
	graph_release(&graph);
}

/* Why supports refuses such a mean: OpenVINO takes another one, without a word. */
static enum prony_status other_mean(struct exercise *e, struct error *err)
{
	struct error mismatch = ERROR_INIT;
	struct reference ref;
	struct tensor logits;
	int64_t count = 0;
	enum prony_status status = exercise_file(e, &logits, err);

	if (status != PRONY_OK)
		return status;
	status = reference_init(&ref, &e->reference_graph, &e->weights, err);
	if (status == PRONY_OK)
		status = reference_feed(&ref, batch_of_one(&e->inputs[0], &e->labels[0]), err);
	if (status == PRONY_OK)
		status = reference_step(&ref, &e->recipe, false, err);
	if (status != PRONY_OK)
		return status;
	const double *want = reference_value(&ref, e->reference_graph.logits, &count);
	if (exercise_compare("logits", logits.data, want, count, 1e-2, &mismatch) == PRONY_OK)
		status = error_set(err, PRONY_MISMATCH, "OpenVINO takes the same mean");
	reference_release(&ref);
	return status;
}

static void test_other_mean(void **state)
{
	(void)state;
	assert_true(exercise_run(&adapter_openvino, library, exercise_find("overhang_counts"), 4,
				 other_mean));
}

/* Not there, no library, and another library. */
static void test_missing(void **state)
{
	(void)state;
	assert_true(exercise_missing(&adapter_openvino, "/nonexistent/libopenvino_c.so",
				     "/nonexistent/libopenvino_c.so"));
	assert_true(exercise_missing(&adapter_openvino, "/dev/null", "/dev/null"));
	assert_true(exercise_missing(&adapter_openvino, "libc.so.6",
				     "lacks the function ov_get_openvino_version"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),   cmocka_unit_test(test_refused_operators),
		cmocka_unit_test(test_other_mean), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_forward),	   cmocka_unit_test(test_operators),
		cmocka_unit_test(test_reports),	   cmocka_unit_test(test_precisions),
		cmocka_unit_test(test_throughput), cmocka_unit_test(test_wrong_weight),
	};

	library = exercise_library("PRONY_OPENVINO_LIBRARY",
				   "openvino/{,*/}openvino/libs/libopenvino_c.so.*");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
