/* Tests the machine's record, its hash, and the files read for it, on recorded machines. */
#include <sched.h>

#include "diagnose/environment.h"
#include "diagnose/machine.h"
#include "diagnose/sources.h"
#include "tests/unit/machine_fixture.h"
#include "unit_test.h"

static const json_t *member(const json_t *record, const char *section, const char *key)
{
	const json_t *value = json_object_get(json_object_get(record, section), key);

	if (!value)
		fail_msg("no %s.%s in the record", section, key);
	return value;
}

static void expect_text(const json_t *record, const char *section, const char *key,
			const char *expected)
{
	const json_t *value = member(record, section, key);

	assert_true(json_is_string(value));
	assert_string_equal(json_string_value(value), expected);
}

static void expect_int(const json_t *record, const char *section, const char *key, int expected)
{
	const json_t *value = member(record, section, key);

	if (!json_is_integer(value) || json_integer_value(value) != expected) {
		char *text = test_keep(json_dumps(value, JSON_ENCODE_ANY));
		fail_msg("%s.%s is %s instead of %d", section, key, text, expected);
	}
}

static void expect_absent(const json_t *record, const char *section, const char *key)
{
	assert_true(json_is_null(member(record, section, key)));
	assert_true(json_is_string(member(record, "absent", key)));
}

MACHINE_TEST(server_is_recorded)
{
	machine_good_server(root);
	json_auto_t *record = machine_record(root);
	expect_text(record, "must_match", "architecture", "x86_64");
	expect_text(record, "must_match", "cpu_model", "Test CPU @ 2.00GHz");
	expect_text(record, "must_match", "cpu_model_number", "106");
	expect_int(record, "must_match", "packages", 2);
	expect_int(record, "must_match", "cores", 4);
	expect_int(record, "must_match", "threads", 8);
	expect_int(record, "must_match", "cores_usable", 4);
	expect_int(record, "must_match", "memory_gib", 63);
	expect_text(record, "must_match", "cpus_allowed", "0-7");
	expect_text(record, "should_match", "kernel", "6.1.0-18-amd64");
	expect_text(record, "should_match", "governor", "performance");
	expect_text(record, "should_match", "distribution", "Debian GNU/Linux 12");
	expect_text(record, "should_match", "mitigations", "off");
	expect_text(record, "should_match", "microcode", "0xd0003a5");
	expect_text(record, "should_match", "nvidia_driver", "NVIDIA UNIX 550.54");
	expect_int(record, "should_match", "intel_no_turbo", 1);
	expect_int(record, "should_match", "frequency_max_khz", 2000000);
	assert_true(json_is_false(member(record, "should_match", "virtual_machine")));
	expect_absent(record, "should_match", "boost");
	expect_absent(record, "must_match", "cpu_quota");
	expect_text(record, "informational", "host", "bench");
	json_t *gpus = json_object_get(json_object_get(record, "must_match"), "gpus");
	assert_int_equal(json_array_size(gpus), 1);
	assert_string_equal(json_string_value(json_array_get(gpus, 0)), "NVIDIA A100");
	/* smep protects memory; it is not arithmetic. */
	char *flags = test_keep(
		json_dumps(member(record, "must_match", "instruction_set"), JSON_COMPACT));
	assert_string_equal(flags, "[\"sse2\",\"avx\",\"avx2\",\"fma\",\"avx512f\"]");
}

MACHINE_TEST(affinity_and_smt)
{
	machine_good_server(root);
	/* Both threads of core 1, the second thread of core 2. */
	machine_file(root, "/proc/self/status", "Name:\tx\nCpus_allowed_list:\t1,5-6");
	json_auto_t *record = machine_record(root);
	expect_int(record, "must_match", "cores", 4);
	expect_int(record, "must_match", "cores_usable", 2);
	expect_int(record, "must_match", "threads_usable", 3);
	expect_text(record, "must_match", "cpus_allowed", "1,5-6");
}

