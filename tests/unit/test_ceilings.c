/* Tests the machine's ceilings: counting loops, the values kept, and a cell's share. */
#include "ceilings/ceilings.h"
#include "ceilings/fma.h"
#include "diagnose/measured.h"
#include "store/machine_figures.h"
#include "tests/unit/machine_fixture.h"
#include "unit_test.h"

/* A loop that does less work than it claims is detected: its time would give a peak above the
 * machine's. */
static void run_less(float one, float *lanes)
{
	struct fma_kernel kernel;
	fma_kernel_find(FMA_FP32, &kernel);
	kernel.run(one, lanes);
	lanes[3] -= 1;
}

TEST(loops_do_what_they_count)
{
	struct fma_kernel kernel;

	assert_true(fma_kernel_find(FMA_FP32, &kernel));
	fma_pieces(&kernel, 0, 1);
	assert_false(kernel.wrong);
	assert_true(kernel.flops > 1e8 && strlen(kernel.name) > 2);
	kernel.run = run_less;
	fma_pieces(&kernel, 0, 1);
	assert_true(kernel.wrong);
	if (!fma_kernel_find(FMA_BF16, &kernel)) {
		print_message("# this processor has no bf16\n");
		return;
	}
	fma_pieces(&kernel, 0, 1);
	assert_false(kernel.wrong);
}

TEST(all_are_measured_or_say_why)
{
	static const int cpus[] = {0, 0}; /* two threads on one processor: slow but correct */
	const struct ceilings_settings settings = {.no_library = "no oneDNN here",
						   .cpus = cpus,
						   .cpu_count = 2,
						   .each_ns = 1,
						   .array_bytes = 1 << 20};
	struct ceilings found;
	struct error err = ERROR_INIT;

	check(ceilings_measure(&settings, &found, &err), &err);
	assert_true(found.fma_fp32.one > 1e8 && found.fma_fp32.all > 1e8);
	assert_true(found.bandwidth.one > 1e7 && found.bandwidth.all > 1e7);
	assert_true(isnan(found.matrix_fp32.one) && isnan(found.matrix_bf16.all));
	assert_true(isnan(found.matrix_fp16.one));
	assert_true(*found.matrix_fp32.absent && *found.matrix_fp16.absent);
	assert_true(isnan(found.fma_bf16.one) == (*found.fma_bf16.absent != '\0'));
	json_auto_t *json = ceilings_to_json(&found, 2);
	assert_true(json_is_null(json_object_get(json_object_get(json, "matrix_fp32"), "one")));
	assert_true(json_real_or(json_object_get(json, "bandwidth"), "all", NAN) ==
		    found.bandwidth.all);
	assert_int_equal(json_int_or(json, "cores", 0), 2);
}

static json_t *record_with(const char *measured)
{
	struct error err = ERROR_INIT;
	json_t *record = NULL;
	char *text =
		test_text("{\"must_match\": {\"cores\": 4}, \"informational\": {%s}}", measured);

	check(json_parse(text, strlen(text), "test", &record, &err), &err);
	return record;
}

static void is(double got, double expected)
{
	if (isnan(expected) ? !isnan(got) : got != expected)
		fail_msg("expected %.9g, got %.9g", expected, got);
}

TEST(shares_are_of_as_many_cores)
{
	json_auto_t *record = record_with(
		"\"measured\": {\"noise\": {\"floor\": 0.02}, \"ceilings\": {\"cores\": 4, "
		"\"fma_fp32\": {\"one\": 100, \"all\": 250}, "
		"\"matrix_fp32\": {\"one\": 90, \"all\": 300}, "
		"\"fma_bf16\": {\"one\": null, \"all\": null}, "
		"\"matrix_fp16\": {\"one\": 350, \"all\": 800}, "
		"\"matrix_bf16\": {\"one\": 400, \"all\": 900}, "
		"\"bandwidth\": {\"one\": 10, \"all\": 15}, "
		"\"gpu_bandwidth\": {\"one\": 40, \"all\": 40}}}");

	is(machine_noise_floor(record), 0.02);
	is(machine_noise(record), 0.02);
	is(machine_peak_flops(record, "fp32", 1), 100);
	is(machine_peak_flops(record, "fp32", 2), 200);
	is(machine_peak_flops(record, "fp32", 3), 270);
	is(machine_peak_flops(record, "fp32", 4), 300);
	is(machine_peak_flops(record, "fp32", 64), 300);
	is(machine_peak_flops(record, "tf32", 1), 100);
	is(machine_peak_flops(record, "bf16", 1), 400);
	is(machine_peak_flops(record, "fp16", 1), 350);
	is(machine_peak_flops(record, "fp64", 1), NAN);
	is(machine_peak_flops(record, "fp32", 0), NAN);
	is(machine_bandwidth(record, 3), 15);
	is(machine_bandwidth(record, 0), 40);
}

