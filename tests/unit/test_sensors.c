/* Each sensor on recorded machines, and the thread that samples them on one that changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "sensors/sampling.h"
#include "sensors/sensor.h"
#include "tests/unit/machine_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { SELF = 10, GUARD = 20, WORKER = 21, CHILD = 22 };
#define TICK_NS 1e7

/* A process with its parent, ticks of user time and of its reaped children, and resident pages. */
static void process(const char *root, int pid, int parent, int ticks, int reaped, int pages)
{
	char path[96], text[160];

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	snprintf(text, sizeof text, "%d (a) b (c) S %d 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 99",
		 pid, parent, ticks, reaped);
	machine_file(root, path, text);
	snprintf(path, sizeof path, "/proc/%d/statm", pid);
	snprintf(text, sizeof text, "999999 %d 5 1 0 9 0", pages);
	machine_file(root, path, text);
}

static void children(const char *root, int pid, const char *list)
{
	char path[96];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
	machine_file(root, path, list);
}

/* Two processors, the second one off when `cpu1` is NULL; user, system, idle, steal in ticks. */
static void times(const char *root, const char *all, const char *cpu0, const char *cpu1)
{
	char *text = memory_printf("cpu  %s\ncpu0 %s\n%s%s%sintr 1 2 3", all, cpu0,
				   cpu1 ? "cpu1 " : "", cpu1 ? cpu1 : "", cpu1 ? "\n" : "");
	machine_file(root, "/proc/stat", text);
	free(text);
}

static void frequency(const char *root, int cpu, const char *khz)
{
	char path[96];

	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
	machine_file(root, path, khz);
}

/* A worker with a child under its guard, on a machine of two processors. */
static void machine(const char *root)
{
	times(root, "100 0 50 700 50 0 0 30 9 9", "60 0 30 300 50 0 0 10", "40 0 20 400 0 0 0 20");
	machine_file(root, "/proc/loadavg", "1.50 0.10 0.05 1/300 4242");
	frequency(root, 0, "2000000");
	frequency(root, 1, "3000000");
	process(root, SELF, 1, 3, 0, 100);
	process(root, GUARD, SELF, 1, 6, 50);
	process(root, WORKER, GUARD, 40, 5, 1000);
	process(root, CHILD, WORKER, 5, 0, 200);
	children(root, GUARD, "21 ");
	children(root, WORKER, "22 ");
	children(root, CHILD, "");
}

static void remove_file(const char *root, const char *path)
{
	char *full = memory_printf("%s%s", root, path);
	assert_int_equal(unlink(full), 0);
	free(full);
}

static void remove_folder(const char *root, const char *path)
{
	char *full = memory_printf("%s%s", root, path);
	assert_int_equal(directory_remove(full, NULL), PRONY_OK);
	free(full);
}

/* A sensor in use on a recorded machine. */
struct use {
	struct watched *watched;
	const struct sensor *sensor;
	struct sensor_handle handle;
	double values[SENSOR_CHANNELS_MAX];
	char reason[SERIES_REASON_BYTES];
	bool here;
};

static void begin(struct use *use, const char *root, const struct sensor *sensor)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(root_fd >= 0);
	*use = (struct use){.sensor = sensor, .watched = memory_alloc(sizeof *use->watched)};
	watched_init(use->watched, root_fd, SELF, GUARD);
	watched_look(use->watched);
	use->here = sensor->probe(use->watched, use->reason);
	assert_true(use->here == !*use->reason);
	if (!use->here)
		return;
	use->handle.channels = memory_alloc(SENSOR_CHANNELS_MAX * sizeof *use->handle.channels);
	sensor->open(use->watched, &use->handle);
	sensor->sample(use->watched, &use->handle, use->values);
}

/* Looks again, at processes too. */
static void again(struct use *use)
{
	use->watched->tree_due_ns = 0;
	watched_look(use->watched);
	for (size_t i = 0; i < use->handle.channel_count; i++)
		use->values[i] = 4242;
	use->sensor->sample(use->watched, &use->handle, use->values);
}

