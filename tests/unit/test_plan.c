/* The cells of a spec: which ones, their order, and why some cannot run. Needs no framework. */
#include "frameworks/registry.h"
#include "plan/plan.h"
#include "spec/spec.h"
#include "unit_test.h"
#include "zoo/zoo.h"

static char *folder;

/* A registry of its own: native and onnxruntime are installed "here", mxnet and pytorch are not. */
static struct registry registry;

static int make_machine(void **state)
{
	char *library, *unpack;

	(void)state;
	if (directory_make_temporary("test-plan-", &folder, NULL) != PRONY_OK)
		return -1;
	library = path_join(folder, "lib.so");
	file_write_atomic(library, "x", 1, NULL);
	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	setenv("XDG_DATA_HOME", folder, 1);
	setenv("XDG_CONFIG_HOME", folder, 1);
	setenv("PATH", folder, 1);
	setenv("PRONY_NATIVE_LIBRARY", library, 1);
	setenv("PRONY_ONNXRUNTIME_LIBRARY", library, 1);
	unpack = path_join(folder, "other/mnist-3000");
	directory_make(unpack, NULL);
	unsetenv("PRONY_MXNET_LIBRARY");
	unsetenv("PRONY_PYTORCH_PYTHON");
	unsetenv("VIRTUAL_ENV");
	unsetenv("CONDA_PREFIX");
	unsetenv("PRONY_DATA");
	free(unpack);
	free(library);
	return registry_load(&registry, NULL) == PRONY_OK ? 0 : -1;
}

static int remove_machine(void **state)
{
	(void)state;
	registry_release(&registry);
	directory_remove(folder, NULL);
	free(folder);
	return 0;
}

static struct fixture {
	struct spec spec;
	struct plan plan;
	struct plan_settings settings;
	struct error err;
	enum prony_status status;
} f;

static struct gpus invented_gpus;

static const struct gpus *find_gpus(void)
{
	return &invented_gpus;
}

static void begin(void)
{
	f = (struct fixture){
		.settings = {.registry = &registry, .self = "/usr/bin/prony", .cores = 2}};
	spec_init(&f.spec);
}

static void end(void)
{
	if (f.status == PRONY_OK)
		plan_release(&f.plan);
	spec_release(&f.spec);
}

static int begin_test(void **state)
{
	(void)state;
	begin();
	return 0;
}

static int end_test(void **state)
{
	(void)state;
	end();
	return 0;
}

/* A test of one plan; tests of several plans call begin() and end() for each. */
#define PLAN_TEST(name) TEST_WITH(name, begin_test, end_test)

/* Sets an axis like the command line, "-f native,mxnet". */
static void set(const char *axis, const char *values)
{
	int id = 0;

	while (id < AXIS_COUNT && strcmp(axes[id].plural, axis) != 0)
		id++;
	assert_true(id < AXIS_COUNT);
	if (spec_set_axis(&f.spec, (enum axis_id)id, &values, 1, "-x", &f.err) != PRONY_OK)
		fail_msg("%s", f.err.text);
}

/* Reads the text as the file mine.yaml. */
static void suite(const char *text)
{
	char *path = test_keep(path_join(folder, "mine.yaml"));

	file_write_atomic(path, text, strlen(text), NULL);
	if (spec_read_file(&f.spec, path, &f.err) != PRONY_OK)
		fail_msg("%s", f.err.text);
}

static void expand(void)
{
	spec_complete(&f.spec);
	f.status = plan_expand(&f.spec, &f.settings, &f.plan, &f.err);
}

static void expand_ok(void)
{
	expand();
	if (f.status != PRONY_OK)
		fail_msg("%s", f.err.text);
}

static const struct plan_cell *find(const char *framework, enum stage stage)
{
	for (size_t i = 0; i < f.plan.count; i++)
		if (strcmp(f.plan.cells[i].cell.framework, framework) == 0 &&
		    f.plan.cells[i].cell.stage == stage)
			return &f.plan.cells[i];
	fail_msg("no cell of %s %s", framework, stage_name(stage));
	return NULL;
}

