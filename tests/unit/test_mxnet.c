/* MXNet's adapter against the float64 reference. Skipped if MXNet is not installed. */
#include <sys/mman.h>

#include "adapters/mxnet/mxnet.h"
#include "adapters/mxnet/mxnet_translate_internal.h"
#include "adapters/threads.h"
#include "base/files.h"
#include "base/memory.h"
#include "datasets/convert.h"
#include "exercise_networks.h"
#include "framework_cases.h"

#define LEAK_STEPS 3000
#define LEAK_PAGES 512 /* 2 MiB: below 700 bytes a step */

static const char *library;

static bool run(const char *network, int64_t batch, exercise_body *body)
{
	return exercise_run(&adapter_mxnet, library, zoo_find(network, NULL), batch, body);
}

/* Descriptor options are environment variables. */
static enum prony_status with_variable(struct exercise *e, const char *name, const char *value,
				       struct error *err)
{
	char said[64];

	snprintf(said, sizeof(said), "%s=%s;", name, value);
	setenv(name, value, 1);

	TRY(exercise_forward(e, err));
	if (!strstr(e->effective.settings, said) || !strstr(e->built.notes, "fused nodes: none"))
		return error_set(err, PRONY_MISMATCH, "%s; %s", e->effective.settings,
				 e->built.notes);
	return PRONY_OK;
}

static enum prony_status without_subgraph(struct exercise *e, struct error *err)
{
	return with_variable(e, "MXNET_SUBGRAPH_BACKEND", "NONE", err);
}

static enum prony_status without_mkldnn(struct exercise *e, struct error *err)
{
	return with_variable(e, "MXNET_MKLDNN_ENABLED", "0", err);
}

static enum prony_status update_operators(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_SGD;
	e->recipe.learning_rate = 0.01;
	return exercise_updates(e, false, err);
}

static enum prony_status check_reports(struct exercise *e, struct error *err)
{
	e->recipe.stage = STAGE_TRAIN;
	e->recipe.threads = 1; /* differs from the available cores: open has to set it */
	TRY(exercise_open(e, err));
	if (e->probe.version[0] != '1' || e->effective.threads != 1 ||
	    !strstr(e->effective.settings, "MXNET_SUBGRAPH_BACKEND=MKLDNN") ||
	    !strstr(e->effective.settings, "multi_sgd_mom_update"))
		return error_set(err, PRONY_MISMATCH, "version %s, %d threads, %s",
				 e->probe.version, e->effective.threads, e->effective.settings);
	return exercise_trainer(e, err);
}

/* Threads that MXNet has started after one step, for two networks; shared with the children. */
static int *started;

static enum prony_status count_threads(struct exercise *e, struct error *err)
{
	int before = threads_count("");

	e->recipe.stage = STAGE_TRAIN;
	e->recipe.threads = 2;
	TRY(exercise_open(e, err));
	TRY(exercise_step(e, 0, err));
	*started = threads_count("") - before;
	return PRONY_OK;
}

/* Arrays of 200,000 elements and more are copied with OpenMP on the calling thread. Its team would
 * bring libgomp's threads above the number of processors, and then none of them spins until the
 * next region. LeNet has such weights; the other network does not. */