static void end(struct use *use)
{
	if (use->here && use->sensor->close)
		use->sensor->close(&use->handle);
	free(use->handle.channels);
	close(use->watched->root_fd);
	free(use->watched);
}

static void is(double got, double expected)
{
	if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= 1e-9 * fabs(expected)))
		fail_msg("expected %.9g, got %.9g", expected, got);
}

static void absent(const char *root, const struct sensor *sensor, const char *why)
{
	struct use use;

	begin(&use, root, sensor);
	if (use.here || !strstr(use.reason, why))
		fail_msg("%s: expected '%s', got '%s'", sensor->name, why, use.reason);
	end(&use);
}

static void memory_is_the_tree_below_the_guard(void **state)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	struct use use;

	machine(*state);
	begin(&use, *state, &sensor_memory);
	assert_int_equal(use.handle.channel_count, 1);
	assert_string_equal(use.handle.channels[0], "rss");
	is(use.values[0], 1200 * page);
	/* A child ends between two looks; a new one comes with the next look. */
	remove_folder(*state, "/proc/22");
	use.sensor->sample(use.watched, &use.handle, use.values);
	is(use.values[0], 1000 * page);
	process(*state, 23, WORKER, 0, 0, 7);
	children(*state, WORKER, "23 ");
	children(*state, 23, "");
	again(&use);
	is(use.values[0], 1007 * page);
	machine_file(*state, "/proc/21/statm", "garbage");
	machine_file(*state, "/proc/23/statm", "1 -5");
	again(&use);
	is(use.values[0], NAN);
	/* A process that has ended and was not waited for has no memory: that is not 0 bytes used.
	 */
	machine_file(*state, "/proc/21/statm", "0 0 0 0 0 0 0");
	again(&use);
	is(use.values[0], NAN);
	end(&use);
	remove_folder(*state, "/proc/20");
	absent(*state, &sensor_memory, "statm cannot be read");
}

static void pss_divides_what_is_shared(void **state)
{
	static const char *const bad[] = {"", "x\nPss:", "x\nPss: -1 kB", "x\nRss: 1 kB"};
	struct use use;

	machine(*state);
	machine_file(*state, "/proc/20/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss: 1 kB");
	machine_file(*state, "/proc/21/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss:  700 kB");
	machine_file(*state, "/proc/22/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss:  30 kB");
	begin(&use, *state, &sensor_memory_pss);
	is(use.values[0], 730 * 1024);
	/* A process that is not ours to read. */
	remove_file(*state, "/proc/22/smaps_rollup");
	again(&use);
	is(use.values[0], 700 * 1024);
	for (size_t i = 0; i < COUNT(bad); i++) {
		machine_file(*state, "/proc/21/smaps_rollup", bad[i]);
		again(&use);
		is(use.values[0], NAN);
	}
	assert_true(sensor_memory_pss.outside_windows);
	end(&use);
	remove_file(*state, "/proc/20/smaps_rollup");
	absent(*state, &sensor_memory_pss, "smaps_rollup cannot be read");
}

/* A kernel without children files: every process says its parent. */
static void processes_are_found_without_children_files(void **state)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	struct use use;

	machine(*state);
	remove_folder(*state, "/proc/20/task");
	remove_folder(*state, "/proc/21/task");
	remove_folder(*state, "/proc/22/task");
	process(*state, 77, 1, 0, 0, 5000);
	machine_file(*state, "/proc/78/stat", "garbage");
	begin(&use, *state, &sensor_memory);
	is(use.values[0], 1200 * page);
	end(&use);
}

