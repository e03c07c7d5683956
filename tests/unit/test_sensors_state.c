/* Sensors of what slows a worker, on recorded machines, and the causes that mark a process as
 * disturbed. */
#include "samples/disturbance.h"
#include "sensors/sampling.h"
#include "sensors/sensor.h"
#include "tests/unit/sensor_fixture.h"
#include "unit_test.h"

#define SECOND_NS INT64_C(1000000000)
#define PSI(total) "some avg10=1.00 avg60=0.50 avg300=0.10 total=" total "\nfull avg10=0 total=9\n"

SENSOR_TEST(pressure_is_that_of_the_nearest_group)
{
	static const char *const bad[] = {"", "full avg10=0 total=3\n", "some avg10=0.00\n",
					  "some avg10=0 total=x\n", "some avg10=0 total=-4\n"};
	SCOPED(sensor_use) use = {0};

	assert_absent(root, &sensor_pressure, "does not report pressure");
	machine_file(root, "/proc/pressure/cpu", PSI("100"));
	machine_file(root, "/proc/pressure/memory", PSI("20"));
	use_begin(&use, root, &sensor_pressure);
	assert_int_equal(use.handle.channel_count, 3);
	assert_string_equal(use.handle.channels[1], "memory");
	assert_real(use.values[0], 100e3);
	assert_real(use.values[1], 20e3);
	assert_real(use.values[2], NAN);
	/* The process's own group counts; the group above counts only for files that the own group
	 * lacks. */
	machine_file(root, "/proc/self/cgroup", "1:cpu:/old\n0::/user.slice/me\n");
	machine_file(root, "/sys/fs/cgroup/user.slice/me/cpu.pressure", PSI("7"));
	machine_file(root, "/sys/fs/cgroup/user.slice/io.pressure", PSI("3"));
	use_begin(&use, root, &sensor_pressure);
	assert_real(use.values[0], 7e3);
	assert_real(use.values[1], 20e3);
	assert_real(use.values[2], 3e3);
	for (size_t i = 0; i < COUNT(bad); i++) {
		machine_file(root, "/sys/fs/cgroup/user.slice/me/cpu.pressure", bad[i]);
		use_again(&use);
		assert_real(use.values[0], NAN);
	}
	machine_file(root, "/sys/fs/cgroup/user.slice/me/cpu.pressure", PSI("9"));
	use_again(&use);
	assert_real(use.values[0], 9e3);
	/* The path is the host's; the mount is the container's own. */
	machine_file(root, "/proc/self/cgroup", "0::/docker/0815\n");
	machine_file(root, "/sys/fs/cgroup/cpu.pressure", PSI("11"));
	use_begin(&use, root, &sensor_pressure);
	assert_real(use.values[0], 11e3);
}

SENSOR_TEST(quotas_are_those_of_all_groups_above)
{
	static const int cpus[] = {0, 1};
	SCOPED(sensor_use) use = {0};

	assert_absent(root, &sensor_quota, "no control group has a quota");
	machine_file(root, "/proc/self/cgroup", "4:cpu,cpuacct:/a/b\n0::/c/d\n");
	machine_file(root, "/sys/fs/cgroup/c/d/cpu.max", "max 100000");
	machine_file(root, "/sys/fs/cgroup/c/d/cpu.stat", "usage_usec 5\nthrottled_usec 77\n");
	/*
	 * A group without a quota throttles nothing; a value of 0 would say that it was measured.
	 */
	assert_absent(root, &sensor_quota, "no control group has a quota");
	machine_file(root, "/sys/fs/cgroup/c/cpu.max", "150000 100000");
	assert_absent(root, &sensor_quota, "no control group has a quota");
	machine_file(root, "/sys/fs/cgroup/c/cpu.stat",
		     "usage_usec 5\nnr_throttled 3\nthrottled_usec 4000\n");
	use_begin_on(&use, root, &sensor_quota, cpus, 2);
	assert_int_equal(use.handle.channel_count, 1);
	assert_real(use.values[0], 4000e3 / 2);
	/* Version 1 beside it, in ns; the sum if both have one. */
	machine_file(root, "/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "50000");
	machine_file(root, "/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000");
	machine_file(root, "/sys/fs/cgroup/cpu/a/b/cpu.stat",
		     "nr_periods 9\nnr_throttled 2\nthrottled_time 6000000\n");
	use_begin_on(&use, root, &sensor_quota, cpus, 2);
	assert_real(use.values[0], (4000e3 + 6e6) / 2);
	machine_file(root, "/sys/fs/cgroup/c/cpu.stat", "garbage\nthrottled_usecs 1\n");
	use_again(&use);
	assert_real(use.values[0], NAN);
}

SENSOR_TEST(swap_counts_bytes)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	SCOPED(sensor_use) use = {0};

	assert_absent(root, &sensor_swap, "/proc/vmstat does not report");
	machine_file(root, "/proc/vmstat", "nr_free_pages 5\npswpin 3\npswpout 40\nx 1\n");
	machine_file(root, "/proc/meminfo", "MemTotal: 9 kB\nSwapTotal:       0 kB\n");
	assert_absent(root, &sensor_swap, "no swap space");
	machine_file(root, "/proc/meminfo", "MemTotal: 9 kB\nSwapTotal:    4096 kB\n");
	use_begin(&use, root, &sensor_swap);
	assert_string_equal(use.handle.channels[0], "in");
	assert_real(use.values[0], 3e9 * page);
	assert_real(use.values[1], 40e9 * page);
	machine_file(root, "/proc/vmstat", "pswpin -3\npswpoutside 40\n");
	use_again(&use);
	assert_real(use.values[0], NAN);
	assert_real(use.values[1], NAN);
	machine_remove_file(root, "/proc/vmstat");
	use_again(&use);
	assert_real(use.values[0], NAN);
}

