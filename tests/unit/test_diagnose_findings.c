/* Tests the doctor's checks on recorded machines: each fault changes exactly its own check. */
#include <sys/wait.h>

#include "diagnose/machine.h"
#include "tests/unit/machine_fixture.h"
#include "unit_test.h"

enum { CAPACITY = 32, NOBODY = 65534, WATCH_NS = 50000000 };

static const struct finding *of(const struct finding *findings, size_t count, const char *check)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(findings[i].check, check) == 0)
			return &findings[i];
	fail_msg("no check '%s'", check);
	return NULL;
}

MACHINE_TEST(good_server_has_nothing)
{
	struct finding findings[CAPACITY];

	machine_good_server(root);
	size_t count = machine_findings(root, WATCH_NS, findings, CAPACITY);
	assert_int_equal(count, 15);
	for (size_t i = 0; i < count; i++)
		if (findings[i].level != FINDING_OK || *findings[i].remedy || !*findings[i].value)
			fail_msg("%s: %d '%s' '%s'", findings[i].check, findings[i].level,
				 findings[i].value, findings[i].remedy);
	assert_string_equal(of(findings, count, "cores")->value,
			    "4 cores, 8 threads, NUMA nodes: 1");
	assert_string_equal(of(findings, count, "instruction set")->value,
			    "AVX, AVX2, FMA, AVX-512");
	assert_string_equal(of(findings, count, "gpus")->value, "NVIDIA A100");
	assert_string_equal(of(findings, count, "memory")->value, "57.2 of 62.5 GiB available");
}

#define RAPL "/sys/class/powercap/intel-rapl:0"
#define CPUFREQ "/sys/devices/system/cpu"

/* A change to the good server, and the resulting finding of its check. */
static const struct fault {
	const char *path, *text, *check;
	enum finding_level level;
	const char *value, *remedy; /* parts of the texts */
} faults[] = {
	{CPUFREQ "/cpufreq/policy1/scaling_governor", "powersave", "governor", FINDING_WARNING,
	 "powersave (1 of 2 policies)", "cpupower frequency-set -g performance"},
	{CPUFREQ "/intel_pstate/no_turbo", "0", "boost", FINDING_NOTE, "on",
	 "echo 1 > " CPUFREQ "/intel_pstate/no_turbo"},
	{"/proc/loadavg", "7.90 7.00 6.00 9/300 1", "load", FINDING_WARNING, "7.90 on 8",
	 "close other programs"},
	{"/proc/stat", "cpu 1000 0 500 90000 400 0 50 8050 0 0", "steal", FINDING_WARNING,
	 "8.1 % since boot", "host"},
	{"/proc/self/status", "Cpus_allowed_list:\t0,4", "cores", FINDING_NOTE,
	 "1 of 4 usable (processors 0,4)", "taskset"},
	{"/sys/fs/cgroup/user.slice/cpu.max", "150000 100000", "cores", FINDING_WARNING,
	 "quota of 1.50", "cpuset"},
	{"/sys/fs/cgroup/user.slice/memory.max", "2147483648", "memory", FINDING_WARNING,
	 "limited to 2.0 GiB", "raise it"},
	{"/proc/meminfo",
	 "MemTotal: 65536000 kB\nMemAvailable: 1000000 kB\nSwapTotal: 0 kB\n"
	 "SwapFree: 0 kB",
	 "memory", FINDING_WARNING, "1.0 of 62.5", "smaller batches"},
	{"/proc/meminfo",
	 "MemTotal: 65536000 kB\nMemAvailable: 60000000 kB\n"
	 "SwapTotal: 8388608 kB\nSwapFree: 4194304 kB",
	 "swap", FINDING_WARNING, "4.0 of 8.0 GiB in use", "swapoff"},
	{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "clock source",
	 FINDING_WARNING, "hpet", "tsc"},
	{"/proc/sys/kernel/perf_event_paranoid", "4", "perf permissions", FINDING_NOTE,
	 "perf_event_paranoid 4", "sysctl"},
	{RAPL "/name", "dram", "sensor cpu-energy", FINDING_NOTE, "has no package zone",
	 "intel_rapl_msr"},
	{"/sys/class/hwmon/hwmon3/name", "nvme", "sensor cpu-temperature", FINDING_NOTE,
	 "absent:", "coretemp"},
};

static void check_fault(const struct fault *fault)
{
	struct finding before[CAPACITY], after[CAPACITY];
	void *root;

	assert_int_equal(machine_setup(&root), 0);
	machine_good_server(root);
	size_t count = machine_findings(root, WATCH_NS, before, CAPACITY);
	machine_file(root, fault->path, fault->text);
	assert_int_equal(machine_findings(root, WATCH_NS, after, CAPACITY), count);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(after[i].check, fault->check) != 0) {
			if (after[i].level != before[i].level)
				fail_msg("%s changed '%s' too", fault->path, after[i].check);
			continue;
		}
		if (after[i].level != fault->level || !strstr(after[i].value, fault->value) ||
		    !strstr(after[i].remedy, fault->remedy))
			fail_msg("%s: %s: level %d '%s' '%s'", fault->path, fault->check,
				 after[i].level, after[i].value, after[i].remedy);
	}
	assert_int_equal(machine_teardown(&root), 0);
}