/* What the client holds a worker to: it and what is below it. */
static void limits_see_the_whole_tree(void **state)
{
	const int64_t page = sysconf(_SC_PAGESIZE);
	int root_fd = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t found[PROCESS_TREE_MAX];

	machine(*state);
	assert_int_equal(process_tree_rss_bytes(root_fd, WORKER), 1200 * page);
	assert_int_equal(process_tree_rss_bytes(root_fd, 4711), -1);
	/* A machine that lies: nobody is his own child without end. */
	children(*state, CHILD, "22 22 22");
	assert_int_equal(process_descendants(root_fd, WORKER, found, PROCESS_TREE_MAX),
			 PROCESS_TREE_MAX);
	assert_int_equal(process_oom_kills(root_fd), -1);
	machine_file(*state, "/proc/vmstat", "nr_free_pages 5\noom_kill 3\nx 1");
	assert_int_equal(process_oom_kills(root_fd), 3);
	close(root_fd);
	assert_true(process_tree_rss_bytes(PROCESS_HERE, getpid()) > 0);
	assert_true(process_oom_kills(PROCESS_HERE) >= -1);
}

static void cpu_counts_each_processor(void **state)
{
	struct use use;

	machine(*state);
	begin(&use, *state, &sensor_cpu);
	assert_int_equal(use.handle.channel_count, 2);
	assert_string_equal(use.handle.channels[1], "cpu1");
	is(use.values[0], 90 * TICK_NS);
	is(use.values[1], 60 * TICK_NS);
	/* A processor is switched off while it is watched. */
	times(*state, "110 0 50 700 50 0 0 30", "70 0 30 300 50 0 0 10", NULL);
	again(&use);
	is(use.values[0], 100 * TICK_NS);
	is(use.values[1], NAN);
	/* Garbage in one line leaves the other. */
	times(*state, "110 0 50 700 50 0 0 30", "nothing here", "50 0 20 400 0 0 0 20");
	again(&use);
	is(use.values[0], NAN);
	is(use.values[1], 70 * TICK_NS);
	/* It goes backwards: told as it is, the series knows what that means. */
	times(*state, "10 0 0 70 5 0 0 3", "1 0 0 2 3 0 0 0", "0 0 0 1 0 0 0 0");
	again(&use);
	is(use.values[0], 1 * TICK_NS);
	is(use.values[1], 0);
	remove_file(*state, "/proc/stat");
	again(&use);
	is(use.values[0], NAN);
	end(&use);
	absent(*state, &sensor_cpu, "/proc/stat");
}

static void processor_times_that_are_none(void **state)
{
	static const char *const texts[] = {
		"",
		"garbage",
		"cpu",
		"cpu 1 2",
		"cpu  -1 -2 -3 -4 -5",
		"cpu  99999999999999999999 0 0 0 0 0 0 0",
		"cpu  9223372036854775807 1 1 1 1 1 1 1\ncpu0 9223372036854775807 1 1 1 1 1 1 1",
		"cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0", /* a sandbox that counts
									 nothing */
		"intr 1 2 3\ncpu 1 2 3 4",
	};
	const struct sensor *const from_stat[] = {&sensor_cpu, &sensor_steal, &sensor_foreign};

	machine(*state);
	for (size_t i = 0; i < COUNT(texts); i++) {
		machine_file(*state, "/proc/stat", texts[i]);
		for (size_t k = 0; k < COUNT(from_stat); k++)
			absent(*state, from_stat[k], "/proc/stat says nothing");
	}
	machine_file(*state, "/proc/stat",
		     "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu9999999 1 2 3 4\ncpux 1");
	struct use use;
	begin(&use, *state, &sensor_cpu);
	assert_int_equal(use.handle.channel_count, 1);
	end(&use);
}

static void frequency_follows_processors_that_come_and_go(void **state)
{
	struct use use;

	machine(*state);
	begin(&use, *state, &sensor_frequency);
	assert_int_equal(use.handle.channel_count, 2);
	is(use.values[0], 2e9);
	is(use.values[1], 3e9);
	frequency(*state, 0, "1500000");
	frequency(*state, 1, "<unknown>");
	again(&use);
	is(use.values[0], 1.5e9);
	is(use.values[1], NAN);
	remove_folder(*state, "/sys/devices/system/cpu/cpu1/cpufreq");
	again(&use);
	again(&use);
	is(use.values[1], NAN);
	/* Back again: found with the sample after. */
	frequency(*state, 1, "800000");
	again(&use);
	again(&use);
	is(use.values[1], 8e8);
	end(&use);
	remove_folder(*state, "/sys");
	absent(*state, &sensor_frequency, "no frequency control");
}