PLAN_TEST(quickstart_is_what_the_readme_promises)
{
	char *path = NULL;

	check(spec_find_suite("quickstart", &path, &f.err), &f.err);
	check(spec_read_file(&f.spec, path, &f.err), &f.err);
	free(path);
	expand_ok();
	for (size_t i = 0; i < f.plan.count; i++) {
		const struct plan_cell *cell = &f.plan.cells[i];

		assert_string_equal(cell->cell.network, "lenet");
		assert_string_equal(cell->cell.dataset, "mnist-3000");
		assert_int_equal(cell->cell.batch, 64);
		assert_false(cell->explicit_);
	}
	assert_int_equal(find("native", STAGE_FORWARD)->status, CELL_PENDING);
	assert_int_equal(find("native", STAGE_TRAIN)->status, CELL_PENDING);
	assert_int_equal(find("onnxruntime", STAGE_FORWARD)->status, CELL_PENDING);
	assert_int_equal(find("onnxruntime", STAGE_TRAIN)->status, CELL_UNSUPPORTED);
	assert_int_equal(find("mxnet", STAGE_TRAIN)->status, CELL_MISSING);
	assert_int_equal(find("pytorch", STAGE_TRAIN)->status, CELL_MISSING);
	assert_int_equal(f.spec.effort, EFFORT_QUICK);
	assert_ptr_equal(&f.plan.cells[0], find("native", STAGE_FORWARD));
}

PLAN_TEST(order_is_stable)
{
	static const char *const expected[] = {
		"fake lenet forward 8",	 "null lenet forward 8", "fake lenet forward 16",
		"null lenet forward 16", "fake lenet train 8",	 "null lenet train 8",
		"fake lenet train 16",	 "null lenet train 16",	 "fake mlp forward 8",
	};

	set("frameworks", "fake,null");
	set("networks", "lenet,mlp");
	set("stages", "forward,train");
	set("batches", "8,16");
	expand_ok();
	assert_int_equal(f.plan.count, 16);
	for (size_t i = 0; i < COUNT(expected); i++) {
		const struct cell *cell = &f.plan.cells[i].cell;
		char text[256];

		snprintf(text, sizeof(text), "%s %s %s %lld", cell->framework, cell->network,
			 stage_name(cell->stage), (long long)cell->batch);
		assert_string_equal(text, expected[i]);
	}
}

PLAN_TEST(duplicates_are_dropped)
{
	set("frameworks", "fake,fake+crash+after=1,fake+after=1+crash,fake");
	set("stages", "forward,eval,infer");
	set("batches", "8,1..8*2");
	/* Without an update there is no optimiser: one cell, not three. */
	set("optimisers", "sgd,momentum,rmsprop");
	expand_ok();
	assert_int_equal(f.plan.count, 2 * 4);
	assert_int_equal(f.plan.cells[0].cell.optimiser, OPTIMISER_SGD);
}

/* Other networks have no such axis: one cell, however many lengths were asked for. */
PLAN_TEST(lengths_make_networks)
{
	set("frameworks", "null");
	set("networks", "mlp,gpt2-bytes");
	set("sequences", "128,16,4096");
	expand_ok();
	assert_int_equal(f.plan.count, 4);
	assert_int_equal(f.plan.cells[0].cell.sequence, 0);
	assert_int_equal(f.plan.cells[1].cell.sequence, 128);
	assert_has(f.plan.cells[1].key, "sequence=128");
	assert_int_equal(f.plan.cells[2].network->tokens, 16);
	assert_int_equal(f.plan.cells[2].network->inputs[0].dims[0], 16);
	assert_int_equal(f.plan.cells[2].network->macs, 16 * (786432 + 32768 + 8 * 16 * 128));
	assert_int_equal(f.plan.cells[3].status, CELL_UNSUPPORTED);
	assert_has(f.plan.cells[3].reason, "at most 1024 tokens");
}

PLAN_TEST(a_length_that_no_network_takes_is_an_error)
{
	set("frameworks", "null");
	set("networks", "mlp");
	set("sequences", "128");
	expand();
	assert_int_equal(f.status, PRONY_USAGE);
	assert_has(f.err.text, "no network of the plan takes sequences of a chosen length");
}

PLAN_TEST(harness_cells_say_so)
{
	set("frameworks", "null,fake+crash-at=build");
	expand_ok();
	const struct plan_cell *null = find("null", STAGE_TRAIN);
	const struct plan_cell *fake = find("fake+crash-at=build", STAGE_TRAIN);
	assert_true(null->ungated && null->explicit_);
	assert_true(!fake->ungated && fake->explicit_);
	assert_int_equal(fake->status, CELL_PENDING);
	assert_string_equal(fake->worker_argv[0], "/usr/bin/prony");
	assert_string_equal(fake->worker_argv[1], "worker");
	assert_string_equal(fake->worker_argv[5], "crash-at=build");
	assert_null(fake->worker_argv[6]);
	assert_string_equal(fake->target.options, "crash-at=build");
	assert_string_equal(fake->target.device, "cpu");
	assert_string_equal(fake->worker_environment[0], "OMP_NUM_THREADS=2");
}