TEST(test_no_team_but_the_engines)
{
	int of_small;

	started = mmap(NULL, sizeof(*started), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(started != MAP_FAILED);
	assert_true(exercise_run(&adapter_mxnet, library, &exercise_network_odd, 4, count_threads));
	of_small = *started;
	assert_true(run("lenet", 4, count_threads));
	assert_int_equal(*started, of_small);
	assert_true(of_small >= 2);
	munmap(started, sizeof(*started));
}

/* Returns the number of resident pages of this process. */
static long resident_pages(void)
{
	long size = 0, resident = -1;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%ld %ld", &size, &resident) != 2)
		resident = -1;
	if (file)
		fclose(file);
	return resident;
}

static enum prony_status check_leak(struct exercise *e, struct error *err)
{
	long before = 0, after;

	e->recipe.stage = STAGE_TRAIN;
	e->recipe.learning_rate = 1e-6;
	TRY(exercise_open(e, err));
	for (int i = 0; i < 2 * LEAK_STEPS; i++) {
		TRY(exercise_step(e, i % EXERCISE_SLOTS, err));
		if (i == LEAK_STEPS)
			before = resident_pages();
	}
	after = resident_pages();
	if (before <= 0 || after - before > LEAK_PAGES)
		return error_set(err, PRONY_MISMATCH, "%d steps took %ld pages", LEAK_STEPS,
				 after - before);
	return PRONY_OK;
}

/*
 * The data of the test of MXNet's own loader: the evaluation part of mnist-3000, 600 samples.
 */
enum { OWN_BATCH = 8, OWN_SAMPLES = 600 };

static const struct dataset *sample_set(char **folder)
{
	const char *source = getenv("PRONY_SOURCE");

	*folder = memory_printf("%s/datasets/mnist-3000", source ? source : ".");
	return dataset_find("mnist-3000");
}

static enum prony_status convert_to(const char *folder, struct error *err)
{
	struct convert_request request = {
		.source = "mnist-3000, evaluation",
		.folder = folder,
		.format = data_format_find("recordio"),
	};
	struct convert_result result;
	char *files;
	const struct dataset *dataset = sample_set(&files);
	enum prony_status status = samples_open(dataset, files, false, &request.samples, err);

	if (status == PRONY_OK)
		status = data_convert(&request, &result, err);
	samples_close(request.samples);
	free(files);
	return status;
}

static void describe_own(const char **folder, struct loader_data *data)
{
	*data = (struct loader_data){
		.name = "mnist-3000",
		.format = "recordio",
		.paths = folder,
		.path_count = 1,
		.count = OWN_SAMPLES,
		.channels = 1,
		.height = 28,
		.width = 28,
		.classes = 10,
		.scale = 255,
		.mean = {0.1307},
		.deviation = {0.3081},
	};
}

/* Replaces the drawn batch of a slot by the first batch as prony makes it. */
static enum prony_status fill_first(struct exercise *e, int slot, struct error *err)
{
	struct batch_request request = {
		.batch = OWN_BATCH, .rank = 3, .dims = {1, 28, 28}, .classes = 10, .seed = 1};
	struct batch_stream *stream;
	char *files;
	const struct dataset *dataset = sample_set(&files);
	enum prony_status status = batch_stream_open(dataset, files, &request, &stream, err);

	if (status == PRONY_OK) {
		status = batch_stream_next(stream, 1, e->inputs[slot].data, e->labels[slot].data,
					   err);
		batch_stream_close(stream);
	}
	free(files);
	return status;
}

/* Returns the logits of one step on a slot as doubles. */
static enum prony_status own_logits(struct exercise *e, int slot, double *out, struct error *err)
{
	struct tensor_set logits;

	TRY(exercise_step(e, slot, err));
	TRY(exercise_read(e, READ_LOGITS, &logits, err));
	for (int i = 0; i < OWN_BATCH * 10; i++)
		out[i] = ((const float *)logits.tensors[0].data)[i];
	return PRONY_OK;
}

/* Compares batch `number` of ImageRecordIter, taken into slot 1, with the batch in slot 0. */
static enum prony_status compare_own(struct exercise *e, const double *wanted, bool same,
				     struct error *err)
{
	double logits[OWN_BATCH * 10];
	float found[OWN_BATCH * 10];

	TRY(e->adapter->loader->take(&e->session, 1, err));
	TRY(own_logits(e, 1, logits, err));
	for (int i = 0; i < OWN_BATCH * 10; i++)
		found[i] = (float)logits[i];
	enum prony_status status =
		exercise_compare("logits", found, wanted, OWN_BATCH * 10, 1e-5, NULL);
	return (status == PRONY_OK) == same ? PRONY_OK
					    : error_set(err, PRONY_MISMATCH, "a batch is %s",
							same ? "another" : "the same");
}

/* In file order, and past the end of the file to its beginning. */
static enum prony_status own_batches(struct exercise *e, const char *folder, struct error *err)
{
	const struct adapter_loader *loader = e->adapter->loader;
	struct loader_data data;
	double wanted[OWN_BATCH * 10];
	TRY(fill_first(e, 0, err));

	describe_own(&folder, &data);
	TRY(exercise_open(e, err));
	TRY(own_logits(e, 0, wanted, err));
	TRY(loader->open(&e->session, &data, &e->graph, &e->recipe, err));
	for (int i = 0; i <= OWN_SAMPLES / OWN_BATCH; i++) {
		TRY(loader->next(&e->session, err));
		if (i < 2 || i == OWN_SAMPLES / OWN_BATCH)
			TRY(compare_own(e, wanted, i != 1, err));
	}
	return PRONY_OK;
}

static enum prony_status own_loader(struct exercise *e, struct error *err)
{
	char *folder;
	enum prony_status status = directory_make_temporary("prony-mxnet-", &folder, err);

	if (status != PRONY_OK)
		return status;
	e->recipe.stage = STAGE_FORWARD;
	e->recipe.batch = OWN_BATCH;
	e->recipe.input = INPUT_NATIVE;
	status = convert_to(folder, err);
	if (status == PRONY_OK)
		status = own_batches(e, folder, err);
	directory_remove(folder, NULL);
	free(folder);
	return status;
}

/* The adapter reports what ImageRecordIter cannot do, before ImageRecordIter crashes. */
TEST(test_own_loader_refusals)
{
	const char *folder = "/nonexistent";
	struct loader_data data;
	struct recipe recipe;
	SCOPED(graph) graph;
	struct error err = ERROR_INIT;
	const struct adapter_loader *loader = adapter_mxnet.loader;

	recipe_defaults(&recipe);
	recipe.batch = OWN_BATCH;
	describe_own(&folder, &data);
	assert_int_equal(zoo_build(zoo_find("lenet", NULL), OWN_BATCH, &graph, NULL), PRONY_OK);
	check(loader->supports(&data, &graph, &recipe, &err), &err);
	data.count = OWN_BATCH - 1;
	expect_error(loader->supports(&data, &graph, &recipe, &err), PRONY_UNSUPPORTED, &err,
		     "cannot fill a batch of 8 from a file of 7 samples");
	describe_own(&folder, &data);
	data.format = "idx";
	expect_error(loader->supports(&data, &graph, &recipe, &err), PRONY_UNSUPPORTED, &err,
		     "reads recordio, not idx");
	describe_own(&folder, &data);
	data.channels = 3;
	expect_error(loader->supports(&data, &graph, &recipe, &err), PRONY_UNSUPPORTED, &err,
		     "3x28x28 does not fit the network");
}

TEST(test_refusals)
{
	static const struct refusal rows[] = {
		/* One reason for both pools. */
		{"lenet", STAGE_TRAIN, PRECISION_BF16, dilated_pools, {"bf16", "pool1: dilations"}},
		/* Weights that are part of a layer's vector cannot be shared with another layer. */
		{"operator:lstm",
		 STAGE_TRAIN,
		 PRECISION_FP32,
		 shared_gates,
		 {"LSTM lstm: another operator also reads"}},
		{"operator:rnn",
		 STAGE_TRAIN,
		 PRECISION_FP32,
		 constant_bias,
		 {"RNN rnn: its weights are not parameters"}},
		{"operator:channel_pads", STAGE_TRAIN, PRECISION_FP32, NULL, {"Pad channels"}},
	};

	framework_refuses(&adapter_mxnet, rows, COUNT(rows));
}

/* Asks MXNet about an operator with these options on an array of that shape. */
static void ask(const struct mx_api *api, const char *type, const char *options, int rank,
		const int *dims, struct error *said)
{
	const struct node node = {.name = "asked"};
	struct mx_symbol *owned[4];
	struct translation t = {.api = api, .node = &node, .owned = owned, .owned_capacity = 4};
	struct mx_symbol *x = mx_variable(&t, "x"), *y = mx_op(&t, "", type, &x, 1, options);
	const char *const name = "x";
	const uint32_t starts[] = {0, (uint32_t)rank};
	uint32_t counts[3];
	const int *ranks[3], **shapes[3];
	int complete = 0;

	*said = t.error;
	if (said->code == PRONY_OK)
		mx_check(api,
			 api->MXSymbolInferShapeEx(y, 1, (const char **)(uintptr_t)&name, starts,
						   dims, &counts[0], &ranks[0], &shapes[0],
						   &counts[1], &ranks[1], &shapes[1], &counts[2],
						   &ranks[2], &shapes[2], &complete),
			 "infer shapes", said);
	for (int i = 0; i < t.owned_count; i++)
		api->MXSymbolFree(owned[i]);
}

/* MXNet itself refuses the main operators that supports refuses. */
static enum prony_status its_own_refusals(struct exercise *e, struct error *err)
{
	static const struct {
		const char *type, *options;
		int rank;
		const char *says;
	} rows[] = {
		{"Pooling", "kernel=(2,2) dilate=(2,2)", 4, "Cannot find argument 'dilate'"},
		{"Pad", "mode=constant pad_width=(0,0,1,1,0,0,0,0)", 4,
		 "expects padding on the first two axes to be zero"},
		{"Pad", "mode=constant pad_width=(0,0,1,1)", 2, "only supports 4-D or 5-D input"},
	};
	static const int dims[] = {2, 3, 4, 4};
	struct mx_api api;

	TRY(mx_api_load(&api, e->library, err));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error said = ERROR_INIT;

		ask(&api, rows[i].type, rows[i].options, rows[i].rank, dims, &said);
		if (!strstr(said.text, rows[i].says))
			return error_set(err, PRONY_MISMATCH, "of %s %s: %s", rows[i].type,
					 rows[i].options, said.text);
	}
	return PRONY_OK;
}