static void load_is_the_first_average(void **state)
{
	static const char *const bad[] = {"", "x", "1.0", "1.0 2.0", "nan 1 1", "-1 1 1"};
	struct use use;

	machine(*state);
	begin(&use, *state, &sensor_load);
	is(use.values[0], 1.5);
	remove_file(*state, "/proc/loadavg");
	again(&use);
	is(use.values[0], NAN);
	end(&use);
	absent(*state, &sensor_load, "/proc/loadavg");
	for (size_t i = 0; i < COUNT(bad); i++) {
		machine_file(*state, "/proc/loadavg", bad[i]);
		absent(*state, &sensor_load, "/proc/loadavg");
	}
}

static void steal_is_per_processor(void **state)
{
	struct use use;

	machine(*state);
	begin(&use, *state, &sensor_steal);
	is(use.values[0], 15 * TICK_NS);
	end(&use);
	/* A kernel that knows no steal: proc(5) has fields added one after the other. */
	machine_file(*state, "/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4");
	begin(&use, *state, &sensor_steal);
	is(use.values[0], 0);
	end(&use);
}

static void foreign_is_what_is_left(void **state)
{
	struct use use;

	machine(*state);
	begin(&use, *state, &sensor_foreign);
	/* 150 busy ticks; prony 3, the guard 1 + 6, the worker 40 + 5, its child 5. */
	is(use.values[0], (150 - 60) * TICK_NS / 2);
	/* The child ends and is waited for: its time is the worker's now. */
	remove_folder(*state, "/proc/22");
	process(*state, WORKER, GUARD, 40, 10, 1000);
	again(&use);
	is(use.values[0], (150 - 60) * TICK_NS / 2);
	machine_file(*state, "/proc/stat", "garbage");
	again(&use);
	is(use.values[0], NAN);
	end(&use);
	machine(*state);
	machine_file(*state, "/proc/20/stat", "20 (x) S 1 2 3");
	absent(*state, &sensor_foreign, "/proc/PID/stat");
}

