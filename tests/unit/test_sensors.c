/* Each sensor on recorded machines, and the sampling thread on a machine that changes. */
#include "sensors/sampling.h"
#include "sensors/sensor.h"
#include "tests/unit/sensor_fixture.h"
#include "unit_test.h"

SENSOR_TEST(memory_is_the_tree_below_the_guard)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_memory);
	assert_int_equal(use.handle.channel_count, 1);
	assert_string_equal(use.handle.channels[0], "rss");
	assert_real(use.values[0], 1200 * page);
	/* A child ends between two readings; a new one is found at the next reading. */
	machine_remove_folder(root, "/proc/22");
	use.sensor->sample(use.watched, &use.handle, use.values);
	assert_real(use.values[0], 1000 * page);
	sensor_process(root, 23, WORKER, 0, 0, 7);
	sensor_children(root, WORKER, "23 ");
	sensor_children(root, 23, "");
	use_again(&use);
	assert_real(use.values[0], 1007 * page);
	machine_file(root, "/proc/21/statm", "garbage");
	machine_file(root, "/proc/23/statm", "1 -5");
	use_again(&use);
	assert_real(use.values[0], NAN);
	/*
	 * A process that has ended and was not waited for has no memory figure; it is not 0 bytes.
	 */
	machine_file(root, "/proc/21/statm", "0 0 0 0 0 0 0");
	use_again(&use);
	assert_real(use.values[0], NAN);
	machine_remove_folder(root, "/proc/20");
	assert_absent(root, &sensor_memory, "statm cannot be read");
}

SENSOR_TEST(pss_divides_what_is_shared)
{
	static const char *const bad[] = {"", "x\nPss:", "x\nPss: -1 kB", "x\nRss: 1 kB"};
	SCOPED(sensor_use) use = {0};

	machine_file(root, "/proc/20/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss: 1 kB");
	machine_file(root, "/proc/21/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss:  700 kB");
	machine_file(root, "/proc/22/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss:  30 kB");
	use_begin(&use, root, &sensor_memory_pss);
	assert_real(use.values[0], 730 * 1024);
	/* A process that may not be read. */
	machine_remove_file(root, "/proc/22/smaps_rollup");
	use_again(&use);
	assert_real(use.values[0], 700 * 1024);
	for (size_t i = 0; i < COUNT(bad); i++) {
		machine_file(root, "/proc/21/smaps_rollup", bad[i]);
		use_again(&use);
		assert_real(use.values[0], NAN);
	}
	assert_true(sensor_memory_pss.outside_windows);
	machine_remove_file(root, "/proc/20/smaps_rollup");
	assert_absent(root, &sensor_memory_pss, "smaps_rollup cannot be read");
}

/* On a kernel without children files, processes are found by the parent that each reports. */
SENSOR_TEST(processes_are_found_without_children_files)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	SCOPED(sensor_use) use = {0};

	machine_remove_folder(root, "/proc/20/task");
	machine_remove_folder(root, "/proc/21/task");
	machine_remove_folder(root, "/proc/22/task");
	sensor_process(root, 77, 1, 0, 0, 5000);
	machine_file(root, "/proc/78/stat", "garbage");
	use_begin(&use, root, &sensor_memory);
	assert_real(use.values[0], 1200 * page);
}

/* The client's limits apply to a worker and its descendants. */
MACHINE_TEST(limits_see_the_whole_tree)
{
	const int64_t page = sysconf(_SC_PAGESIZE);
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t found[PROCESS_TREE_MAX];

	sensor_machine(root);
	assert_int_equal(process_tree_rss_bytes(root_fd, WORKER), 1200 * page);
	assert_int_equal(process_tree_rss_bytes(root_fd, 4711), -1);
	/* A hostile machine: a process that is its own child does not cause an endless loop. */
	sensor_children(root, CHILD, "22 22 22");
	assert_int_equal(process_descendants(root_fd, WORKER, found, PROCESS_TREE_MAX),
			 PROCESS_TREE_MAX);
	assert_int_equal(process_oom_kills(root_fd), -1);
	machine_file(root, "/proc/vmstat", "nr_free_pages 5\noom_kill 3\nx 1");
	assert_int_equal(process_oom_kills(root_fd), 3);
	close(root_fd);
	assert_true(process_tree_rss_bytes(PROCESS_HERE, getpid()) > 0);
	assert_true(process_oom_kills(PROCESS_HERE) >= -1);
}

