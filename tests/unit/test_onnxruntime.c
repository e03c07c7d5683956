/*
 * ONNX Runtime's adapter against the float64 reference. Skipped if ONNX Runtime is not installed.
 */
#include "adapters/onnxruntime/onnxruntime.h"
#include "exercise_networks.h"
#include "framework_cases.h"

static const char *library;

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_FORWARD;
	snprintf(e->session.target.options, sizeof(e->session.target.options), "nospin");
	TRY(exercise_open(e, err));
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

	TRY(exercise_in_flight(e, err));
	if (!strstr(e->effective.settings, "intra_op_threads=1;"))
		return error_set(err, PRONY_MISMATCH, "%s", e->effective.settings);
	return PRONY_OK;
}

TEST(test_refusals)
{
	static const struct refusal rows[] = {
		{"mlp", STAGE_TRAIN, PRECISION_BF16, NULL, {"1.19.2", "bf16"}},
		/* Both nodes are named. */
		{"operator:lrn",
		 STAGE_FORWARD,
		 PRECISION_FP32,
		 even_lrn,
		 {"LRN lrn1: the size must be odd", "LRN lrn2"}},
	};

	framework_refuses(&adapter_onnxruntime, rows, COUNT(rows));
}

/* ONNX Runtime itself refuses the LRN that supports refuses. */
static enum prony_status runs_even_lrn(struct exercise *e, struct error *err)
{
	struct error said = ERROR_INIT;
	struct tensor logits;

	even_lrn(&e->graph);
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

TEST(test_lrn_of_vectors)
{
	static const struct network vectors = {
		.name = "vectors",
		.inputs = {{.name = "input", .rank = 1, .dims = {12}}},
		.input_count = 1,
		.classes = 5,
		.layers = lrn_of_vectors};

	assert_true(exercise_run(&adapter_onnxruntime, library, &vectors, 4, flat_lrn));
}

/* Attentions with a scale of the scores and a mask of any numbers, with keys that one Transpose
 * turned, and with neither, on 2 heads of 4 tokens. */
static int attentions(struct builder *b, int x)
{
	static const int64_t heads[] = {0, 2, 1, 3}, turn[] = {0, 1, 3, 2},
			     at_once[] = {0, 2, 3, 1};
	int h = build_transpose(b, "heads", x, heads), y, number;

	number = build_state(b, "number", 0, NULL, FILL_ONE);
	if (b->error.code == PRONY_OK)
		b->graph->values[number].fill_scale = 0.3;
	y = build_matmul(b, "scores", h, build_transpose(b, "turned", h, turn));
	y = build_mul(b, "scaled", y, number);
	y = build_add(b, "masked", y,
		      build_state(b, "mask", 2, (const int64_t[]){4, 4}, FILL_NORMAL));
	y = build_matmul(b, "mixed", build_softmax(b, "softmax", y, -1), h);
	y = build_node(b, OP_DIV, "divided", (const int[]){y, number}, 2, NULL);
	int z = build_matmul(b, "scores2", y, build_transpose(b, "turned2", x, at_once));
	z = build_matmul(b, "mixed2", build_softmax(b, "softmax2", z, -1), h);
	z = build_transpose(b, "tokens", z, heads);
	y = build_matmul(b, "scores3", h, build_transpose(b, "turned3", x, at_once));
	y = build_matmul(b, "mixed3", build_softmax(b, "softmax3", y, -1), h);
	y = build_add(b, "sum", z, build_transpose(b, "tokens3", y, heads));
	return build_linear(b, "fc", build_flatten(b, "flat", y), 5);
}

static enum prony_status fuses_attentions(struct exercise *e, struct error *err)
{
	TRY(exercise_forward(e, err));
	if (!strstr(e->built.notes, "attention: fused 2 of 3"))
		return error_set(err, PRONY_MISMATCH, "%s", e->built.notes);
	return PRONY_OK;
}

TEST(test_attentions)
{
	static const struct network network = {
		.name = "attentions",
		.inputs = {{.name = "input", .rank = 3, .dims = {4, 2, 3}}},
		.input_count = 1,
		.classes = 5,
		.layers = attentions};

	assert_true(exercise_run(&adapter_onnxruntime, library, &network, 4, fuses_attentions));
}

static const struct framework_case cases[] = {
	CASE("operator:lrn", 4, runs_even_lrn), CASE("lenet", 8, exercise_forward),
	CASE("tagger", 4, exercise_forward),	CASE("lenet", 1, exercise_forward),
	CASE("mlp", 8, exercise_forward),	CASE("odd", 4, exercise_forward),
	CASE("wide", 4, exercise_forward),	CASE(OPERATORS, 4, exercise_forward),
	CASE("mlp", 4, check_reports),		CASE("lenet", 8, throughput),
	CASE("mlp", 4, exercise_wrong_weight),	CASE("lenet", 8, exercise_data_file),
};

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	library = exercise_library("PRONY_ONNXRUNTIME_LIBRARY",
				   "onnxruntime/{,*/}onnxruntime/capi/libonnxruntime.so.*");
	return FRAMEWORK_CASES_RUN(&adapter_onnxruntime, library, cases, argc > 1 ? argv[1] : NULL);
}
