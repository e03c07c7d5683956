/* Energy counters, processor time and threads of a worker on recorded machines, and the figures
 * computed from them: right, or null with the reason. */
#include <pthread.h>
#include <stdatomic.h>

#include "sensors/sampling.h"
#include "tests/unit/sensor_fixture.h"
#include "unit_test.h"

#define FOLDER "/sys/class/powercap/"
#define RANGE_UJ 262143328850LL
#define SECOND_NS INT64_C(1000000000)

static void zone(const char *root, const char *zone, const char *name, const char *energy)
{
	char path[128], range[32];

	snprintf(path, sizeof path, FOLDER "%s/name", zone);
	machine_file(root, path, name);
	snprintf(path, sizeof path, FOLDER "%s/max_energy_range_uj", zone);
	snprintf(range, sizeof range, "%lld", RANGE_UJ);
	machine_file(root, path, range);
	snprintf(path, sizeof path, FOLDER "%s/energy_uj", zone);
	machine_file(root, path, energy);
}

/*
 * Two packages, each with its cores and memory, visible through two registers; and the whole board.
 */
static void server(const char *root)
{
	sensor_machine(root);
	zone(root, "intel-rapl:0", "package-0", "1000000");
	zone(root, "intel-rapl:0:0", "core", "700000");
	zone(root, "intel-rapl:0:1", "uncore", "100000");
	zone(root, "intel-rapl:0:2", "dram", "50000");
	zone(root, "intel-rapl:1", "package-1", "2000000");
	zone(root, "intel-rapl:1:0", "dram", "60000");
	zone(root, "intel-rapl:2", "psys", "5000000");
	zone(root, "intel-rapl-mmio:0", "package-0", "1000001");
	zone(root, "intel-rapl-mmio:1", "package-1", "2000001");
}

static double value(const struct sensor_use *use, const char *channel)
{
	for (size_t i = 0; i < use->handle.channel_count; i++)
		if (!strcmp(use->handle.channels[i], channel))
			return use->values[i];
	fail_msg("no channel %s", channel);
	return NAN;
}

MACHINE_TEST(energy_is_counted_once)
{
	static const char *const channels[] = {"package-0", "dram-0", "package-1", "dram-1",
					       "psys"};
	SCOPED(sensor_use) use = {0};

	server(root);
	use_begin(&use, root, &sensor_rapl);
	assert_int_equal(use.handle.channel_count, COUNT(channels));
	for (size_t i = 0; i < COUNT(channels); i++)
		assert_string_equal(use.handle.channels[i], channels[i]);
	assert_real(value(&use, "package-0"), 1e9);
	assert_real(value(&use, "package-1"), 2e9);
	assert_real(value(&use, "dram-1"), 6e7);
	assert_real(value(&use, "psys"), 5e9);
}

MACHINE_TEST(counters_that_wrap_go_on)
{
	char text[32];
	SCOPED(sensor_use) use = {0};

	server(root);
	snprintf(text, sizeof text, "%lld", RANGE_UJ - 3000000);
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", text);
	use_begin(&use, root, &sensor_rapl);
	double before = value(&use, "package-0");
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", "4000000");
	use_again(&use);
	assert_real(value(&use, "package-0") - before, 7e9);
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", "5000000");
	use_again(&use);
	assert_real(value(&use, "package-0") - before, 8e9);
}

/* A fall from the middle of the range to 0 within a moment is not an overflow: no processor uses
 * 100 kJ in that time. A fall with an unknown range is no overflow, either. */
MACHINE_TEST(counters_that_are_set_back_fall)
{
	char text[32];
	SCOPED(sensor_use) use = {0};

	server(root);
	snprintf(text, sizeof text, "%lld", RANGE_UJ / 2);
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", text);
	machine_remove_file(root, FOLDER "intel-rapl:1/max_energy_range_uj");
	use_begin(&use, root, &sensor_rapl);
	double first = value(&use, "package-0"), second = value(&use, "package-1");
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", "10");
	machine_file(root, FOLDER "intel-rapl:1/energy_uj", "10");
	use_again(&use);
	assert_true(value(&use, "package-0") < first);
	assert_true(value(&use, "package-1") < second);
	first = value(&use, "package-0");
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", "1000010");
	use_again(&use);
	assert_real(value(&use, "package-0") - first, 1e9);
}