TEST(what_is_not_known_is_no_number)
{
	static const char *const rows[] = {
		"\"x\": 1",
		"\"measured\": 5",
		"\"measured\": {\"ceilings\": [], \"noise\": []}",
		"\"measured\": {\"ceilings\": {\"cores\": 4, \"fma_fp32\": {\"one\": 0, "
		"\"all\": 9}}, \"noise\": {\"floor\": 0}}",
		"\"measured\": {\"ceilings\": {\"cores\": 4, \"fma_fp32\": {\"one\": \"7\", "
		"\"all\": 9}}, \"noise\": {\"floor\": -1}}",
	};

	is(machine_noise_floor(NULL), NAN);
	is(machine_peak_flops(NULL, "fp32", 1), NAN);
	for (size_t i = 0; i < COUNT(rows); i++) {
		json_auto_t *record = record_with(rows[i]);
		is(machine_noise_floor(record), NAN);
		is(machine_peak_flops(record, "fp32", 1), NAN);
	}
}

/* Values are kept by machine, part by part; another machine has its own. */
TEST_WITH(kept_by_machine, machine_setup, machine_teardown)
{
	struct error err = ERROR_INIT;
	json_t *record = record_with(""), *other = record_with("");
	json_auto_t *noise = json_pack("{s:f, s:f}", "floor", 0.03, "apart", 0.02),
		    *ceilings = json_pack("{s:i}", "cores", 4);

	setenv("XDG_DATA_HOME", *state, 1);
	json_object_set_new(json_object_get(other, "must_match"), "cores", json_integer(5));
	check(measured_keep(record, "noise", noise, &err), &err);
	check(measured_keep(record, "ceilings", ceilings, &err), &err);
	measured_add(record);
	measured_add(other);
	is(machine_noise_floor(record), 0.03);
	is(machine_noise(record), 0.02);
	assert_int_equal(json_int_or(measured_part(record, "ceilings"), "cores", 0), 4);
	assert_true(*json_string_or(measured_part(record, "noise"), "measured_at", ""));
	assert_null(measured_part(other, "noise"));
	assert_int_equal(json_object_size(machine_noise_surroundings(record)), 0);
	json_decref(other);
	json_decref(record);

	/* A file written by another program counts as absent and is rewritten. */
	record = record_with("");
	char *folder = test_text("%s/prony/machines", (char *)*state);
	check(directory_remove(folder, &err), &err);
	check(measured_keep(record, "noise", noise, &err), &err);
	char *pattern = test_text("%s/*.json", folder);
	glob_t found;
	assert_int_equal(memory_glob(pattern, 0, &found), 1);
	check(file_write_atomic(found.gl_pathv[0], "[1", 2, &err), &err);
	measured_add(record);
	is(machine_noise_floor(record), NAN);
	check(measured_keep(record, "noise", noise, &err), &err);
	measured_add(record);
	is(machine_noise_floor(record), 0.03);
	is(machine_noise(record), 0.02);
	globfree(&found);
	json_decref(record);
}

/* A noise floor keeps the surroundings in which it was measured; those of later records are
 * separate. */
TEST_WITH(surroundings_stay_with_it, machine_setup, machine_teardown)
{
	struct error err = ERROR_INIT;
	json_t *record = record_with(""), *noise = json_pack("{s:f}", "floor", 0.03);
	json_t *set =
		json_pack("{s:s, s:s, s:n}", "kernel", "6.1", "distribution", "A 1", "governor");
	const json_t *then;

	setenv("XDG_DATA_HOME", *state, 1);
	assert_null(machine_noise_surroundings(NULL));
	assert_null(machine_noise_surroundings(record));
	json_object_set_new(record, "should_match", set);
	check(measured_keep(record, "noise", noise, &err), &err);
	json_object_set_new(set, "kernel", json_string("6.8"));
	measured_add(record);
	then = machine_noise_surroundings(record);
	json_auto_t *now = machine_surroundings(record);
	assert_string_equal(json_string_or(then, "kernel", ""), "6.1");
	assert_true(json_is_null(json_object_get(then, "governor")));
	assert_int_equal(json_object_size(then), 2);
	assert_string_equal(json_string_or(now, "kernel", ""), "6.8");
	json_decref(noise);
	json_decref(record);
}