PLAN_TEST(recipes_follow_the_spec)
{
	set("learning-rates", "0.125");
	set("weight-decays", "0.5");
	set("dropouts", "off");
	f.spec.seed = 77;
	f.spec.steps = 5;
	set("frameworks", "fake");
	set("devices", "cpu:1");
	set("optimisers", "rmsprop");
	set("datasets", "synthetic");
	expand_ok();
	const struct recipe *recipe = &f.plan.cells[0].recipe;
	assert_true(recipe->learning_rate == 0.125 && recipe->weight_decay == 0.5);
	assert_true(recipe->rho == 0.9 && recipe->epsilon == 1e-7);
	assert_false(recipe->dropout);
	assert_int_equal(recipe->seed, 77);
	assert_int_equal(recipe->threads, 1);
	assert_string_equal(f.plan.cells[0].target.device, "cpu");
	assert_string_equal(f.plan.cells[0].cell.device, "cpu:1");
	assert_int_equal(recipe->optimiser, OPTIMISER_RMSPROP);
	assert_true(recipe->slots >= 8);
	assert_int_equal(f.plan.cells[0].steps, 5);
	assert_int_equal(f.plan.cells[0].warm_up_steps, -1);
	assert_null(f.plan.cells[0].data_folder);
}

TEST(what_cannot_run_says_why)
{
	static const struct {
		const char *axis, *values, *framework;
		enum cell_status status;
		const char *reason;
	} rows[] = {
		{"stages", "train", "onnxruntime", CELL_UNSUPPORTED,
		 "stage train: onnxruntime has forward only"},
		{"stages", "decode", "mxnet", CELL_UNSUPPORTED,
		 "stage decode: the framework lacks it"},
		{"optimisers", "adamw", "caffe", CELL_UNSUPPORTED,
		 "optimiser adamw: the framework lacks it"},
		{"stages", "load", "pytorch", CELL_UNSUPPORTED,
		 "only the framework native measures"},
		{"precisions", "tf32", "native", CELL_UNSUPPORTED,
		 "precision tf32: native has fp32, bf16"},
		{"precisions", "bf16", "mxnet", CELL_UNSUPPORTED,
		 "precision bf16: mxnet has fp32 only"},
		{"devices", "cuda:0", "onnxruntime", CELL_UNSUPPORTED, "runs on the CPU only"},
		{"devices", "tpu:0", "onnxruntime", CELL_UNSUPPORTED, "runs on the CPU only"},
		{"devices", "tpu:0", "pytorch", CELL_UNSUPPORTED,
		 "device tpu:0: pytorch runs on cpu and cuda:N"},
		{"devices", "cuda:0+1", "pytorch", CELL_UNSUPPORTED, "one GPU"},
		{"devices", "cpu:1x2", "onnxruntime", CELL_UNSUPPORTED,
		 "onnxruntime has no data parallel training"},
		{"devices", "cpu:1x3", "fake", CELL_UNSUPPORTED, "may use only 2 physical cores"},
		{"devices", "cpu:1x3", "fake", CELL_UNSUPPORTED, "3 ranks do not divide a batch"},
		{"devices", "cuda:1", "pytorch", CELL_MISSING, "this machine has 1 GPU, cuda:0"},
		{"datasets", "own", "native", CELL_MISSING, "prony data fetch mnist"},
		{"devices", "cpu:3", "native", CELL_UNSUPPORTED, "may use only 2 physical cores"},
		{"inputs", "native", "native", CELL_UNSUPPORTED, "input native"},
		{"inputs", "native", "pytorch+lmdb", CELL_MISSING, "prony framework install"},
		{"inputs", "stream", "pytorch+lmdb", CELL_UNSUPPORTED,
		 "option lmdb needs input native, but the input is stream"},
		{"loops", "fit", "native", CELL_UNSUPPORTED, "loop fit: native has step only"},
		{"clip-norms", "0.5", "mxnet", CELL_UNSUPPORTED,
		 "clip norm 0.5: mxnet does not clip gradients"},
		{"networks", "lenet", "native:jax", CELL_UNSUPPORTED, "no backends"},
		{"networks", "lenet", "mxnet", CELL_MISSING, "prony framework install mxnet"},
		{"networks", "lenet", "native@other", CELL_MISSING, "install native@other"},
		{"networks", "lenet", "pytorch", CELL_MISSING, "prony framework install pytorch"},
		{"datasets", "mnist", "native", CELL_MISSING, "prony data fetch mnist"},
		{"batches", "16777216", "native", CELL_OUT_OF_MEMORY, "use a batch"},
		{"devices", "cuda:0", "mxnet", CELL_UNSUPPORTED,
		 "mxnet is built for GPUs up to sm_86, this one is sm_90"},
	};
	invented_gpus = (struct gpus){.count = 1, .gpus = {{.capability = 90}}};

	for (size_t i = 0; i < COUNT(rows); i++) {

		begin();
		f.settings.memory_bytes = INT64_C(8) << 30;
		f.settings.gpus = find_gpus;
		set("frameworks", rows[i].framework);
		set(rows[i].axis, rows[i].values);
		expand_ok();
		assert_int_equal(f.plan.count, 1);
		if (f.plan.cells[0].status != rows[i].status)
			fail_msg("%s %s: %s (%s)", rows[i].framework, rows[i].values,
				 cell_status_name(f.plan.cells[0].status),
				 f.plan.cells[0].reason ? f.plan.cells[0].reason : "");
		assert_has(f.plan.cells[0].reason, rows[i].reason);
		assert_null(f.plan.cells[0].worker_argv);
		end();
	}
}