#define EACH_UPDATE(network, batch)                                                                \
	CASE(network, batch, exercise_update_sgd), CASE(network, batch, exercise_update_momentum), \
		CASE(network, batch, exercise_update_rmsprop),                                     \
		CASE(network, batch, exercise_update_adamw),                                       \
		CASE(network, batch, exercise_update_rmsprop_wrong)
/* MXNet's operators cannot pad channels: test_refusals. */
#define EACH_OPERATOR(body)                                                                        \
	{                                                                                          \
		OPERATORS, 4, body, #body, .except = { "channel_pads", "gru_reset" }               \
	}

static const struct framework_case cases[] = {
	CASE("mlp", 1, its_own_refusals),
	CASE("lenet", OWN_BATCH, own_loader),
	CASE("lenet", 8, exercise_forward),
	CASE("tagger", 4, exercise_forward),
	CASE("lenet", 1, exercise_forward),
	CASE("mlp", 8, exercise_forward),
	CASE("odd", 4, exercise_forward),
	CASE("wide", 4, exercise_forward),
	CASE("lenet", 8, exercise_gradients),
	CASE("tagger", 4, exercise_gradients),
	CASE("mlp", 8, exercise_gradients),
	CASE("odd", 4, exercise_gradients),
	CASE("wide", 4, exercise_gradients),
	EACH_OPERATOR(exercise_forward),
	EACH_OPERATOR(exercise_gradients),
	EACH_OPERATOR(update_operators),
	CASE("lstm", 8, exercise_forward),
	CASE("lstm", 8, exercise_gradients),
	CASE("irnn", 2, exercise_forward),
	CASE("irnn", 2, exercise_gradients),
	CASE("operator:sequences", 1, exercise_gradients),
	CASE("lenet", 8, without_subgraph),
	CASE("lenet", 8, without_mkldnn),
	EACH_UPDATE("lenet", 8),
	CASE("tagger", 4, exercise_update_momentum),
	EACH_UPDATE("mlp", 8),
	/* Its parameters are pieces of one vector, updated separately; a part of it must not
	 * change. */
	EACH_UPDATE("operator:lstm", 4),
	EACH_UPDATE("operator:rnn", 4),
	CASE("lenet", 4, check_reports),
	CASE("mlp", 8, exercise_dropout_on),
	CASE("mlp", 8, exercise_dropout_off),
	CASE("mlp", 1, check_leak),
	CASE("mlp", 4, exercise_wrong_weight),
};

/* An argument selects tests by name. */
int main(int argc, char **argv)
{
	library = exercise_library("PRONY_MXNET_LIBRARY", "mxnet/{,*/}mxnet/libmxnet.so");
	return FRAMEWORK_CASES_RUN(&adapter_mxnet, library, cases, argc > 1 ? argv[1] : NULL);
}