static void set_switches(const char *root, int pid, int thread, const char *text)
{
	char path[96];

	snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, thread);
	machine_file(root, path, text);
}

SENSOR_TEST(switches_are_those_of_all_threads)
{
	SCOPED(sensor_use) use = {0};

	assert_absent(root, &sensor_switches, "status does not report");
	set_switches(root, GUARD, GUARD,
		     "Name:\tx\nvoluntary_ctxt_switches:\t900\n"
		     "nonvoluntary_ctxt_switches:\t900\n");
	set_switches(root, WORKER, WORKER,
		     "Name:\tx\nvoluntary_ctxt_switches:\t10\nnonvoluntary_ctxt_switches:\t1\n");
	set_switches(root, WORKER, 300,
		     "Name:\tx\nvoluntary_ctxt_switches:\t20\nnonvoluntary_ctxt_switches:\t2\n");
	set_switches(root, CHILD, CHILD,
		     "Name:\tx\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t4\n");
	use_begin(&use, root, &sensor_switches);
	/* The guard's does not count. */
	assert_real(use.values[0], 70e9);
	assert_real(use.values[1], 7e9);
	/* A kernel that reports only one of the two is not used. */
	set_switches(root, WORKER, 300, "Name:\tx\nvoluntary_ctxt_switches:\t20\n");
	use_again(&use);
	assert_real(use.values[0], 50e9);
	machine_remove_folder(root, "/proc/21/task");
	machine_remove_folder(root, "/proc/22");
	use_again(&use);
	assert_real(use.values[0], NAN);
}

#define CPU "/sys/devices/system/cpu/cpu"

SENSOR_TEST(heat_is_that_of_the_workers_processors)
{
	static const int cpus[] = {1};
	SCOPED(sensor_use) use = {0};

	assert_absent(root, &sensor_thermal, "no thermal_throttle in /sys");
	machine_file(root, CPU "0/thermal_throttle/core_throttle_total_time_ms", "100");
	machine_file(root, CPU "0/thermal_throttle/package_throttle_total_time_ms", "40");
	machine_file(root, CPU "1/thermal_throttle/core_throttle_total_time_ms", "300");
	machine_file(root, CPU "1/thermal_throttle/package_throttle_total_time_ms", "40");
	use_begin(&use, root, &sensor_thermal);
	assert_int_equal(use.handle.channel_count, 2);
	assert_string_equal(use.handle.channels[1], "package");
	assert_real(use.values[0], 200e6);
	assert_real(use.values[1], 40e6);
	machine_file(root, CPU "0/thermal_throttle/core_throttle_total_time_ms", "x");
	use_again(&use);
	assert_real(use.values[0], NAN);
	assert_real(use.values[1], 40e6);
	use_begin_on(&use, root, &sensor_thermal, cpus, 1);
	assert_real(use.values[0], 300e6);
}

