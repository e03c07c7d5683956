/* TensorFlow's adapter against the float64 reference. Skipped if TensorFlow is not installed. */
#include "adapters/tensorflow/tensorflow.h"
#include "adapters/tensorflow/tf_emit.h"
#include "exercise_networks.h"
#include "framework_cases.h"
#include "parity/reference.h"

static const struct adapter *adapter;
static const char *library;

static bool run(const char *network, int64_t batch, exercise_body *body)
{
	return exercise_run(adapter, library, zoo_find(network, NULL), batch, body);
}

/* With four samples, one comparison of `separable` is too close to zero. */
#define OPERATOR_BATCH 5

static bool run_operator(const char *name, exercise_body *body)
{
	return exercise_run(adapter, library, exercise_find(name), OPERATOR_BATCH, body);
}

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	struct tensor_set set;

	e->recipe.stage = STAGE_TRAIN;
	e->recipe.threads = 1; /* differs from the available cores: open has to set it */
	TRY(exercise_open(e, err));
	if (strchr("12", e->probe.version[0]) == NULL || e->effective.threads != 1 ||
	    strcmp(e->probe.devices[0], "cpu") != 0 ||
	    !strstr(e->effective.settings, "layout=NHWC"))
		return error_set(err, PRONY_MISMATCH, "version %s, %d threads, %s",
				 e->probe.version, e->effective.threads, e->effective.settings);
	TRY(exercise_trainer(e, err));
	if (exercise_read(e, READ_GRADIENTS, &set, NULL) != PRONY_UNSUPPORTED)
		return error_set(err, PRONY_MISMATCH, "gradients were read after an update");
	return PRONY_OK;
}

static void set_options(struct exercise *e, const char *options)
{
	snprintf(e->session.target.options, sizeof(e->session.target.options), "%s", options);
}

static enum prony_status with_nchw(struct exercise *e, struct error *err)
{
	set_options(e, "nchw");
	return exercise_gradients(e, err);
}

/* 1.15 has no such kernels, and says so itself when a step is run. */
static enum prony_status nchw_unsupported(struct exercise *e, struct error *err)
{
	struct error said = ERROR_INIT;

	if (with_nchw(e, &said) == PRONY_UNSUPPORTED &&
	    strstr(said.text, "only supports NHWC on device type CPU"))
		return PRONY_OK;
	return error_set(err, PRONY_MISMATCH, "nchw: %s", said.text);
}

/* Returns whether NCHW works. Its kernels are oneDNN's. TensorFlow 2 enables them by default on
 * processors with instructions for neural networks, so they must work there. */
static bool has_nchw(void)
{
	return adapter != &adapter_tensorflow1 &&
	       (__builtin_cpu_supports("avx512vnni") || !run("lenet", 4, nchw_unsupported));
}

static enum prony_status with_xla(struct exercise *e, struct error *err)
{
	set_options(e, "xla");
	TRY(exercise_gradients(e, err));
	if (!strstr(e->effective.settings, "xla=auto-clustering"))
		return error_set(err, PRONY_MISMATCH, "%s", e->effective.settings);
	return PRONY_OK;
}

static enum prony_status without_onednn(struct exercise *e, struct error *err)
{
	set_options(e, "noonednn");
	TRY(exercise_forward(e, err));
	if (!strstr(e->effective.settings, "TF_ENABLE_ONEDNN_OPTS=0"))
		return error_set(err, PRONY_MISMATCH, "%s", e->effective.settings);
	return PRONY_OK;
}

TEST(test_options)
{
	bool first = adapter == &adapter_tensorflow1, nchw = has_nchw();

	assert_true(run("lenet", 4, nchw ? with_nchw : nchw_unsupported));
	assert_true(!nchw || run_operator("pools", with_nchw));
	assert_true(!nchw || run_operator("lrn", with_nchw));
	assert_true(first || run("lenet", 4, without_onednn));
}

/* Close to the reference, but not as close as fp32. */
static enum prony_status in_bf16(struct exercise *e, struct error *err)
{
	struct reference ref = {0};
	struct tensor_set logits;
	struct error mismatch = ERROR_INIT;
	const double *want;
	int64_t count;

	e->recipe.stage = STAGE_FORWARD_BACKWARD;
	e->recipe.precision = PRECISION_BF16;
	TRY(reference_init(&ref, &e->reference_graph, &e->weights, err));
	TRY(exercise_open(e, err));
	TRY(reference_feed(&ref, exercise_batch(e, 0), err));
	TRY(reference_step(&ref, &e->recipe, false, err));
	TRY(exercise_step(e, 0, err));
	TRY(exercise_read(e, READ_LOGITS, &logits, err));
	want = reference_value(&ref, e->reference_graph.logits, &count);
	TRY(exercise_compare("logits", logits.tensors[0].data, want, count, 2e-2, err));
	if (exercise_compare("logits", logits.tensors[0].data, want, count, 1e-4, &mismatch) ==
	    PRONY_OK)
		return error_set(err, PRONY_MISMATCH, "bf16 is as near as fp32");
	reference_release(&ref);
	return PRONY_OK;
}

/* TensorFlow itself reports which of its operations lack bf16. */
static enum prony_status not_in_bf16(struct exercise *e, struct error *err)
{
	struct error said = ERROR_INIT;

	e->recipe.precision = PRECISION_BF16;
	if (exercise_gradients(e, &said) == PRONY_UNSUPPORTED &&
	    strstr(said.text, "TensorFlow failed ("))
		return PRONY_OK;
	return error_set(err, PRONY_MISMATCH, "bf16: %s", said.text);
}

TEST(test_bf16)
{
	if (adapter != &adapter_tensorflow)
		return;
	assert_true(run("lenet", 4, in_bf16));
	assert_true(run_operator("lstm", not_in_bf16));
	assert_true(run_operator("lrn", not_in_bf16));
}