/* A library that the user names may be newer than the descriptor knows. */
TEST(a_gpu_decides_for_its_cells)
{
	static const struct {
		struct gpu gpu;
		enum cell_status status;
		const char *reason; /* NULL: none */
	} rows[] = {
		{{.capability = 89, .memory_bytes = INT64_C(1) << 30}, CELL_PENDING, NULL},
		{{.capability = 90}, CELL_PENDING, NULL},
		{{.capability = 0, .memory_bytes = 1 << 20},
		 CELL_OUT_OF_MEMORY,
		 "but only 1 MiB (cuda:0) is available"},
	};

	setenv("PRONY_MXNET_LIBRARY", getenv("PRONY_NATIVE_LIBRARY"), 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		invented_gpus = (struct gpus){.count = 1, .gpus = {rows[i].gpu}};
		begin();
		/* Of the machine itself, which must not decide. */
		f.settings.memory_bytes = 1;
		f.settings.gpus = find_gpus;
		set("frameworks", "mxnet");
		set("networks", "lenet");
		set("datasets", "synthetic");
		set("devices", "cuda:0");
		expand_ok();
		assert_int_equal(f.plan.count, 1);
		assert_int_equal(f.plan.cells[0].status, rows[i].status);
		if (rows[i].reason)
			assert_has(f.plan.cells[0].reason, rows[i].reason);
		end();
	}
	unsetenv("PRONY_MXNET_LIBRARY");
}

PLAN_TEST(a_second_precision_is_said)
{
	suite("frameworks: [native, onnxruntime]\n"
	      "networks: mlp\n"
	      "datasets: synthetic\n"
	      "stages: forward\n"
	      "precisions: fp16\n"
	      "precisions-instead: [bf16, fp32]\n");
	expand_ok();
	assert_int_equal(find("native", STAGE_FORWARD)->cell.precision, PRECISION_BF16);
	assert_int_equal(find("native", STAGE_FORWARD)->recipe.precision, PRECISION_BF16);
	assert_int_equal(find("onnxruntime", STAGE_FORWARD)->cell.precision, PRECISION_FP32);
	/* On a GPU native has it. */
	assert_true(
		framework_precisions(find("native", STAGE_FORWARD)->location->framework, "cuda:0") &
		1u << PRECISION_FP16);
	assert_int_equal(f.plan.note_count, 2);
	assert_has(f.plan.notes[0], "native has no fp16: using bf16 instead");
	assert_has(f.plan.notes[1], "onnxruntime has no fp16: using fp32 instead");
}

/* TensorFlow's tf.data belongs to its Python package; options apply to the frameworks that have
 * them. */