SENSOR_TEST(cpu_counts_each_processor)
{
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_cpu);
	assert_int_equal(use.handle.channel_count, 2);
	assert_string_equal(use.handle.channels[1], "cpu1");
	assert_real(use.values[0], 90 * TICK_NS);
	assert_real(use.values[1], 60 * TICK_NS);
	/* A processor is switched off while it is sampled. */
	sensor_times(root, "110 0 50 700 50 0 0 30", "70 0 30 300 50 0 0 10", NULL);
	use_again(&use);
	assert_real(use.values[0], 100 * TICK_NS);
	assert_real(use.values[1], NAN);
	/* Garbage in one line does not affect the other. */
	sensor_times(root, "110 0 50 700 50 0 0 30", "nothing here", "50 0 20 400 0 0 0 20");
	use_again(&use);
	assert_real(use.values[0], NAN);
	assert_real(use.values[1], 70 * TICK_NS);
	/* A counter that decreases is recorded unchanged; the series handles it. */
	sensor_times(root, "10 0 0 70 5 0 0 3", "1 0 0 2 3 0 0 0", "0 0 0 1 0 0 0 0");
	use_again(&use);
	assert_real(use.values[0], 1 * TICK_NS);
	assert_real(use.values[1], 0);
	machine_remove_file(root, "/proc/stat");
	use_again(&use);
	assert_real(use.values[0], NAN);
	assert_absent(root, &sensor_cpu, "/proc/stat");
}

SENSOR_TEST(processor_times_that_are_none)
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

	for (size_t i = 0; i < COUNT(texts); i++) {
		machine_file(root, "/proc/stat", texts[i]);
		for (size_t k = 0; k < COUNT(from_stat); k++)
			assert_absent(root, from_stat[k], "/proc/stat does not list");
	}
	machine_file(root, "/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu9999999 1 2 3 4\ncpux 1");
	SCOPED(sensor_use) use = {0};
	use_begin(&use, root, &sensor_cpu);
	assert_int_equal(use.handle.channel_count, 1);
}

SENSOR_TEST(frequency_follows_processors_that_come_and_go)
{
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_frequency);
	assert_int_equal(use.handle.channel_count, 2);
	assert_real(use.values[0], 2e9);
	assert_real(use.values[1], 3e9);
	sensor_frequency_file(root, 0, "1500000");
	sensor_frequency_file(root, 1, "<unknown>");
	use_again(&use);
	assert_real(use.values[0], 1.5e9);
	assert_real(use.values[1], NAN);
	machine_remove_folder(root, "/sys/devices/system/cpu/cpu1/cpufreq");
	use_again(&use);
	use_again(&use);
	assert_real(use.values[1], NAN);
	/* When it is back, it is found one sample later. */
	sensor_frequency_file(root, 1, "800000");
	use_again(&use);
	use_again(&use);
	assert_real(use.values[1], 8e8);
	/* Processors other than the worker's are not read, because reading may interrupt them. */
	use_begin_on(&use, root, &sensor_frequency, (const int[]){1}, 1);
	assert_int_equal(use.handle.channel_count, 1);
	assert_string_equal(use.handle.channels[0], "cpu1");
	assert_real(use.values[0], 8e8);
	machine_remove_folder(root, "/sys");
	assert_absent(root, &sensor_frequency, "no frequency control");
}

SENSOR_TEST(load_is_the_first_average)
{
	static const char *const bad[] = {"", "x", "1.0", "1.0 2.0", "nan 1 1", "-1 1 1"};
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_load);
	assert_real(use.values[0], 1.5);
	machine_remove_file(root, "/proc/loadavg");
	use_again(&use);
	assert_real(use.values[0], NAN);
	assert_absent(root, &sensor_load, "/proc/loadavg");
	for (size_t i = 0; i < COUNT(bad); i++) {
		machine_file(root, "/proc/loadavg", bad[i]);
		assert_absent(root, &sensor_load, "/proc/loadavg");
	}
}