TEST(each_fault_is_found)
{
	for (size_t i = 0; i < COUNT(faults); i++)
		check_fault(&faults[i]);
}

/* A run keeps the warnings about unreliable numbers, and no others. */
MACHINE_TEST(a_run_keeps_what_spoils_numbers)
{
	machine_good_server(root);
	json_auto_t *record = json_pack("{s:{}}", "informational");
	machine_findings_add(record, root, WATCH_NS);
	const json_t *informational = json_object_get(record, "informational");
	assert_int_equal(json_array_size(json_object_get(informational, "findings")), 0);
	/* Unreadable energy counters do not make numbers unreliable. */
	machine_file(root, RAPL "/name", "dram");
	machine_file(root, CPUFREQ "/cpufreq/policy1/scaling_governor", "powersave");
	machine_file(root, "/sys/fs/cgroup/user.slice/cpu.max", "150000 100000");
	machine_findings_add(record, root, WATCH_NS);
	const json_t *found = json_object_get(informational, "findings");
	assert_int_equal(json_array_size(found), 2);
	const json_t *first = json_array_get(found, 0);
	assert_string_equal(json_string_value(json_object_get(first, "check")), "governor");
	assert_string_equal(json_string_value(json_object_get(first, "value")),
			    "powersave (1 of 2 policies)");
	assert_has(json_string_value(json_object_get(first, "remedy")), "cpupower");
	assert_string_equal(json_string_value(json_object_get(json_array_get(found, 1), "check")),
			    "cores");
}

MACHINE_TEST(instruction_sets)
{
	static const struct {
		const char *flags, *value;
		enum finding_level level;
	} rows[] = {
		{"sse2", "no AVX2 and no NEON", FINDING_WARNING},
		{"sse2 avx", "AVX", FINDING_WARNING},
		/* A flag that is part of a longer one is not that flag. */
		{"xavx2 avx2x avx", "AVX", FINDING_WARNING},
		{"avx avx2", "AVX, AVX2", FINDING_OK},
		{"avx avx2 avx512_bf16 amx_tile", "AVX, AVX2, BF16, AMX", FINDING_OK},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct finding findings[CAPACITY];

		machine_processors(root, 1, 1, 1, rows[i].flags);
		size_t count = machine_findings(root, WATCH_NS, findings, CAPACITY);
		const struct finding *found = of(findings, count, "instruction set");
		assert_string_equal(found->value, rows[i].value);
		assert_int_equal(found->level, rows[i].level);
	}
}

MACHINE_TEST(virtual_machine)
{
	struct finding findings[CAPACITY];

	machine_processors(root, 1, 2, 1, "avx avx2 hypervisor");
	machine_file(root, "/sys/class/dmi/id/sys_vendor", "QEMU");
	machine_file(root, "/sys/class/dmi/id/product_name", "Standard PC");
	size_t count = machine_findings(root, WATCH_NS, findings, CAPACITY);
	assert_string_equal(of(findings, count, "virtual machine")->value, "yes: QEMU Standard PC");
	assert_int_equal(of(findings, count, "virtual machine")->level, FINDING_NOTE);
	assert_has(of(findings, count, "sensor cpu-energy")->value, "virtual machine");
	assert_has(of(findings, count, "governor")->remedy, "host");
}

MACHINE_TEST(empty_machine)
{
	struct finding findings[CAPACITY];
	size_t count = machine_findings(root, WATCH_NS, findings, CAPACITY);

	for (size_t i = 0; i < count; i++) {
		bool knows = strcmp(findings[i].check, "cores") == 0;

		assert_int_equal(findings[i].level, knows ? FINDING_WARNING : FINDING_NOTE);
		assert_true(*findings[i].value != '\0');
	}
	assert_int_equal(machine_findings(root, WATCH_NS, findings, 3), 3);
	assert_int_equal(machine_findings(root, WATCH_NS, findings, 0), 0);
}

MACHINE_TEST(only_root_may_read_energy)
{
	char *energy = memory_printf("%s" RAPL "/energy_uj", root);

	machine_good_server(root);
	assert_int_equal(chmod(root, 0755), 0);
	assert_int_equal(chmod(energy, 0400), 0);
	free(energy);
	/* Permissions do not apply to root. */
	if (geteuid() != 0) {
		skip();
		return;
	}
	pid_t child = fork();
	if (child == 0) {
		struct finding findings[CAPACITY];

		if (setuid(NOBODY) != 0)
			_exit(2);
		size_t count = machine_findings(root, WATCH_NS, findings, CAPACITY);
		const struct finding *found = of(findings, count, "sensor cpu-energy");
		_exit(found->level == FINDING_WARNING && strstr(found->value, "only root") &&
				      strstr(found->remedy, "chmod")
			      ? 0
			      : 1);
	}
	int end;
	assert_int_equal(waitpid(child, &end, 0), child);
	assert_true(WIFEXITED(end));
	assert_int_equal(WEXITSTATUS(end), 0);
}

TEST(this_machine)
{
	struct finding findings[CAPACITY];
	size_t count = machine_findings("", WATCH_NS, findings, CAPACITY);

	assert_int_equal(count, 15);
	for (size_t i = 0; i < count; i++)
		assert_true(*findings[i].value != '\0');
}