/* Layers that TensorFlow's operations cannot express are refused, with all reasons at once. */
TEST(test_refusals)
{
	static const struct refusal rows[] = {
		{"operator:lrn",
		 STAGE_TRAIN,
		 PRECISION_FP16,
		 even_lrn,
		 {"fp16", "LRN lrn1: the size must be odd; LRN lrn2: the size must be odd"}},
		{"operator:lstm",
		 STAGE_TRAIN,
		 PRECISION_FP32,
		 shared_gates,
		 {"LSTM lstm: another operator also reads"}},
		{"operator:separable",
		 STAGE_TRAIN,
		 PRECISION_FP32,
		 dilated_convs,
		 {"a depthwise convolution with dilations is not supported"}},
	};

	framework_refuses(adapter, rows, COUNT(rows));
}

/* TensorFlow itself refuses the operations that supports refuses. */
static enum prony_status its_own_refusals(struct exercise *e, struct error *err)
{
	static const char *const says[] = {"type 'float' when 'int' expected",
					   "Shape must be rank 4 but is rank 3",
					   "Shape must be rank 4 but is rank 3"};
	const int64_t ones[] = {1, 1, 1, 1}, twos[] = {1, 2, 2, 1};
	const struct shape sequence = shape_make(3, (const int64_t[]){2, 3, 4});
	const struct shape image = shape_make(4, (const int64_t[]){1, 4, 4, 2});
	const struct shape channels = shape_make(1, (const int64_t[]){4});
	const float numbers[32] = {0};
	struct tf_api api;
	/* The adapter knows which libraries to load first. */
	TRY(adapter->probe(&e->session, &e->probe, err));

	TRY(tf_api_load(&api, e->library, NULL, err));
	for (int i = 0; i < 4; i++) {
		struct tf_emit emit = {.api = &api, .graph = api.TF_NewGraph()};
		struct tf_output s = tf_constant(&emit, TF_TYPE_FLOAT, &sequence, numbers);
		struct tf_output x = tf_constant(&emit, TF_TYPE_FLOAT, &image, numbers);
		struct tf_output c = tf_constant(&emit, TF_TYPE_FLOAT, &channels, numbers);
		bool as_expected;

		if (i == 0)
			tf_op(&emit, "LRN", TF_IN(x), TF_WITH(TF_FLOAT("depth_radius", 1.5)));
		else if (i == 1)
			tf_op(&emit, "LRN", TF_IN(s), NULL);
		else if (i == 2)
			tf_op(&emit, "FusedBatchNormV3", TF_IN(s, c, c, c, c), NULL);
		else /* 1.15 reports an unknown attribute, 2.21 ignores it */
			x = tf_op(&emit, "MaxPool", TF_IN(x),
				  TF_WITH(tf_ints("ksize", twos, 4), tf_ints("strides", ones, 4),
					  TF_TEXT("padding", "VALID"),
					  tf_ints("dilations", twos, 4)));
		if (i < 3)
			as_expected = strstr(emit.error.text, says[i]) != NULL;
		else
			as_expected = strstr(emit.error.text, "'dilations' not in Op") ||
				      tf_shape_of(&emit, x).dims[1] == 3;
		if (!as_expected)
			return error_set(err, PRONY_MISMATCH, "TensorFlow says of %d: %s", i,
					 emit.error.text);
		api.TF_DeleteGraph(emit.graph);
	}
	return PRONY_OK;
}

static const struct framework_case cases[] = {
	CASE("mlp", 1, its_own_refusals),
	CASE("lenet", 8, exercise_forward),
	CASE("tagger", 4, exercise_forward),
	CASE("odd", 4, exercise_forward),
	CASE("lenet", 8, exercise_gradients),
	CASE("tagger", 4, exercise_gradients),
	CASE("odd", 4, exercise_gradients),
	CASE(OPERATORS, OPERATOR_BATCH, exercise_forward),
	CASE(OPERATORS, OPERATOR_BATCH, exercise_gradients),
	CASE("lenet", 8, exercise_update_sgd),
	CASE("lenet", 8, exercise_update_momentum),
	CASE("tagger", 4, exercise_update_momentum),
	CASE("lenet", 8, exercise_update_rmsprop),
	CASE("lenet", 8, exercise_update_adamw),
	CASE("mlp", 8, exercise_update_clipped),
	CASE("mlp", 8, exercise_update_rmsprop_wrong),
	/* Running statistics, and the parameters of a layer that are in one variable. */
	CASE("operator:batch_norm", OPERATOR_BATCH, exercise_update_momentum),
	CASE("operator:lstm", OPERATOR_BATCH, exercise_update_rmsprop),
	CASE("operator:lstm", OPERATOR_BATCH, exercise_update_adamw),
	CASE("lenet", 4, check_reports),
	CASE("mlp", 8, exercise_dropout_on),
	CASE("mlp", 8, exercise_dropout_off),
	CASE("lenet", 4, with_xla),
	CASE("mlp", 4, exercise_wrong_weight),
};

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	bool first = strstr(PRONY_TEST_ADAPTER, "1") != NULL;

	adapter = first ? &adapter_tensorflow1 : &adapter_tensorflow;
	library = first ? exercise_library("PRONY_TENSORFLOW1_LIBRARY",
					   "tensorflow1/tensorflow_core/python/"
					   "_pywrap_tensorflow_internal.so")
			: exercise_library("PRONY_TENSORFLOW_LIBRARY",
					   "tensorflow/tensorflow/libtensorflow_cc.so.2");
	return FRAMEWORK_CASES_RUN(adapter, library, cases, argc > 1 ? argv[1] : NULL);
}