MACHINE_TEST(nothing_is_there)
{
	static const char *const keys[] = {"cpu_model", "instruction_set", "memory_gib"};
	json_auto_t *record = machine_record(root);

	for (size_t i = 0; i < COUNT(keys); i++)
		expect_absent(record, "must_match", keys[i]);
	expect_absent(record, "should_match", "kernel");
	expect_absent(record, "should_match", "governor");
	expect_absent(record, "informational", "load");
	expect_absent(record, "informational", "steal_share");
	/* Every null of the three sections has its reason. */
	static const char *const sections[] = {"must_match", "should_match", "informational"};
	for (size_t i = 0; i < 3; i++) {
		const char *key;
		json_t *value;

		json_object_foreach(json_object_get(record, sections[i]), key,
				    value) if (json_is_null(value))
			assert_true(json_is_string(member(record, "absent", key)));
	}
}

MACHINE_TEST(arm_machine)
{
	machine_processors(root, 1, 4, 1, "unused");
	machine_file(
		root, "/proc/cpuinfo",
		"processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd asimddp sve bf16 crc32\n"
		"CPU implementer\t: 0x41\nCPU part\t: 0xd40");
	machine_file(root, "/proc/sys/kernel/arch", "aarch64");
	json_auto_t *record = machine_record(root);
	expect_text(record, "must_match", "architecture", "aarch64");
	expect_text(record, "must_match", "cpu_model", "implementer 0x41 part 0xd40");
	expect_int(record, "must_match", "cores", 4);
	char *flags = json_dumps(member(record, "must_match", "instruction_set"), JSON_COMPACT);
	assert_string_equal(flags, "[\"asimd\",\"asimddp\",\"sve\",\"bf16\"]");
	free(flags);
	expect_absent(record, "should_match", "virtual_machine");
}

/* Files with nonsense make members absent, never wrong numbers. */
MACHINE_TEST(nonsense)
{
	machine_good_server(root);
	machine_file(root, "/proc/meminfo",
		     "MemTotal: 99999999999999999999999 kB\nMemAvailable: x");
	machine_file(root, "/proc/loadavg", "fast");
	machine_file(root, "/proc/stat", "cpu  -1 0 0");
	machine_file(root, "/proc/sys/kernel/osrelease", "\xff\xfe");
	machine_file(root, "/sys/devices/system/cpu/intel_pstate/no_turbo", "1 2");
	machine_file(root, "/proc/sys/vm/swappiness/x", "a folder instead of a file");
	json_auto_t *record = machine_record(root);
	expect_absent(record, "must_match", "memory_gib");
	expect_absent(record, "informational", "memory_available_bytes");
	expect_absent(record, "informational", "load");
	expect_absent(record, "informational", "steal_share");
	expect_absent(record, "should_match", "kernel");
	expect_absent(record, "should_match", "intel_no_turbo");
	expect_absent(record, "should_match", "swappiness");
}

static void hash_of(const char *root, char hash[17])
{
	json_t *record = machine_record(root);

	machine_hash(record, hash);
	json_decref(record);
	assert_int_equal(strspn(hash, "0123456789abcdef"), 16);
	assert_int_equal(hash[16], '\0');
}