/* The thread on a machine that changes under it; also what a thread sanitizer looks at. */
static void a_thread_samples_them_all(void **state)
{
	struct sampling *sampling = NULL;
	struct process_record record;
	struct error err = ERROR_INIT;
	int root_fd = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	machine(*state);
	remove_folder(*state, "/sys");
	process(*state, getpid(), 1, 3, 0, 100);
	machine_file(*state, "/proc/20/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss: 1 kB");
	process_record_init(&record);
	assert_int_equal(sampling_start(root_fd, GUARD, &sampling, &err), PRONY_OK);
	clock_sleep_until_ns(clock_monotonic_ns() + 600000000);
	sampling_mark(sampling, true);
	record.window_begin_ns = clock_monotonic_ns();
	process(*state, WORKER, GUARD, 90, 5, 3000);
	times(*state, "180 0 70 700 50 0 0 50", "100 0 50 300 50 0 0 20", "80 0 20 400 0 0 0 30");
	clock_sleep_until_ns(clock_monotonic_ns() + 600000000);
	record.window_ns = clock_monotonic_ns() - record.window_begin_ns;
	sampling_mark(sampling, false);
	sampling_stop(sampling, &record);
	sampling_figures(&record);
	close(root_fd);

	assert_int_equal(record.series_count, sensor_count);
	for (size_t i = 0; i < sensor_count; i++) {
		const struct series *series = &record.series[i];
		assert_string_equal(series->sensor, sensors[i]->name);
		assert_true((series->count == 0) == (*series->absent != '\0'));
		/* What would disturb rests from mark to mark. */
		for (size_t k = 0; k < series->count && sensors[i]->outside_windows; k++)
			assert_false(series->times_ns[k] > record.window_begin_ns &&
				     series->times_ns[k] <
					     record.window_begin_ns + record.window_ns);
		for (size_t k = 1; k < series->count; k++)
			assert_true(series->times_ns[k] >= series->times_ns[k - 1]);
	}
	const struct series *memory = series_find(record.series, record.series_count, "memory");
	/* 4 Hz and two marks; on a busy machine it may come late, never more often. */
	int64_t passed = memory->times_ns[memory->count - 1] - memory->times_ns[0];
	assert_in_range(memory->count, 3, passed / 250000000 + 4);
	const double page = (double)sysconf(_SC_PAGESIZE);
	is(memory->values[0], 1200 * page);
	is(record.memory_max_window, 3200 * page);
	assert_true(record.memory_mean_run > 1200 * page && record.memory_mean_run < 3200 * page);
	assert_true(record.memory_mean_window > record.memory_mean_run);
	/* 100 ticks more in about 0.6 s; of them 50 the worker's; 20 stolen of two processors. */
	double seconds = (double)record.window_ns * 1e-9;
	assert_true(fabs(record.cpu_cores * seconds - 1) < 0.3);
	assert_true(fabs(record.foreign_share * seconds - 0.25) < 0.1);
	assert_true(fabs(record.steal_share * seconds - 0.1) < 0.05);
	is(record.load_average, 1.5);
	assert_true(sampling_disturbed(&record));
	record.foreign_share = 0.04;
	record.steal_share = 0.06;
	assert_true(sampling_disturbed(&record));
	record.steal_share = NAN;
	assert_false(sampling_disturbed(&record));
	is(record.frequency_mean_hz, NAN);
	is(record.frequency_min_hz, NAN);
	assert_true(record.sampling_cpu_ns >= 0 && record.sampling_cpu_ns < 1000000000);
	process_record_release(&record);
}

static void nothing_is_sampled_of_an_empty_machine(void **state)
{
	struct sampling *sampling = NULL;
	struct process_record record;
	struct error err = ERROR_INIT;
	int root_fd = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	process_record_init(&record);
	sampling_stop(NULL, &record);
	assert_int_equal(sampling_start(root_fd, GUARD, &sampling, &err), PRONY_OK);
	sampling_mark(sampling, true);
	sampling_stop(sampling, &record);
	sampling_figures(&record);
	close(root_fd);
	assert_int_equal(record.series_count, sensor_count);
	for (size_t i = 0; i < sensor_count; i++) {
		assert_int_equal(record.series[i].count, 0);
		assert_true(strlen(record.series[i].absent) > 10);
	}
	is(record.memory_mean_run, NAN);
	is(record.cpu_cores, NAN);
	process_record_release(&record);
}

/* What the table promises its readers: the store, the exports, the pages. */
static void the_table_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sensor_count; i++) {
		const struct sensor *sensor = sensors[i];
		assert_true(strlen(sensor->name) < SERIES_WORD_BYTES);
		assert_true(sensor->period_ns >= 250000000);
		assert_true((sensor->kind == SERIES_GAUGE) == !*sensor->rate_unit);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(sensor->name, sensors[k]->name);
	}
}

#define machine_test(function)                                                                     \
	cmocka_unit_test_setup_teardown(function, machine_setup, machine_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		machine_test(memory_is_the_tree_below_the_guard),
		machine_test(pss_divides_what_is_shared),
		machine_test(processes_are_found_without_children_files),
		machine_test(limits_see_the_whole_tree),
		machine_test(cpu_counts_each_processor),
		machine_test(processor_times_that_are_none),
		machine_test(frequency_follows_processors_that_come_and_go),
		machine_test(load_is_the_first_average),
		machine_test(steal_is_per_processor),
		machine_test(foreign_is_what_is_left),
		machine_test(a_thread_samples_them_all),
		machine_test(nothing_is_sampled_of_an_empty_machine),
		cmocka_unit_test(the_table_is_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
