/* Tests which libdnnl the native executor takes, which libraries it finds for a libdnnl from wheels
 * unpacked side by side, and how it runs with a library whose primitives are queued tasks. Uses
 * fake_dnnl.c, so oneDNN is not needed. */
#include "adapters/native/cpu/cpu.h"
#include "base/loader.h"
#include "unit_test.h"

static char *folder, *library; /* FOLDER/onednn-3.data/data/lib/libdnnl.so.3 */

/* Copies a file as `name` into the library folder of a wheel; returns its path. */
static char *put(const char *wheel, const char *name, const char *from)
{
	char *lib = test_text("%s/%s.data/data/lib", folder, wheel), *bytes, *to;
	size_t length;
	FILE *file;

	assert_int_equal(directory_make(lib, NULL), PRONY_OK);
	to = memory_printf("%s/%s", lib, name);
	file = fopen(to, "wb");
	assert_non_null(file);
	if (from) {
		assert_int_equal(file_read(from, (size_t)64 << 20, &bytes, &length, NULL),
				 PRONY_OK);
		assert_int_equal(fwrite(bytes, 1, length, file), length);
		free(bytes);
	}
	assert_int_equal(fclose(file), 0);
	return to;
}

static int make_folder(void **state)
{
	(void)state;
	assert_int_equal(directory_make_temporary("prony-native-", &folder, NULL), PRONY_OK);
	library = put("onednn-3", "libdnnl.so.3", getenv("FAKE_DNNL_LIBRARY"));
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	assert_int_equal(directory_remove(folder, NULL), PRONY_OK);
	free(library);
	free(folder);
	return 0;
}

static enum prony_status load(struct onednn *dnn, const char *how, struct error *err)
{
	*dnn = (struct onednn){.handle = NULL};
	*err = (struct error)ERROR_INIT;
	setenv("FAKE_DNNL", how, 1);
	return onednn_load(dnn, library, err);
}

/* Must run first: a library that is already loaded is found at any path. */
TEST(finds_what_lies_beside)
{
	struct onednn dnn;
	struct error err;
	char version[32];

	unsetenv("OCL_ICD_FILENAMES");
	assert_int_equal(load(&dnn, "sycl", &err), PRONY_MISSING);
	assert_has(err.text, library);
	assert_has(err.text, "libsycl.so.9: cannot open");
	assert_null(getenv("OCL_ICD_FILENAMES"));

	free(put("intel_sycl_rt-9", "libsycl.so.9", getenv("FAKE_SYCL_LIBRARY")));
	char *opencl = test_keep(put("intel_opencl_rt-1", "libintelocl.so", NULL));
	check(load(&dnn, "sycl", &err), &err);
	onednn_version_text(&dnn, version, sizeof(version));
	assert_string_equal(version, "3.13.2");
	assert_string_equal(onednn_runtime_text(&dnn), "sycl");
	assert_true(file_is_same(getenv("OCL_ICD_FILENAMES"), opencl));
}

TEST(refuses_others)
{
	struct onednn dnn;
	struct error err;

	expect_error(load(&dnn, "old", &err), PRONY_MISSING, &err,
		     "is oneDNN 2.13.2; version 3 is needed");
	expect_error(load(&dnn, "pool", &err), PRONY_MISSING, &err,
		     "needs a thread pool from its caller");
	check(load(&dnn, "sycl", &err), &err);
	setenv("FAKE_DNNL_NO_CPU", "1", 1);
	expect_error(onednn_start(&dnn, 1, &err), PRONY_MISSING, &err, "found no CPU among OpenCL");
	unsetenv("FAKE_DNNL_NO_CPU");
	onednn_stop(&dnn);
}

static int processors(void)
{
	cpu_set_t allowed;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	return CPU_COUNT(&allowed);
}

/*
 * TBB takes as many threads as there are processors, so the affinity is narrowed and then restored.
 */
TEST(tbb_gets_as_many_threads_as_asked)
{
	int before = processors();
	struct onednn dnn;
	struct error err;

	check(load(&dnn, "tbb", &err), &err);
	check(onednn_start(&dnn, 1, &err), &err);
	assert_int_equal(processors(), 1);
	assert_int_equal(onednn_threads(&dnn), 1);
	onednn_stop(&dnn);
	assert_int_equal(processors(), before);
	/* It keeps the library that it took first, and reports that one. */
	check(onednn_start(&dnn, before, &err), &err);
	assert_int_equal(onednn_threads(&dnn), 1);
	onednn_stop(&dnn);
}

static int seen; /* primitives in progress when the loop ran; -1: it did not run */
static int (*pending)(void);

static void look(struct program *program, const struct command *command)
{
	(void)program;
	(void)command;
	seen = pending();
}

static struct work *add(struct program *program, const char *name)
{
	struct command *command = program_command(program, name, "", 0);

	command->work = arena_alloc(&program->arena, sizeof(*command->work));
	*command->work = (struct work){.parts = 1};
	return command->work;
}

TEST(loops_wait_for_primitives)
{
	struct device device = {.kept_count = 0};
	struct error err;
	struct program program;
	const struct loader_symbol symbol = LOADER_SYMBOL(pending, "fake_dnnl_pending");
	union {
		int *any;
		dnnl_primitive_t primitive;
	} fake = {.any = &seen};

	check(load(&device.dnn, "sycl", &err), &err);
	assert_int_equal(loader_resolve(device.dnn.handle, library, &symbol, 1, NULL), PRONY_OK);
	check(onednn_start(&device.dnn, 1, &err), &err);
	program_init(&program, &backend_cpu, &device);
	add(&program, "a primitive")->primitive = fake.primitive;
	add(&program, "a loop")->kernel = look;
	add(&program, "b primitive")->primitive = fake.primitive;
	check(program_finish(&program, false, 0, 1, &err), &err);
	seen = -1;
	check(program_run(&program, 0, &err), &err);
	assert_int_equal(seen, 0);
	assert_int_equal(pending(), 0); /* the last one is finished, too, when the step returns */
	check(backend_cpu.run_one(&program, 0, &err), &err);
	assert_int_equal(pending(), 0);
	program_release(&program);
	onednn_stop(&device.dnn);
}

int main(void)
{
	return unit_tests_run(make_folder, remove_folder);
}