MACHINE_TEST(counters_come_and_go)
{
	SCOPED(sensor_use) use = {0};

	server(root);
	use_begin(&use, root, &sensor_rapl);
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", "garbage");
	machine_remove_file(root, FOLDER "intel-rapl:1/energy_uj");
	use_again(&use);
	assert_real(value(&use, "package-0"), NAN);
	/* Here a removed file can still be read while it is open; the kernel's cannot. */
	machine_file(root, FOLDER "intel-rapl:0/energy_uj", "3000000");
	use_again(&use);
	use_again(&use);
	assert_real(value(&use, "package-0"), 3e9);
}

/* One package without its counter: the sum would be too small. */
MACHINE_TEST(all_packages_or_none)
{
	SCOPED(sensor_use) use = {0};

	server(root);
	machine_remove_file(root, FOLDER "intel-rapl:0:2/energy_uj");
	use_begin(&use, root, &sensor_rapl);
	assert_true(use.here);
	assert_real(value(&use, "dram-0"), NAN);
	machine_remove_file(root, FOLDER "intel-rapl:1/energy_uj");
	assert_absent(root, &sensor_rapl, "intel-rapl:1/energy_uj cannot be read; as root");
	machine_remove_folder(root, "/sys/class/powercap");
	assert_absent(root, &sensor_rapl, "no energy counter in /sys/class/powercap");
	/* A zone that is not a package. */
	zone(root, "intel-rapl:0", "laptop", "1");
	assert_absent(root, &sensor_rapl, "no energy counter");
}

MACHINE_TEST(counters_for_root_only)
{
	char *path = test_text("%s%s", root, FOLDER "intel-rapl:0/energy_uj");

	server(root);
	assert_int_equal(chmod(path, 0), 0);
	/* Root can read it nevertheless. */
	if (access(path, R_OK) != 0)
		assert_absent(root, &sensor_rapl, "as root: chmod a+r");
	else
		print_message("# root reads every file: nothing is refused here\n");
}

SENSOR_TEST(processor_time_is_the_whole_trees)
{
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_worker_cpu);
	/* The guard's own tick does not count for the worker; the 6 ticks of children that it
	 * waited for do. */
	assert_real(use.values[0], (6 + 40 + 5 + 5) * TICK_NS);
	machine_remove_folder(root, "/proc/22");
	sensor_process(root, WORKER, GUARD, 40, 10, 1000);
	use.sensor->sample(use.watched, &use.handle, use.values);
	assert_real(use.values[0], (6 + 40 + 10) * TICK_NS);
	machine_file(root, "/proc/21/stat", "garbage");
	use_again(&use);
	assert_real(use.values[0], NAN);
	machine_remove_folder(root, "/proc/20");
	assert_absent(root, &sensor_worker_cpu, "/proc/PID/stat");
}

SENSOR_TEST(page_faults_are_the_whole_trees)
{
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_page_faults);
	/* The guard's own 51 do not count; the 8 of the children that it waited for do. */
	assert_real(use.values[0], 1e9 * ((6 + 2) + (1000 + 1 + 5 + 2) + (200 + 1 + 0 + 2)));
	machine_file(root, "/proc/21/stat", "garbage");
	use_again(&use);
	assert_real(use.values[0], NAN);
	machine_remove_folder(root, "/proc/20");
	assert_absent(root, &sensor_page_faults, "/proc/PID/stat");
}

static void thread(const char *root, int pid, int number, char run_state, int processor)
{
	char path[96], text[256];
	size_t used = (size_t)snprintf(text, sizeof text, "%d (a) b) %c", number, run_state);

	for (int i = 0; i < 35; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, " 0");
	snprintf(text + used, sizeof text - used, " %d 0 0", processor);
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, number);
	machine_file(root, path, text);
}