TEST(another_reads_for_the_same_library)
{
	static const struct {
		const char *frameworks, *inputs, *cells;
	} rows[] = {
		{"tensorflow", "native", "tensorflow-python "},
		{"tensorflow", "resident,native", "tensorflow tensorflow-python "},
		{"tensorflow,tensorflow-python", "native", "tensorflow-python "},
		{"tensorflow+nchw", "native", "tensorflow+nchw "},
		{"tensorflow@other", "native", "tensorflow@other "},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char cells[200] = "";
		size_t used = 0;

		begin();
		set("frameworks", rows[i].frameworks);
		set("inputs", rows[i].inputs);
		set("datasets", "mnist-3000");
		set("stages", "train");
		expand_ok();
		for (size_t c = 0; c < f.plan.count; c++)
			used += (size_t)snprintf(cells + used, sizeof(cells) - used, "%s ",
						 f.plan.cells[c].cell.framework);
		assert_string_equal(cells, rows[i].cells);
		const struct plan_cell *last = &f.plan.cells[f.plan.count - 1];
		if (strstr(cells, "tensorflow-python")) {
			assert_string_equal(last->worker_name, "tensorflow-python");
			assert_string_equal(last->location->framework->name, "tensorflow-python");
			assert_int_equal(last->status, CELL_MISSING);
			assert_int_equal(f.plan.note_count, 1);
			assert_has(f.plan.notes[0], "for input native it uses tensorflow-python");
		} else {
			assert_int_equal(last->status, CELL_UNSUPPORTED);
			assert_has(last->reason, "supports no environment or option");
			assert_int_equal(f.plan.note_count, 0);
		}
		end();
	}
}

PLAN_TEST(epochs_are_steps)
{
	suite("frameworks: native\n"
	      "networks: [mlp, cnn]\n"
	      "datasets: synthetic\n"
	      "batch: 32\n"
	      "samples: 1000\n"
	      "epochs: 4\n"
	      "override:\n"
	      "  - networks: mlp\n"
	      "    batch: 128\n"
	      "    warm-up-steps: 2\n");
	expand_ok();
	assert_int_equal(f.plan.cells[0].steps, 3 * 8);
	assert_int_equal(f.plan.cells[0].warm_up_steps, 2);
	assert_int_equal(f.plan.cells[1].steps, 3 * 32);
	assert_int_equal(f.plan.cells[1].warm_up_steps, 31);
}

/* A screening keeps the epochs of the framework's own loop, and the values given by the user. */
TEST(a_screening_has_epochs_in_loop_fit)
{
	static const struct {
		int64_t typed, steps[2], warm_up[2]; /* in loop fit and step */
	} rows[] = {{0, {32, 0}, {31, -1}}, {5, {5, 5}, {31, -1}}};

	for (size_t i = 0; i < COUNT(rows); i++) {

		begin();
		suite("frameworks: keras3:tensorflow\n"
		      "networks: cnn\n"
		      "datasets: synthetic\n"
		      "loops: [fit, step]\n"
		      "batch: 32\n"
		      "samples: 1000\n"
		      "epochs: 4\n");
		spec_screen(&f.spec);
		if (rows[i].typed > 0)
			spec_fix_steps(&f.spec, rows[i].typed);
		expand_ok();
		for (size_t k = 0; k < 2; k++) {
			const struct plan_cell *cell = &f.plan.cells[k];

			assert_int_equal(cell->cell.loop, k == 0 ? LOOP_FIT : LOOP_STEP);
			assert_int_equal(cell->cell.batch, 4);
			assert_int_equal(cell->steps, rows[i].steps[k]);
			assert_int_equal(cell->warm_up_steps, rows[i].warm_up[k]);
			assert_int_equal(cell->epoch_steps, k == 0 ? 32 : 0);
			/* Values given by the user are not cut. */
			assert_int_equal(cell->epoch_ns > 0, k == 0 && rows[i].typed == 0);
			json_auto_t *plan = plan_to_json(&f.plan);
			const json_t *longest =
				json_object_get(json_array_get(plan, k), "epoch_max_ns");
			if (cell->epoch_ns > 0)
				assert_int_equal(json_integer_value(longest), cell->epoch_ns);
			else
				assert_true(json_is_null(longest));
		}
		end();
	}
}

PLAN_TEST(all_reasons_come_at_once)
{
	set("frameworks", "onnxruntime");
	set("precisions", "fp16");
	expand_ok();
	assert_has(f.plan.cells[0].reason, "stage train: onnxruntime has forward only; precision");
}

/* The batches of 64 images take 294 MiB; the tensors that training VGG16 keeps of them take 6.5
 * GiB. */