SENSOR_TEST(steal_is_per_processor)
{
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_steal);
	assert_real(use.values[0], 15 * TICK_NS);
	/* A kernel without steal times: proc(5) got its fields one by one. */
	machine_file(root, "/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4");
	use_begin(&use, root, &sensor_steal);
	assert_real(use.values[0], 0);
}

SENSOR_TEST(foreign_is_what_is_left)
{
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, &sensor_foreign);
	/* 150 busy ticks; prony 3, the guard 1 + 6, the worker 40 + 5, its child 5. */
	assert_real(use.values[0], (150 - 60) * TICK_NS / 2);
	/* The child ends and is waited for: its time now counts as the worker's. */
	machine_remove_folder(root, "/proc/22");
	sensor_process(root, WORKER, GUARD, 40, 10, 1000);
	use_again(&use);
	assert_real(use.values[0], (150 - 60) * TICK_NS / 2);
	machine_file(root, "/proc/stat", "garbage");
	use_again(&use);
	assert_real(use.values[0], NAN);
	sensor_machine(root);
	machine_file(root, "/proc/20/stat", "20 (x) S 1 2 3");
	assert_absent(root, &sensor_foreign, "/proc/PID/stat");
}

/* Four processors; 0 and 2 are hardware threads of one core. */
static const char before[] = "cpu  400 0 0 4000 0 0 0 40\n"
			     "cpu0 100 0 0 1000 0 0 0 10\ncpu1 100 0 0 1000 0 0 0 10\n"
			     "cpu2 100 0 0 1000 0 0 0 10\ncpu3 100 0 0 1000 0 0 0 10\n";

/* Foreign work counts fully on the processors where the cell runs, and half on their hardware
 * siblings. */