SENSOR_TEST(temperature_is_that_of_packages)
{
	SCOPED(sensor_use) use = {0};

	machine_file(root, "/sys/class/hwmon/hwmon0/name", "nvme\n");
	machine_file(root, "/sys/class/hwmon/hwmon0/temp1_input", "30000\n");
	assert_absent(root, &sensor_temperature, "no temperature sensor");
	machine_file(root, "/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
	machine_file(root, "/sys/class/thermal/thermal_zone1/temp", "55000\n");
	use_begin(&use, root, &sensor_temperature);
	assert_int_equal(use.handle.channel_count, 1);
	assert_real(use.values[0], 55);
	/* A driver is preferred to a zone, and reports each package. */
	machine_file(root, "/sys/class/hwmon/hwmon2/name", "coretemp\n");
	machine_file(root, "/sys/class/hwmon/hwmon2/temp1_input", "71500\n");
	machine_file(root, "/sys/class/hwmon/hwmon3/name", "coretemp\n");
	machine_file(root, "/sys/class/hwmon/hwmon3/temp1_input", "68000\n");
	use_begin(&use, root, &sensor_temperature);
	assert_int_equal(use.handle.channel_count, 2);
	assert_string_equal(use.handle.channels[1], "package-1");
	assert_real(use.values[0], 71.5);
	assert_real(use.values[1], 68);
	machine_file(root, "/sys/class/hwmon/hwmon3/temp1_input", "error\n");
	use_again(&use);
	assert_real(use.values[1], NAN);
}

/*
 * Makes the record of a process with the series of one sensor; its window begins at half a second.
 */
static void record_with(struct process_record *record, const char *sensor, enum series_kind kind,
			const char *const *channels, size_t width, const double *rows, size_t count,
			int64_t window_ns)
{
	process_record_init(record);
	series_add(record, sensor, kind, channels, width, rows, count);
	record->window_begin_ns = SECOND_NS / 2;
	record->window_ns = window_ns;
	sampling_figures(record);
}

TEST(figures_of_the_window)
{
	static const char *const heat[] = {"core", "package"},
				 *const pressure[] = {"cpu", "memory", "io"},
				 *const swap[] = {"in", "out"};
	/* 2 and 5 % of the time; 0 and 1 %, and unknown; 1 and 2 MB/s. */
	static const double hot[] = {0, 0, 0, 1e9, 2e7, 5e7, 2e9, 4e7, 10e7};
	static const double waits[] = {0, 0, 5, NAN, 1e9, 0, 1e7 + 5, NAN, 2e9, 0, 2e7 + 5, NAN};
	static const double pages[] = {0, 0, 0, 1e9, 1e15, 2e15, 2e9, 2e15, 4e15};
	struct process_record record;

	record_with(&record, "thermal", SERIES_COUNTER, heat, 2, hot, 3, SECOND_NS);
	assert_real(record.thermal_share, 0.05);
	process_record_release(&record);
	record_with(&record, "thermal", SERIES_COUNTER, heat, 2, hot, 3, SECOND_NS / 10);
	assert_real(record.thermal_share, NAN);
	assert_has(record.null_reasons,
		   "thermal_share: the counter needs a window of at least 200 ms");
	process_record_release(&record);
	record_with(&record, "pressure", SERIES_COUNTER, pressure, 3, waits, 3, SECOND_NS);
	assert_real(record.pressure_cpu, 0);
	assert_real(record.pressure_memory, 0.01);
	assert_real(record.pressure_io, NAN);
	assert_has(record.null_reasons, "pressure_io: sensor pressure has no value");
	process_record_release(&record);
	record_with(&record, "swap", SERIES_COUNTER, swap, 2, pages, 3, SECOND_NS);
	assert_real(record.swap_rate, 3e6);
	assert_true(disturbance_seen(&record) != 0);
	process_record_release(&record);
}

/* The clock falls within the window. The clock while the worker waited does not count, nor that of
 * an idle processor. */
TEST(a_clock_that_falls)
{
	static const char *const cpus[] = {"cpu0", "cpu1"};
	static const double falls[] = {0,   1e9, 1e9,	1e9,   3e9, 3e9, 2e9, 3e9,
				       8e8, 3e9, 2.4e9, 2.4e9, 4e9, 1e9, 1e9};
	struct process_record record;

	record_with(&record, "frequency", SERIES_GAUGE, cpus, 2, falls, 5, 3 * SECOND_NS);
	assert_real(record.frequency_drop, 1 - 2.8 / 3.0);
	assert_true(disturbance_seen(&record) != 0);
	process_record_release(&record);
	record_with(&record, "frequency", SERIES_GAUGE, cpus, 2, falls, 5, 2 * SECOND_NS);
	assert_real(record.frequency_drop, NAN);
	assert_has(record.null_reasons, "frequency_drop: the window has too few");
	assert_int_equal(disturbance_seen(&record), 0);
	process_record_release(&record);
}

/* Each cause at its limit and above it, with its word; and their sum. */
TEST(each_cause_has_a_limit)
{
	struct process_record record;
	char words[64];

	process_record_init(&record);
	assert_int_equal(disturbance_seen(&record), 0);
	assert_real(disturbance_taken(&record), NAN);
	for (size_t i = 0; i < disturbance_cause_count; i++) {
		const struct disturbance_cause *cause = &disturbance_causes[i];
		double *figure = (double *)(void *)((char *)&record + cause->offset);
		process_record_init(&record);
		*figure = cause->limit;
		assert_int_equal(disturbance_seen(&record), 0);
		*figure = cause->limit * 1.01;
		assert_int_equal(disturbance_seen(&record), 1 << i);
		disturbance_words(disturbance_seen(&record), words, sizeof words);
		assert_string_equal(words, cause->word);
		bool taken = figure == &record.foreign_share || figure == &record.steal_share;
		assert_real(disturbance_taken(&record), taken ? *figure : NAN);
		assert_true(disturbance_by_others(1U << i) == cause->others);
		assert_true(*cause->text && *cause->unit && *cause->remedy);
	}
	process_record_init(&record);
	record.foreign_share = 0.04;
	record.foreign_elsewhere = 0.3;
	record.quota_share = 0.2;
	record.steal_share = 0.06;
	disturbance_words(disturbance_seen(&record), words, sizeof words);
	assert_string_equal(words, "busy+steal+quota");
	assert_real(disturbance_taken(&record), 0.1);
	disturbance_words(~0U, words, sizeof words);
	assert_string_equal(words, "busy+steal+quota+heat+clock+memory");
}