SENSOR_TEST(threads_are_counted_where_they_run)
{
	SCOPED(sensor_use) use = {0};

	thread(root, GUARD, 20, 'S', 7);
	thread(root, WORKER, 21, 'R', 0);
	thread(root, WORKER, 31, 'R', 3);
	thread(root, WORKER, 32, 'S', 5);
	thread(root, CHILD, 22, 'R', 3);
	use_begin(&use, root, &sensor_threads);
	assert_real(value(&use, "alive"), 4);
	assert_real(value(&use, "processors"), 2);
	/* Not a processor number. */
	thread(root, WORKER, 31, 'R', 99999);
	machine_file(root, "/proc/22/task/22/stat", "22 (a) R 1 2");
	use_again(&use);
	assert_real(value(&use, "alive"), 4);
	assert_real(value(&use, "processors"), 1);
	/* All threads wait: that does not mean that they run on no processor. */
	thread(root, WORKER, 21, 'S', 0);
	use_again(&use);
	assert_real(value(&use, "processors"), NAN);
	machine_remove_folder(root, "/proc/21");
	machine_remove_folder(root, "/proc/22");
	use_again(&use);
	assert_real(value(&use, "alive"), NAN);
	machine_remove_folder(root, "/proc/20/task/20");
	assert_absent(root, &sensor_threads, "/proc/PID/task");
}

static const char *const two_packages[] = {"package-0", "package-1", "dram-0"};

static struct process_record record_stepwise(const double *rows, size_t count, int64_t update_ns,
					     int64_t begin_ns, int64_t window_ns)
{
	struct process_record record;

	process_record_init(&record);
	record.energy_update_ns = update_ns;
	series_add(&record, "rapl", SERIES_COUNTER, two_packages, 3, rows, count);
	record.window_begin_ns = begin_ns;
	record.window_ns = window_ns;
	sampling_figures(&record);
	return record;
}

static struct process_record record_of(const double *rows, size_t count, int64_t begin_ns,
				       int64_t window_ns)
{
	return record_stepwise(rows, count, RECORD_NONE, begin_ns, window_ns);
}

static void says(const struct process_record *record, const char *what)
{
	if (!strstr(record->null_reasons, what))
		fail_msg("expected '%s' in '%s'", what, record->null_reasons);
}

/* 30 W and 20 W, then 60 W and 40 W; memory 3 W. In nJ: the number per ns equals the watts. */
#define STEADY                                                                                     \
	{                                                                                          \
		0, 0, 5e9, 1e9, 1e9, 30e9, 25e9, 4e9, 2e9, 90e9, 65e9, 7e9                         \
	}

TEST(energy_between_the_marks)
{
	static const double rows[] = STEADY;
	SCOPED(process_record) record = record_of(rows, 3, SECOND_NS / 2, SECOND_NS);

	assert_real(record.energy_joules, 25 + 50);
	assert_real(record.power_mean_window, 75);
	assert_real(record.power_mean_run, (90 + 60) / 2.0);
	assert_real(record.energy_dram_joules, 3);
	assert_real(record.energy_psys_joules, NAN);
	assert_string_equal(record.energy_grade, "B");
	says(&record, "energy_psys_joules: this machine has no such energy counter");
}