MACHINE_TEST(hash_follows_what_must_match)
{
	static const struct {
		const char *path, *text;
		bool changes;
	} rows[] = {
		{"/proc/loadavg", "3.50 2.00 1.00 1/300 1", false},
		{"/proc/stat", "cpu  9000 0 500 98000 400 0 50 950 0 0", false},
		{"/proc/sys/kernel/hostname", "other", false},
		{"/sys/class/hwmon/hwmon3/temp1_input", "99000", false},
		{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave", true},
		{"/proc/sys/kernel/osrelease", "6.1.0-19-amd64", true},
		{"/proc/self/status", "Cpus_allowed_list:\t0-3", true},
		{"/sys/fs/cgroup/user.slice/cpu.max", "200000 100000", true},
		{"/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: NVIDIA H100", true},
	};
	char before[17], after[17];

	unsetenv("OMP_NUM_THREADS"); /* the user's environment may have set it */
	machine_good_server(root);
	hash_of(root, before);
	for (size_t i = 0; i < COUNT(rows); i++) {
		machine_file(root, rows[i].path, rows[i].text);
		hash_of(root, after);
		if ((strcmp(before, after) != 0) != rows[i].changes)
			fail_msg("%s: %s -> %s", rows[i].path, before, after);
		memcpy(before, after, sizeof(before));
	}
	assert_int_equal(setenv("OMP_NUM_THREADS", "3", 1), 0);
	hash_of(root, after);
	assert_string_not_equal(before, after);
	unsetenv("OMP_NUM_THREADS");
	hash_of(root, after);
	assert_string_equal(before, after);
}

TEST(only_listed_variables)
{
	setenv("OMP_NUM_THREADS", "2", 1);
	setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
	setenv("TORCH_API_TOKEN", "hush", 1);
	/* A variable for builds; no run reads it. */
	setenv("TORCH_CUDA_ARCH_LIST", "9.0a", 1);
	setenv("CUDA_SECRET_KEY", "hush", 1);
	setenv("TF_VAR_password", "hush", 1);
	setenv("MY_DIARY", "hush", 1);
	setenv("MKL_DEBUG_CPU_TYPE", "\xff", 1);
	setenv("PRONY_DATA", "/data", 1);
	json_t *settings = environment_settings(), *paths = environment_paths();
	char *text = test_keep(json_dumps(settings, JSON_COMPACT)),
	     *more = test_keep(json_dumps(paths, JSON_COMPACT));
	assert_string_equal(json_string_value(json_object_get(settings, "OMP_NUM_THREADS")), "2");
	assert_string_equal(json_string_value(json_object_get(settings, "ONEDNN_MAX_CPU_ISA")),
			    "AVX2");
	assert_string_equal(json_string_value(json_object_get(settings, "MKL_DEBUG_CPU_TYPE")),
			    "(not UTF-8)");
	assert_string_equal(json_string_value(json_object_get(paths, "PRONY_DATA")), "/data");
	assert_lacks(text, "hush");
	assert_null(json_object_get(settings, "TORCH_CUDA_ARCH_LIST"));
	unsetenv("TORCH_CUDA_ARCH_LIST");
	assert_lacks(more, "hush");
	json_decref(settings);
	json_decref(paths);
	for (size_t i = 0; i < 6; i++)
		unsetenv((const char *const[]){"ONEDNN_MAX_CPU_ISA", "TORCH_API_TOKEN",
					       "CUDA_SECRET_KEY", "TF_VAR_password",
					       "MKL_DEBUG_CPU_TYPE", "OMP_NUM_THREADS"}[i]);
}

/* What each batch system tells its jobs. */
MACHINE_TEST(jobs_are_recorded)
{
	static const struct {
		const char *variables[6][2], *node, *job, *task, *partition, *nodes;
	} cases[] = {
		{{{"SLURMD_NODENAME", "n1"}}, "n1", NULL, NULL, NULL, NULL},
		{{{"SLURMD_NODENAME", "n2"},
		  {"SLURM_JOB_ID", "18"},
		  {"SLURM_ARRAY_JOB_ID", "17"},
		  {"SLURM_ARRAY_TASK_ID", "3"},
		  {"SLURM_JOB_PARTITION", "main"},
		  {"SLURM_JOB_NODELIST", "n[1-2]"}},
		 "n2",
		 "17",
		 "3",
		 "main",
		 "n[1-2]"},
		{{{"PBS_JOBID", "5[2].head"},
		  {"PBS_ARRAY_INDEX", "2"},
		  {"PBS_QUEUE", "work"},
		  {"PBS_NODEFILE", "/nodes"}},
		 "bench1",
		 "5[2].head",
		 "2",
		 "work",
		 "a,b"},
		{{{"LSB_JOBID", "9"}, {"LSB_JOBINDEX", "0"}, {"LSB_HOSTS", "a a b"}},
		 "bench1",
		 "9",
		 NULL,
		 NULL,
		 "a a b"},
		{{{NULL}}, NULL, NULL, NULL, NULL, NULL},
	};
	char before[17] = "", hash[17];

	machine_good_server(root);
	machine_file(root, "/proc/sys/kernel/hostname", "bench1\n");
	machine_file(root, "/nodes", "a\na\nb\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t k = 0; k < 6 && cases[i].variables[k][0]; k++)
			setenv(cases[i].variables[k][0], cases[i].variables[k][1], 1);
		json_auto_t *record = machine_record(root);
		const char *const members[][2] = {{"node", cases[i].node},
						  {"job", cases[i].job},
						  {"array_task", cases[i].task},
						  {"partition", cases[i].partition},
						  {"nodes_allocated", cases[i].nodes}};
		for (size_t k = 0; k < COUNT(members); k++)
			if (members[k][1])
				expect_text(record, "informational", members[k][0], members[k][1]);
			else
				assert_null(json_object_get(
					json_object_get(record, "informational"), members[k][0]));
		machine_hash(record, hash);
		assert_true(i == 0 || !strcmp(hash, before));
		memcpy(before, hash, sizeof before);
		for (size_t k = 0; k < 6 && cases[i].variables[k][0]; k++)
			unsetenv(cases[i].variables[k][0]);
	}
}

MACHINE_TEST(quotas)
{
	static const struct {
		const char *groups, *path, *text;
		double expected;
	} rows[] = {
		{"0::/a/b", "/sys/fs/cgroup/a/b/cpu.max", "max 100000", 0},
		{"0::/a/b", "/sys/fs/cgroup/a/b/cpu.max", "250000 100000", 2.5},
		/* The parent group has the lower limit. */
		{"0::/a/b", "/sys/fs/cgroup/a/cpu.max", "150000 100000", 1.5},
		{"0::/", "/sys/fs/cgroup/cpu.max", "nonsense", 0},
		{"0::/a/b", "/sys/fs/cgroup/a/cpu.max", "9 0", 2.5},
		/* Version 1; the path is the host's, the mount is the container's. */
		{"4:cpu,cpuacct:/docker/1234\n1:name=cpu:/x", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
		 "50000", 0},
		{"4:cpu,cpuacct:/docker/1234", "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000",
		 0.5},
		{"4:cpuset:/x", "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000", 0},
		{"garbage\n::\n4", "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000", 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		machine_file(root, "/proc/self/cgroup", rows[i].groups);
		machine_file(root, rows[i].path, rows[i].text);
		double quota = source_cpu_quota(root);
		if (quota < rows[i].expected - 1e-9 || quota > rows[i].expected + 1e-9)
			fail_msg("row %zu: %g instead of %g", i, quota, rows[i].expected);
	}
}

MACHINE_TEST(memory_limits)
{
	assert_int_equal(source_memory_limit(root), -1);
	machine_file(root, "/proc/self/cgroup", "0::/job\n3:memory:/job");
	machine_file(root, "/sys/fs/cgroup/job/memory.max", "max");
	machine_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
	assert_int_equal(source_memory_limit(root), -1);
	machine_file(root, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4294967296");
	assert_int_equal(source_memory_limit(root), 4294967296);
	machine_file(root, "/sys/fs/cgroup/memory.max", "1048576");
	assert_int_equal(source_memory_limit(root), 1048576);
}

TEST(fields_of_files)
{
	const struct {
		const char *text, *key, *expected;
	} rows[] = {
		{"model\t: 17\nmodel name\t: A: B", "model name", "A: B"},
		{"model name\t: A\nmodel\t: 17", "model", "17"},
		{"a:1\na:2", "a", "1"},
		{"PRETTY_NAME=\"x\"", "PRETTY_NAME", "\"x\""},
		{"ab: 1", "a", NULL},
		{"a", "a", NULL},
		{"a\n: 1", "a", NULL},
		{"a:", "a", ""},
		{"", "a", NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char *value = test_keep(source_field(rows[i].text, rows[i].key));
		if (!value != !rows[i].expected || (value && strcmp(value, rows[i].expected) != 0))
			fail_msg("row %zu: %s", i, value ? value : "(none)");
	}
}

TEST(cores_of_this_machine)
{
	int cpus[4] = {-1, -1, -1, -1};
	cpu_set_t before, one;
	int count = machine_cores(cpus, 4);

	assert_in_range(count, 1, sysconf(_SC_NPROCESSORS_ONLN));
	for (int i = 0; i < count && i < 4; i++)
		assert_true(cpus[i] >= 0);
	assert_int_equal(machine_cores(NULL, 0), count);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	/* Runs on the last processor that this process may use, so that it is rarely number 0. */
	int last = -1;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &before))
			last = (int)cpu;
	CPU_ZERO(&one);
	CPU_SET((size_t)last, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(machine_cores(cpus, 4), 1);
	assert_int_equal(cpus[0], last);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(this_machine_is_stable)
{
	char first[17], second[17];

	hash_of("", first);
	hash_of("", second);
	assert_string_equal(first, second);
}
