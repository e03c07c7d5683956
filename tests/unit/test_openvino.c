/* OpenVINO's adapter against the float64 reference. Skipped if OpenVINO is not installed. */
#include "adapters/openvino/openvino.h"
#include "exercise_networks.h"
#include "framework_cases.h"
#include "parity/reference.h"

static const char *library;

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_FORWARD;
	e->recipe.threads = 1; /* differs from the available cores */
	TRY(exercise_open(e, err));
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

	TRY(exercise_in_flight(e, err));
	if (!strstr(e->effective.settings, "PERFORMANCE_HINT=THROUGHPUT"))
		return error_set(err, PRONY_MISMATCH, "%s", e->effective.settings);
	return PRONY_OK;
}

TEST(test_refusals)
{
	static const struct refusal rows[] = {
		{"mlp", STAGE_TRAIN, PRECISION_TF32, NULL, {"OpenVINO does not train", "tf32"}},
		/* OpenVINO's result differs from the ONNX definition. */
		{"operator:overhang_counts",
		 STAGE_FORWARD,
		 PRECISION_FP32,
		 NULL,
		 {"AveragePool pool: count_include_pad"}},
	};

	framework_refuses(&adapter_openvino, rows, COUNT(rows));
}

/* Why supports refuses such a mean: OpenVINO silently computes another one. */
static enum prony_status other_mean(struct exercise *e, struct error *err)
{
	struct error mismatch = ERROR_INIT;
	struct reference ref;
	struct tensor logits;
	int64_t count = 0;

	TRY(exercise_file(e, &logits, err));
	TRY(reference_init(&ref, &e->reference_graph, &e->weights, err));
	TRY(reference_feed(&ref, exercise_batch(e, 0), err));
	TRY(reference_step(&ref, &e->recipe, false, err));
	const double *want = reference_value(&ref, e->reference_graph.logits, &count);
	if (exercise_compare("logits", logits.data, want, count, 1e-2, &mismatch) == PRONY_OK)
		return error_set(err, PRONY_MISMATCH, "OpenVINO takes the same mean");
	reference_release(&ref);
	return PRONY_OK;
}

static const struct framework_case cases[] = {
	CASE("lenet", 8, exercise_forward),
	CASE("tagger", 4, exercise_forward),
	CASE("lenet", 1, exercise_forward),
	CASE("mlp", 8, exercise_forward),
	CASE("lstm", 4, exercise_forward),
	CASE("odd", 4, exercise_forward),
	CASE("wide", 4, exercise_forward),
	{OPERATORS, 4, exercise_forward, "exercise_forward", .except = {"overhang_counts"}},
	CASE("operator:overhang_counts", 4, other_mean),
	CASE("mlp", 4, check_reports),
	CASE("lenet", 4, check_bf16),
	CASE("lenet", 4, check_fp16),
	CASE("lenet", 8, throughput),
	CASE("lenet", 8, exercise_data_file),
	CASE("mlp", 4, exercise_wrong_weight),
};

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	library = exercise_library("PRONY_OPENVINO_LIBRARY",
				   "openvino/{,*/}openvino/libs/libopenvino_c.so.*");
	return FRAMEWORK_CASES_RUN(&adapter_openvino, library, cases, argc > 1 ? argv[1] : NULL);
}