TEST(energy_that_is_not_known)
{
	static const double steady[] = STEADY;
	/* The second package's counter is reset, missing at the end, or constant. */
	static const double back[] = {0, 0, 5e9, 1e9, 1e9, 30e9, 4e9, 4e9, 2e9, 90e9, 65e9, 7e9};
	static const double gone[] = {0, 0, 5e9, 1e9, 1e9, 30e9, 25e9, 4e9, 2e9, 90e9, NAN, 7e9};
	static const double still[] = {0, 0, 0, 1e9, 1e9, 30e9, 0, 4e9, 2e9, 90e9, 0, 7e9};
	/* Missing in between and back: a counter continues between readings. */
	static const double between[] = {0, 0, 5e9, 1e9, 1e9, 30e9, NAN, 4e9, 2e9, 90e9, 65e9, 7e9};
	const struct {
		const double *rows;
		int64_t begin_ns, window_ns;
		double joules;
		const char *why;
	} cases[] = {
		{back, SECOND_NS / 2, SECOND_NS, NAN, "was reset"},
		{gone, SECOND_NS / 2, SECOND_NS, NAN, "is missing at an end"},
		{still, SECOND_NS / 2, SECOND_NS, NAN, "did not change"},
		{steady, -SECOND_NS, 2 * SECOND_NS, NAN, "is missing at an end"},
		{steady, SECOND_NS, SECOND_NS * 2, NAN, "is missing at an end"},
		{steady, SECOND_NS, SECOND_NS / 20, NAN, "at least 100 ms"},
		{between, SECOND_NS / 2, SECOND_NS, 45 + 30, ""},
		/* Nothing is lost before the reset of the counter. */
		{back, 3 * SECOND_NS / 2, SECOND_NS / 4, 15 + 15.25, ""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		SCOPED(process_record)
		record = record_of(cases[i].rows, 3, cases[i].begin_ns, cases[i].window_ns);
		assert_real(record.energy_joules, cases[i].joules);
		assert_true(isnan(cases[i].joules) == isnan(record.power_mean_window));
		assert_true(isnan(cases[i].joules) == !*record.energy_grade);
		says(&record, cases[i].why);
	}
}

/* A counter with observed steps of 10 ms needs a window of one second. A counter with steps shorter
 * than a millisecond, or without observed steps, needs 100 ms. */
TEST(energy_of_a_slow_counter)
{
	static const double rows[] = STEADY;
	const int64_t often[] = {RECORD_NONE, 300000};
	struct process_record record = record_stepwise(rows, 3, 10000000, SECOND_NS / 2, SECOND_NS);

	assert_true(record.energy_joules > 0);
	process_record_release(&record);
	record = record_stepwise(rows, 3, 10000000, SECOND_NS / 2, SECOND_NS / 2);
	assert_real(record.energy_joules, NAN);
	says(&record, "energy_psys_joules: an energy counter needs a window of at least 1000 ms");
	process_record_release(&record);
	for (size_t i = 0; i < COUNT(often); i++) {
		record = record_stepwise(rows, 3, often[i], SECOND_NS / 2, SECOND_NS / 10);
		assert_true(record.energy_joules > 0);
		process_record_release(&record);
		record = record_stepwise(rows, 3, often[i], SECOND_NS / 2, SECOND_NS / 11);
		assert_real(record.energy_joules, NAN);
		process_record_release(&record);
	}
}

enum { MARKS = 6 };

struct meter {
	const char *root;
	atomic_bool stop;
};

/* A counter of 40 W, in steps of 5 ms. */
static void *count_energy(void *context)
{
	struct meter *meter = context;
	char *path = test_text("%s" FOLDER "intel-rapl:0/energy_uj", meter->root);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	for (int64_t i = 0; !atomic_load(&meter->stop); i++) {
		char text[32];
		int length =
			snprintf(text, sizeof text, "%lld\n", (long long)(1000000 + i * 40 * 5000));
		assert_int_equal(pwrite(fd, text, (size_t)length, 0), length);
		clock_sleep_until_ns(clock_monotonic_ns() + 5000000);
	}
	close(fd);
	return NULL;
}

/* At the marks, the series has the instants at which the counter changed, and none at which it did
 * not. */
MACHINE_TEST(steps_are_waited_for_at_marks)
{
	struct meter meter = {.root = root};
	struct sampling *sampling = NULL;
	SCOPED(process_record) record;
	struct error err = ERROR_INIT;
	pthread_t thread;

	int64_t begin_ns = clock_monotonic_ns();
	server(root);
	machine_remove_folder(root, FOLDER "intel-rapl:1");
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	process_record_init(&record);
	assert_int_equal(pthread_create(&thread, NULL, count_energy, &meter), 0);
	check(sampling_start(root_fd, GUARD, NULL, 0, NULL, &sampling, &err), &err);
	/* One mark would suffice if no other program used the processor. */
	for (int i = 0; i < MARKS; i++) {
		sampling_mark(sampling, i % 2 == 0);
		clock_sleep_until_ns(clock_monotonic_ns() + 2 * sensor_rapl.steps_ns);
	}
	sampling_stop(sampling, &record);
	atomic_store(&meter.stop, true);
	pthread_join(thread, NULL);
	close(root_fd);
	sampling_figures(&record);
	const struct series *series = series_find(record.series, record.series_count, "rapl");
	/* Two samples at each mark if the meter got a processor, else one, and those of every 250
	 * ms. */
	size_t others = (size_t)((clock_monotonic_ns() - begin_ns) / sensor_rapl.period_ns) + 3;
	assert_in_range(series->count, (size_t)MARKS, 2 * MARKS + others);
	/* A delayed meter catches up, so shorter steps are possible then. */
	if (record.energy_update_ns != RECORD_NONE)
		assert_in_range(record.energy_update_ns, 1, sensor_rapl.steps_ns);
}

/* A figure that a clock cannot resolve is null, with the reason: not 0.00 cores, nor 10 of 2. */
TEST(windows_too_short_for_a_clock)
{
	static const char *const tree[] = {"tree"}, *const cpus[] = {"cpu0", "cpu1"};
	/* A process's own clock, and ticks. */
	static const double exact[] = {0, 1e9, 1e9, 2.5e9 + 1234}, ticks[] = {0, 1e9, 1e9, 2.5e9};
	static const double both[] = {0, 1e9, 1e9, 1e9, 1.5e9, 2e9};
	const struct {
		const double *rows;
		int64_t window_ns;
		double cores, machine;
		const char *why;
	} cases[] = {
		{exact, 300000000, 1.5 + 1.234e-6, 1.5, ""},
		{exact, 20000000, 1.5 + 1.234e-6, NAN,
		 "cpu_cores: the counter needs a window of at least 200 ms"},
		{exact, 9000000, NAN, NAN,
		 "window_cpu_cores: the counter needs a window of at least 10 ms"},
		{ticks, 20000000, NAN, NAN,
		 "window_cpu_cores, cpu_cores: the counter needs a window of at least 200 ms"},
		{ticks, 300000000, 1.5, 1.5, ""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		SCOPED(process_record) record;
		process_record_init(&record);
		series_add(&record, "worker_cpu", SERIES_COUNTER, tree, 1, cases[i].rows, 2);
		series_add(&record, "cpu", SERIES_COUNTER, cpus, 2, both, 2);
		record.window_begin_ns = SECOND_NS / 2;
		record.window_ns = cases[i].window_ns;
		sampling_figures(&record);
		assert_real(record.window_cpu_cores, cases[i].cores);
		assert_real(record.cpu_cores, cases[i].machine);
		says(&record, cases[i].why);
		assert_true(*cases[i].why || !*record.null_reasons);
	}
}

TEST(page_faults_of_a_step)
{
	static const char *const tree[] = {"tree"};
	/* 3,000 a second. */
	static const double rows[] = {0, 0, 1e9, 3000e9};
	SCOPED(process_record) record;

	process_record_init(&record);
	series_add(&record, "page_faults", SERIES_COUNTER, tree, 1, rows, 2);
	record.window_begin_ns = SECOND_NS / 4;
	record.window_ns = SECOND_NS / 2;
	record.steps = 50;
	sampling_figures(&record);
	assert_real(record.page_faults_step, 30);
}

/* Threads are sampled at instants; between two of them nothing is known. */
TEST(threads_that_nobody_saw)
{
	static const char *const channels[] = {"alive", "processors"};
	static const double rows[] = {0, 1, NAN, 1e9, 4, 2, 1.5e9, 4, 3, 2e9, 1, NAN};
	const struct {
		int64_t begin_ns, window_ns;
		double alive, processors;
		const char *why;
	} cases[] = {
		{SECOND_NS / 2, SECOND_NS, 4, 3, ""},
		{SECOND_NS / 10, SECOND_NS / 10, NAN, NAN,
		 "threads_alive, cores_used: sensor threads has no value"},
		{2 * SECOND_NS, 1, 1, NAN, "cores_used: sensor threads has no value"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		SCOPED(process_record) record;
		process_record_init(&record);
		series_add(&record, "threads", SERIES_GAUGE, channels, 2, rows, 4);
		record.window_begin_ns = cases[i].begin_ns;
		record.window_ns = cases[i].window_ns;
		sampling_figures(&record);
		assert_real(record.threads_alive, cases[i].alive);
		assert_real(record.cores_used, cases[i].processors);
		says(&record, cases[i].why);
	}
}