MACHINE_TEST(cells_have_processors_of_their_own)
{
	/* Ticks of each processor, those of the worker, and its affinity. Expected: the share of a
	 * tick that others took from each of its processors, and from each of the other processors.
	 */
	static const struct {
		const char *stat;
		int worker, cpus[2], count;
		double cores, elsewhere, steal;
	} rows[] = {
		/* One loop beside a worker with one thread; 100 ticks passed. */
		{"cpu  600 0 0 4200 0 0 0 40\ncpu0 200 0 0 1000 0 0 0 10\n"
		 "cpu1 200 0 0 1000 0 0 0 10\ncpu2 100 0 0 1100 0 0 0 10\n"
		 "cpu3 100 0 0 1100 0 0 0 10\n",
		 100,
		 {0},
		 1,
		 0,
		 100. / 3,
		 0},
		/* The same loop on the worker's own processor: it gets half, and three processors
		 * are idle. */
		{"cpu  500 0 0 4300 0 0 0 40\ncpu0 200 0 0 1000 0 0 0 10\n"
		 "cpu1 100 0 0 1100 0 0 0 10\ncpu2 100 0 0 1100 0 0 0 10\n"
		 "cpu3 100 0 0 1100 0 0 0 10\n",
		 50,
		 {0},
		 1,
		 50,
		 0,
		 0},
		/* The loop on the other hardware thread of its core. */
		{"cpu  600 0 0 4200 0 0 0 40\ncpu0 200 0 0 1000 0 0 0 10\n"
		 "cpu1 100 0 0 1100 0 0 0 10\ncpu2 200 0 0 1000 0 0 0 10\n"
		 "cpu3 100 0 0 1100 0 0 0 10\n",
		 100,
		 {0},
		 1,
		 50,
		 100. / 3,
		 0},
		/* Two threads on 1 and 3, one of them halved. The host took time from 3, and from
		 * 2, where the worker is not. */
		{"cpu  600 0 0 4140 0 0 0 100\ncpu0 100 0 0 1100 0 0 0 10\n"
		 "cpu1 200 0 0 1000 0 0 0 10\ncpu2 100 0 0 1060 0 0 0 50\n"
		 "cpu3 200 0 0 980 0 0 0 30\n",
		 150,
		 {1, 3},
		 2,
		 25,
		 0,
		 10},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		SCOPED(sensor_use) foreign = {0}, steal = {0};
		sensor_machine(root);
		machine_file(root, "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			     i % 2 ? "0,2" : "0,2\n");
		machine_file(root, "/proc/stat", before);
		use_begin_on(&foreign, root, &sensor_foreign, rows[i].cpus, rows[i].count);
		use_begin_on(&steal, root, &sensor_steal, rows[i].cpus, rows[i].count);
		assert_int_equal(foreign.handle.channel_count, 2);
		double cores = foreign.values[0], elsewhere = foreign.values[1];
		double stolen = steal.values[0];
		machine_file(root, "/proc/stat", rows[i].stat);
		sensor_process(root, WORKER, GUARD, 40 + rows[i].worker, 5, 1000);
		use_again(&foreign);
		use_again(&steal);
		assert_real(foreign.values[0] - cores, rows[i].cores * TICK_NS);
		assert_real(foreign.values[1] - elsewhere, rows[i].elsewhere * TICK_NS);
		assert_real(steal.values[0] - stolen, rows[i].steal * TICK_NS);
		/* One of its processors is switched off: the figures are unknown. */
		machine_file(root, "/proc/stat", "cpu  600 0 0 4200 0 0 0 40\ncpu2 1 0 0 1");
		use_again(&foreign);
		use_again(&steal);
		assert_real(foreign.values[0], NAN);
		assert_real(steal.values[0], NAN);
	}
}

/* While prony loads the worker's batches it works on the worker's processors; none of that is
 * foreign. */
SENSOR_TEST(prony_may_work_there_too)
{
	static const int cpus[] = {0};
	SCOPED(sensor_use) foreign = {0};

	machine_file(root, "/proc/stat",
		     "cpu  200 0 0 2200 0 0 0 20\ncpu0 100 0 0 1100 0 0 0 10\n"
		     "cpu1 100 0 0 1100 0 0 0 10\n");
	use_begin_on(&foreign, root, &sensor_foreign, cpus, 1);
	foreign.watched->cores.prony_too = true;
	use_again(&foreign);
	double cores = foreign.values[0], elsewhere = foreign.values[1];
	machine_file(root, "/proc/stat",
		     "cpu  300 0 0 2200 0 0 0 20\ncpu0 200 0 0 1100 0 0 0 10\n"
		     "cpu1 100 0 0 1100 0 0 0 10\n");
	sensor_process(root, SELF, 1, 60, 0, 1000);
	use_again(&foreign);
	double with = foreign.values[0] - cores;
	foreign.watched->cores.prony_too = false;
	use_again(&foreign);
	/* Otherwise half of its time would count as the other processor's. */
	assert_true(foreign.values[0] - cores > with);
	assert_real(foreign.values[1] - elsewhere < 0 ? 1 : 0, 1);
}

MACHINE_TEST(what_says_of_siblings_may_be_garbage)
{
	static const struct {
		const char *list;
		int beside; /* the number of processors */
	} rows[] = {{"0-3", 3}, {"0", 0},   {"", 0},   {"x", 0},
		    {"0,", 0},	{"2-1", 0}, {"-5", 0}, {"0-99999999", CPUS_MAX - 1}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		SCOPED(sensor_use) use = {0};
		int beside = 0;
		sensor_machine(root);
		machine_file(root, "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			     rows[i].list);
		use_begin_on(&use, root, &sensor_steal, (const int[]){0, 0, -1, CPUS_MAX}, 4);
		for (int cpu = 0; cpu < CPUS_MAX; cpu++)
			beside += use.watched->cores.beside[cpu];
		if (beside != rows[i].beside || use.watched->cores.count != 1)
			fail_msg("row %zu: %d beside it", i, beside);
	}
}

/* Costs are counted at the start, at both marks and at the end, for each sensor present; together
 * they do not exceed the total. */
static void check_costs(const struct process_record *record)
{
	const struct series *costs = series_find(record->series, record->series_count, "sampling");
	size_t open = 0;
	double sum = 0;

	for (size_t i = 0; i < sensor_count; i++)
		open += record->series[i].count > 0;
	assert_int_equal(costs->count, 4);
	assert_int_equal(costs->channel_count, open + 1);
	assert_string_equal(costs->channels[0], "looking");
	assert_true(costs->times_ns[1] <= record->window_begin_ns);
	assert_true(costs->times_ns[2] >= record->window_begin_ns + record->window_ns);
	for (size_t c = 0; c < costs->channel_count; c++) {
		const double *first = &costs->values[c], *last = first + 3 * costs->channel_count;
		assert_real(*first, 0);
		assert_true(*last >= 0); /* some clocks of processor time are coarse */
		sum += *last;
	}
	assert_true(sum > 0);
	assert_true(sum <= (double)record->sampling_cpu_ns);
}

/* The sampling thread on a machine that changes during sampling; a thread sanitizer checks this
 * test, too. */
MACHINE_TEST(a_thread_samples_them_all)
{
	struct sampling *sampling = NULL;
	SCOPED(process_record) record;
	struct error err = ERROR_INIT;
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	sensor_machine(root);
	machine_remove_folder(root, "/sys");
	sensor_process(root, getpid(), 1, 3, 0, 100);
	machine_file(root, "/proc/20/smaps_rollup", "0-1 ---p\nRss: 9 kB\nPss: 1 kB");
	process_record_init(&record);
	check(sampling_start(root_fd, GUARD, NULL, 0, NULL, &sampling, &err), &err);
	clock_sleep_until_ns(clock_monotonic_ns() + 600000000);
	sampling_mark(sampling, true);
	record.window_begin_ns = clock_monotonic_ns();
	sensor_process(root, WORKER, GUARD, 90, 5, 3000);
	sensor_times(root, "180 0 70 700 50 0 0 50", "100 0 50 300 50 0 0 20",
		     "80 0 20 400 0 0 0 30");
	clock_sleep_until_ns(clock_monotonic_ns() + 600000000);
	record.window_ns = clock_monotonic_ns() - record.window_begin_ns;
	sampling_mark(sampling, false);
	sampling_stop(sampling, &record);
	sampling_figures(&record);
	close(root_fd);

	assert_int_equal(record.series_count, sensor_count + 1);
	for (size_t i = 0; i < sensor_count; i++) {
		const struct series *series = &record.series[i];
		assert_string_equal(series->sensor, sensors[i]->name);
		assert_true((series->count == 0) == (*series->absent != '\0'));
		/* Sensors that would disturb pause between the marks. */
		for (size_t k = 0; k < series->count && sensors[i]->outside_windows; k++)
			assert_false(series->times_ns[k] > record.window_begin_ns &&
				     series->times_ns[k] <
					     record.window_begin_ns + record.window_ns);
		for (size_t k = 1; k < series->count; k++)
			assert_true(series->times_ns[k] >= series->times_ns[k - 1]);
	}
	const struct series *memory = series_find(record.series, record.series_count, "memory");
	/* 4 Hz and two marks; on a busy machine a sample may be late, but never early. */
	int64_t passed = memory->times_ns[memory->count - 1] - memory->times_ns[0];
	assert_in_range(memory->count, 3, passed / 250000000 + 4);
	const double page = (double)sysconf(_SC_PAGESIZE);
	assert_real(memory->values[0], 1200 * page);
	assert_real(record.memory_max_window, 3200 * page);
	assert_true(record.memory_mean_run > 1200 * page && record.memory_mean_run < 3200 * page);
	assert_true(record.memory_mean_window > record.memory_mean_run);
	/* 100 more ticks in about 0.6 s: 50 of the worker, and 20 stolen from two processors. */
	double seconds = (double)record.window_ns * 1e-9;
	assert_true(fabs(record.window_cpu_cores * seconds - 0.5) < 0.15);
	assert_true(fabs(record.cpu_cores * seconds - 1) < 0.3);
	assert_true(fabs(record.foreign_share * seconds - 0.25) < 0.1);
	assert_true(fabs(record.steal_share * seconds - 0.1) < 0.05);
	assert_real(record.load_average, 1.5);
	assert_in_range(record.sampling_missed, 0, 100);
	check_costs(&record);
	assert_real(record.frequency_mean_hz, NAN);
	assert_real(record.frequency_min_hz, NAN);
	assert_true(record.sampling_cpu_ns >= 0 && record.sampling_cpu_ns < 1000000000);
}

/*
 * The worker's clock does not advance, except for two jumps of 0.3 s at the third and fourth mark.
 */
MACHINE_TEST(rest_is_what_the_workers_clock_stands_still)
{
	static const int ticks[] = {60, 60, 90, 120};
	struct sampling *sampling = NULL;
	SCOPED(process_record) record;
	struct error err = ERROR_INIT;
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int64_t times[4];

	sensor_machine(root);
	process_record_init(&record);
	check(sampling_start(root_fd, GUARD, NULL, 0, NULL, &sampling, &err), &err);
	for (int i = 0; i < 4; i++) {
		sensor_process(root, WORKER, GUARD, ticks[i], 0, 10);
		sampling_mark(sampling, false);
		times[i] = clock_monotonic_ns();
		/* This thread samples, because the other one may be late. */
		clock_sleep_until_ns(times[i] + 100000000);
		sampling_mark(sampling, false);
		clock_sleep_until_ns(times[i] + 200000000);
	}
	int64_t end = clock_monotonic_ns();
	int64_t still = sampling_rested_ns(sampling, times[0], times[1]);
	int64_t all = sampling_rested_ns(sampling, times[0], end);
	assert_int_equal(sampling_rested_ns(sampling, times[1] + 1, times[1] + 2), 0);
	sampling_stop(sampling, &record);
	close(root_fd);
	/* The rest counts where the clock was sampled, not where it jumped. */
	assert_in_range(still, 1, times[1] - times[0]);
	assert_true(all > still && all < end - times[0]);
}

/* A data loader process starts after the last search for processes. Its work before the window does
 * not belong to the window. */
MACHINE_TEST(the_tree_is_looked_at_before_a_window)
{
	struct sampling *sampling = NULL;
	SCOPED(process_record) record;
	struct error err = ERROR_INIT;
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	sensor_machine(root);
	process_record_init(&record);
	check(sampling_start(root_fd, GUARD, NULL, 0, NULL, &sampling, &err), &err);
	sensor_process(root, 30, WORKER, 900, 0, 10);
	sensor_children(root, WORKER, "22 30 ");
	sampling_mark(sampling, true);
	record.window_begin_ns = clock_monotonic_ns();
	sensor_process(root, 30, WORKER, 930, 0, 10);
	/* Long enough for the next search for processes, and for a share of ticks. */
	clock_sleep_until_ns(clock_monotonic_ns() + 1200000000);
	record.window_ns = clock_monotonic_ns() - record.window_begin_ns;
	sampling_mark(sampling, false);
	sampling_stop(sampling, &record);
	sampling_figures(&record);
	close(root_fd);
	double seconds = (double)record.window_ns * 1e-9;
	assert_true(fabs(record.window_cpu_cores * seconds - 0.3) < 0.1);
}

MACHINE_TEST(nothing_is_sampled_of_an_empty_machine)
{
	struct sampling *sampling = NULL;
	SCOPED(process_record) record;
	struct error err = ERROR_INIT;
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	process_record_init(&record);
	sampling_stop(NULL, &record);
	check(sampling_start(root_fd, GUARD, NULL, 0, NULL, &sampling, &err), &err);
	sampling_mark(sampling, true);
	sampling_stop(sampling, &record);
	sampling_figures(&record);
	close(root_fd);
	assert_int_equal(record.series_count, sensor_count + 1);
	for (size_t i = 0; i < sensor_count; i++) {
		assert_int_equal(record.series[i].count, 0);
		assert_true(strlen(record.series[i].absent) > 10);
	}
	assert_real(record.memory_mean_run, NAN);
	assert_real(record.cpu_cores, NAN);
}

/* The properties of the sensor table on which the store, the exports and the pages rely. */
TEST(the_table_is_whole)
{
	for (size_t i = 0; i < sensor_count; i++) {
		const struct sensor *sensor = sensors[i];
		assert_true(strlen(sensor->name) < SERIES_WORD_BYTES);
		assert_true(sensor->period_ns >= 250000000);
		assert_true((sensor->kind == SERIES_GAUGE) == !*sensor->rate_unit);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(sensor->name, sensors[k]->name);
	}
}
