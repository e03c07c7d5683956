/* OpenVINO's adapter against the float64 reference. Skipped if OpenVINO is not installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/openvino/openvino.h"
#include "exercise_networks.h"
#include "framework_cases.h"
#include "parity/reference.h"

static const char *library;

/* Operators for which OpenVINO's result differs from the ONNX definition. */
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
	e->recipe.threads = 1; /* differs from the available cores */
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

/* For a precision that the processor lacks, OpenVINO silently uses another one. */
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

static enum prony_status throughput(struct exercise *e, struct error *err)
{
	snprintf(e->session.target.options, sizeof(e->session.target.options), "throughput");
	enum prony_status status = exercise_in_flight(e, err);

	if (status == PRONY_OK && !strstr(e->effective.settings, "PERFORMANCE_HINT=THROUGHPUT"))
		status = error_set(err, PRONY_MISMATCH, "%s", e->effective.settings);
	return status;
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

/* Why supports refuses such a mean: OpenVINO silently computes another one. */
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
		status = reference_feed(&ref, exercise_batch(e, 0), err);
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

static const struct framework_case cases[] = {
	CASE("lenet", 8, exercise_forward),
	CASE("tagger", 4, exercise_forward),
	CASE("lenet", 1, exercise_forward),
	CASE("mlp", 8, exercise_forward),
	CASE("lstm", 4, exercise_forward),
	CASE("odd", 4, exercise_forward),
	CASE("wide", 4, exercise_forward),
	{OPERATORS, 4, exercise_forward, "exercise_forward", .except = "overhang_counts"},
	CASE("operator:overhang_counts", 4, other_mean),
	CASE("mlp", 4, check_reports),
	CASE("lenet", 4, check_bf16),
	CASE("lenet", 4, check_fp16),
	CASE("lenet", 8, throughput),
	CASE("mlp", 4, exercise_wrong_weight),
};

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest others[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_refused_operators),
	};

	library = exercise_library("PRONY_OPENVINO_LIBRARY",
				   "openvino/{,*/}openvino/libs/libopenvino_c.so.*");
	return FRAMEWORK_CASES_RUN(&adapter_openvino, library, cases, others,
				   argc > 1 ? argv[1] : NULL);
}