TEST(memory_of_the_network_counts)
{
	static const struct {
		const char *stage;
		int64_t gib;
		enum cell_status status;
	} rows[] = {
		{"forward", 2, CELL_OUT_OF_MEMORY},
		{"forward", 4, CELL_PENDING},
		{"train", 4, CELL_OUT_OF_MEMORY},
		{"train", 16, CELL_PENDING},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {

		begin();
		f.settings.memory_bytes = rows[i].gib << 30;
		f.settings.memory_of = "of a test";
		set("frameworks", "native");
		set("networks", "vgg16");
		set("stages", rows[i].stage);
		set("batches", "64");
		expand_ok();
		assert_int_equal(f.plan.cells[0].status, rows[i].status);
		if (rows[i].status == CELL_OUT_OF_MEMORY) {
			assert_has(f.plan.cells[0].reason, "batch 64 needs at least");
			assert_has(f.plan.cells[0].reason,
				   ".0 GiB (of a test) is available: use a batch");
		}
		end();
	}
}

static void plan_vgg16(const char *batches, int64_t mib)
{
	begin();
	f.settings.memory_bytes = mib << 20;
	set("frameworks", "native");
	set("networks", "vgg16");
	set("stages", "train");
	set("batches", batches);
	expand_ok();
}

/* The largest batch that a refusal names is accepted; the next larger one is refused. */
TEST(refusal_names_the_batch_that_fits)
{
	char batches[64];

	plan_vgg16("512", 4096);
	const char *said = strstr(f.plan.cells[0].reason, "use a batch of at most ");
	assert_non_null(said);
	long largest = strtol(said + strlen("use a batch of at most "), NULL, 10);
	snprintf(batches, sizeof(batches), "%ld,%ld", largest, largest + 1);
	end();
	plan_vgg16(batches, 4096);
	assert_int_equal(f.plan.cells[0].status, CELL_PENDING);
	assert_int_equal(f.plan.cells[1].status, CELL_OUT_OF_MEMORY);
	end();
}

/* If the parameters alone are too large, a smaller batch does not help. */
TEST(refusal_says_that_no_batch_fits)
{
	plan_vgg16("1,8", 1024);
	assert_has(f.plan.cells[0].reason, "batch 1 needs at least 1.6 GiB");
	assert_lacks(f.plan.cells[0].reason, "smaller");
	assert_has(f.plan.cells[1].reason, "and even batch 1 needs 1.6 GiB");
	end();
}

/* Without a given limit, the machine's own memory is the limit. */
PLAN_TEST(memory_is_bounded_by_the_machine)
{
	set("frameworks", "null");
	set("batches", "1,16777216");
	expand_ok();
	assert_int_equal(f.plan.cells[0].status, CELL_PENDING);
	assert_int_equal(f.plan.cells[1].status, CELL_OUT_OF_MEMORY);
}

TEST(unknown_words_are_refused)
{
	static const struct {
		const char *axis, *values, *words;
	} rows[] = {
		{"frameworks", "pytroch",
		 "unknown framework \"pytroch\"; did you mean pytorch? Known: "
		 "native, "},
		{"frameworks", "all,zzzzzzzzzzz",
		 "unknown framework \"zzzzzzzzzzz\". Known: native"},
		{"frameworks", "null+foo", "null has no option +foo; it has none"},
		{"frameworks", "pytorch+channels_last+compil",
		 "pytorch has no option +compil; did you mean +compile? It has +channels_last, "},
		{"frameworks", "native@", "ENV"},
		{"frameworks", "native@.x", "environment"},
		{"frameworks", "Native", "lower case"},
		{"networks", "lenett",
		 "unknown network \"lenett\"; did you mean lenet? Known: mlp, lenet"},
		{"datasets", "mnits", "unknown data set \"mnits\"; did you mean mnist?"},
		{"devices", "cdua:0", "device 'cdua:0': unknown; did you mean cuda?"},
		{"precisions", "fp23", "did you mean fp32? Known: fp32, tf32, fp16, bf16"},
		{"stages", "trian", "did you mean train?"},
		{"inputs", "resistent", "did you mean resident?"},
		{"syncs", "block", "did you mean blocks?"},
		{"optimisers", "adam", "unknown optimiser \"adam\""},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {

		begin();
		set(rows[i].axis, rows[i].values);
		expand();
		assert_int_equal(f.status, PRONY_USAGE);
		assert_memory_equal(f.err.text, "-x: ", 4);
		assert_has(f.err.text, rows[i].words);
		end();
	}
}

TEST(unknown_words_of_a_suite_have_a_line)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"frameworks: fake\nnetworks: [lenett]\n",
		 "mine.yaml:2: networks: unknown network \"lenett\"; did you mean lenet?"},
		{"frameworks:\n- fake\n- pytroch\n", "mine.yaml:3: frameworks: unknown framework"},
		{"frameworks: [pytorch+compil]\n",
		 "mine.yaml:1: frameworks: pytorch has no option"},
		{"devices: [cpu, cdua:0]\n", "mine.yaml:1: devices: device 'cdua:0'"},
		{"exclude:\n- {networks: lenett}\n", "mine.yaml:2: networks: unknown network"},
		{"override:\n- {stages: trian, steps: 3}\n", "mine.yaml:2: stages: unknown stage"},
		{"exclude:\n- {frameworks: all}\n", "no cell is left"},
		{"exclude:\n- {networks: all}\n", "no cell is left"},
		{"batches: 1..4000+1\nnetworks: [lenet, mlp]\nstages: [forward, train]\n"
		 "precisions: [fp32, tf32]\n",
		 "more than 16384 cells"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {

		begin();
		suite(rows[i].text);
		expand();
		assert_int_equal(f.status, PRONY_BAD_INPUT);
		assert_has(f.err.text, rows[i].words);
		end();
	}
}

PLAN_TEST(all_networks_are_those_of_the_zoo)
{
	set("frameworks", "native");
	set("networks", "all,lenet"); /* duplicates are one cell */
	expand_ok();
	assert_int_equal(f.plan.count, zoo_network_count);
	for (size_t i = 0; i < f.plan.count; i++)
		assert_string_equal(f.plan.cells[i].cell.network, zoo_networks[i]->name);
}

PLAN_TEST(excludes_match_all_their_lists)
{
	suite("frameworks: [fake, fake+after=3, 'null']\n"
	      "networks: [lenet, mlp]\n"
	      "stages: [forward, train]\n"
	      "batches: [8, 16]\n"
	      "exclude:\n"
	      "  - {frameworks: fake, networks: mlp}\n"
	      "  - {frameworks: fake+after=3, stages: eval}\n"
	      "  - {frameworks: 'null', batches: 1..8*2, datasets: mnist}\n");
	expand_ok();
	/* Excluded of the 24 cells: fake on mlp, where the name matches its variants (fake and
	 * fake+after=3: 8); fake+after=3 forward on lenet (2); null at batch 8, whose mnist is the
	 * sample here (4). */
	assert_int_equal(f.plan.count, 24 - 8 - 2 - 4);
	for (size_t i = 0; i < f.plan.count; i++) {
		const struct cell *cell = &f.plan.cells[i].cell;

		assert_false(strcmp(cell->name, "fake") == 0 && strcmp(cell->network, "mlp") == 0);
		assert_false(strcmp(cell->name, "null") == 0 && cell->batch == 8);
	}
}

PLAN_TEST(overrides_change_what_they_match)
{
	suite("frameworks: fake\n"
	      "networks: [lenet, mlp]\n"
	      "batches: [8, 32]\n"
	      "steps: 100\n"
	      "override:\n"
	      "  - {networks: mlp, batch: 16, steps: 7, warm-up-steps: 0}\n"
	      "  - {networks: mlp, batches: 32, learning-rate: 0.5, steps: 9}\n");
	expand_ok();
	/* Both batches of mlp became 16; with two learning rates there are two cells. */
	assert_int_equal(f.plan.count, 4);
	assert_int_equal(f.plan.cells[0].cell.batch, 8);
	assert_int_equal(f.plan.cells[0].steps, 100);
	assert_int_equal(f.plan.cells[0].warm_up_steps, -1);
	const struct plan_cell *mlp = &f.plan.cells[2];
	assert_string_equal(mlp->cell.network, "mlp");
	assert_int_equal(mlp->cell.batch, 16);
	assert_int_equal(mlp->recipe.batch, 16);
	assert_int_equal(mlp->steps, 7);
	assert_int_equal(mlp->warm_up_steps, 0);
	assert_has(mlp->key, "batch=16");
	assert_lacks(mlp->key, "learning_rate");
	mlp = &f.plan.cells[3];
	assert_has(mlp->key, "dropout=on learning_rate=0.5");
	assert_true(mlp->recipe.learning_rate == 0.5);
	assert_int_equal(mlp->steps, 9);
}

PLAN_TEST(the_command_line_has_the_last_word)
{
	suite("frameworks: fake\n"
	      "networks: mlp\n"
	      "batches: 8\n"
	      "steps: 100\n"
	      "override:\n"
	      "  - {networks: mlp, batch: 16, steps: 7, warm-up-steps: 1, learning-rate: 0.5}\n");
	set("batches", "32");
	spec_fix_steps(&f.spec, 9);
	spec_fix_warm_up(&f.spec, 3);
	expand_ok();
	assert_int_equal(f.plan.count, 1);
	assert_int_equal(f.plan.cells[0].cell.batch, 32);
	assert_int_equal(f.plan.cells[0].steps, 9);
	assert_int_equal(f.plan.cells[0].warm_up_steps, 3);
	assert_true(f.plan.cells[0].recipe.learning_rate == 0.5);
}

TEST(samples_stand_in_and_say_so)
{
	begin();
	suite("frameworks: fake\nnetworks: [lenet, mlp]\ndatasets: mnist\n");
	expand_ok();
	assert_int_equal(f.plan.count, 2);
	assert_string_equal(f.plan.cells[0].cell.dataset, "mnist-3000");
	assert_int_equal(f.plan.note_count, 1);
	assert_has(f.plan.notes[0], "mnist is not installed: using mnist-3000");
	end();

	begin();
	set("frameworks", "fake");
	expand_ok();
	assert_string_equal(f.plan.cells[0].cell.dataset, "mnist-3000");
	assert_int_equal(f.plan.note_count, 1);
	end();
}

/* The default data set of a network becomes synthetic if it is missing; a data set given by name is
 * reported as missing. */
TEST(data_that_is_not_here_is_synthetic_and_says_so)
{
	static const char *const asked[] = {NULL, "mnist"};

	setenv("PRONY_SHARE", folder, 1);
	for (size_t i = 0; i < 2; i++) {

		begin();
		set("frameworks", "fake");
		set("networks", "lenet,mlp");
		if (asked[i])
			set("datasets", asked[i]);
		expand_ok();
		for (size_t c = 0; c < f.plan.count; c++) {
			assert_string_equal(f.plan.cells[c].cell.dataset,
					    asked[i] ? "mnist" : "synthetic");
			assert_int_equal(f.plan.cells[c].status,
					 asked[i] ? CELL_MISSING : CELL_PENDING);
		}
		assert_int_equal(f.plan.note_count, asked[i] ? 0 : 1);
		if (!asked[i])
			assert_has(f.plan.notes[0], "mnist is not installed");
		end();
	}
	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
}

PLAN_TEST(all_data_that_is_not_here_is_said)
{
	set("frameworks", "fake");
	set("networks", "alexnet,resnet50,cnn");
	expand_ok();
	for (size_t i = 0; i < f.plan.count; i++)
		assert_string_equal(f.plan.cells[i].cell.dataset, "synthetic");
	assert_int_equal(f.plan.note_count, 2);
	assert_has(f.plan.notes[0], "imagenet is not installed");
	assert_has(f.plan.notes[1], "cifar10 is not installed");
}

PLAN_TEST(the_dry_run_has_every_field)
{
	set("frameworks", "native,onnxruntime");
	expand_ok();
	json_t *json = plan_to_json(&f.plan), *cell = json_array_get(json, 1);
	assert_int_equal(json_array_size(json), 2);
	assert_string_equal(json_string_value(json_object_get(cell, "status")), "unsupported");
	assert_true(json_is_string(json_object_get(cell, "reason")));
	assert_true(json_is_null(json_object_get(cell, "command")));
	cell = json_array_get(json, 0);
	assert_string_equal(json_string_value(json_object_get(cell, "key")), f.plan.cells[0].key);
	assert_string_equal(json_string_value(json_object_get(cell, "hash")), f.plan.cells[0].hash);
	assert_string_equal(json_string_value(json_object_get(cell, "origin")), "named");
	assert_int_equal(json_integer_value(json_object_get(cell, "threads")), 2);
	assert_true(json_array_size(json_object_get(cell, "command")) >= 4);
	assert_true(json_is_null(json_object_get(cell, "steps")));
	assert_string_equal(json_string_value(json_object_get(cell, "optimiser")), "momentum");
	json_decref(json);
}

int main(void)
{
	return unit_tests_run(make_machine, remove_machine);
}
