/*
 * ONNX Runtime's adapter against the float64 reference. Skipped if ONNX Runtime is not installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/onnxruntime/onnxruntime.h"
#include "exercise_networks.h"
#include "framework_cases.h"

static const char *library;

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	enum prony_status status;

	e->recipe.stage = STAGE_FORWARD;
	snprintf(e->session.target.options, sizeof(e->session.target.options), "nospin");
	status = exercise_open(e, err);
	if (status != PRONY_OK)
		return status;
	if (e->probe.version[0] < '1' || e->effective.threads != 2 ||
	    e->probe.stages != 1u << STAGE_FORWARD ||
	    !strstr(e->effective.settings, "allow_spinning=0"))
		return error_set(err, PRONY_MISMATCH, "version %s, %d threads, %s",
				 e->probe.version, e->effective.threads, e->effective.settings);
	return exercise_inference(e, err);
}

static enum prony_status throughput(struct exercise *e, struct error *err)
{
	snprintf(e->session.target.options, sizeof(e->session.target.options), "throughput");
	enum prony_status status = exercise_in_flight(e, err);

	if (status == PRONY_OK && !strstr(e->effective.settings, "intra_op_threads=1;"))
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
	recipe.precision = PRECISION_BF16;
	assert_int_equal(zoo_build(zoo_find("mlp", NULL), 4, &graph, NULL), PRONY_OK);
	assert_int_equal(adapter_onnxruntime.supports(&graph, &recipe, &err), PRONY_UNSUPPORTED);
	assert_non_null(strstr(err.text, "1.19.2"));
	assert_non_null(strstr(err.text, "bf16"));
	graph_release(&graph);
}

/* Two unsupported nodes: both are named. */
static void test_refused_operators(void **state)
{
	struct recipe recipe;
	struct graph graph;
	struct error err = ERROR_INIT;

	(void)state;
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	for (int i = 0; i < EXERCISE_OPERATORS; i++) {
		if (strcmp(exercise_operators[i].name, "lrn") != 0)
			continue;
		assert_int_equal(zoo_build(&exercise_operators[i], 4, &graph, NULL), PRONY_OK);
		assert_int_equal(adapter_onnxruntime.supports(&graph, &recipe, NULL), PRONY_OK);
		for (int k = 0; k < graph.node_count; k++)
			graph.nodes[k].attributes.size = 4;
		assert_int_equal(adapter_onnxruntime.supports(&graph, &recipe, &err),
				 PRONY_UNSUPPORTED);
		graph_release(&graph);
	}
	assert_non_null(strstr(err.text, "LRN lrn1: an even size"));
	assert_non_null(strstr(err.text, "LRN lrn2"));
}

/* ONNX Runtime itself refuses the LRN that supports refuses. */
static enum prony_status even_lrn(struct exercise *e, struct error *err)
{
	struct error said = ERROR_INIT;
	struct tensor logits;

	for (int i = 0; i < e->graph.node_count; i++)
		if (e->graph.nodes[i].op == OP_LRN)
			e->graph.nodes[i].attributes.size = 4;
	if (exercise_file(e, &logits, &said) != PRONY_OK &&
	    strstr(said.text, "size_ % 2 == 1 was false"))
		return PRONY_OK;
	return error_set(err, PRONY_MISMATCH, "an even LRN: %s", said.text);
}

static enum prony_status flat_lrn(struct exercise *e, struct error *err)
{
	struct error said = ERROR_INIT;
	struct tensor logits;

	if (exercise_file(e, &logits, &said) != PRONY_OK &&
	    strstr(said.text, "X_shape.NumDimensions() == 4 was false"))
		return PRONY_OK;
	return error_set(err, PRONY_MISMATCH, "an LRN of vectors: %s", said.text);
}

static int lrn_of_vectors(struct builder *b, int x)
{
	return build_linear(b, "fc", build_lrn(b, "lrn", x, 3, 0.5, 0.75, 1), 5);
}

static void test_lrn_of_vectors(void **state)
{
	static const struct network vectors = {
		.name = "vectors",
		.inputs = {{.name = "input", .rank = 1, .dims = {12}}},
		.input_count = 1,
		.classes = 5,
		.layers = lrn_of_vectors};

	(void)state;
	assert_true(exercise_run(&adapter_onnxruntime, library, &vectors, 4, flat_lrn));
}

static const struct framework_case cases[] = {
	CASE("operator:lrn", 4, even_lrn),     CASE("lenet", 8, exercise_forward),
	CASE("tagger", 4, exercise_forward),   CASE("lenet", 1, exercise_forward),
	CASE("mlp", 8, exercise_forward),      CASE("odd", 4, exercise_forward),
	CASE("wide", 4, exercise_forward),     CASE(OPERATORS, 4, exercise_forward),
	CASE("mlp", 4, check_reports),	       CASE("lenet", 8, throughput),
	CASE("mlp", 4, exercise_wrong_weight),
};

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest others[] = {
		cmocka_unit_test(test_lrn_of_vectors),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_refused_operators),
	};

	library = exercise_library("PRONY_ONNXRUNTIME_LIBRARY",
				   "onnxruntime/{,*/}onnxruntime/capi/libonnxruntime.so.*");
	return FRAMEWORK_CASES_RUN(&adapter_onnxruntime, library, cases, others,
				   argc > 1 ? argv[1] : NULL);
}
