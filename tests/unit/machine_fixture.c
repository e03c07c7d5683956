#include "tests/unit/machine_fixture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"

int machine_setup(void **state)
{
	char *folder;

	if (directory_make_temporary("prony-machine-", &folder, NULL) != PRONY_OK)
		return -1;
	*state = folder;
	return 0;
}

int machine_teardown(void **state)
{
	enum prony_status status = directory_remove(*state, NULL);

	free(*state);
	return status == PRONY_OK ? 0 : -1;
}

void machine_file(const char *root, const char *path, const char *text)
{
	char *full = memory_printf("%s%s", root, path);
	char *slash = strrchr(full, '/');

	*slash = '\0';
	enum prony_status made = directory_make(full, NULL);
	*slash = '/';
	FILE *stream = made == PRONY_OK ? fopen(full, "w") : NULL;
	if (!stream || fprintf(stream, "%s\n", text) < 0 || fclose(stream) != 0)
		abort();
	free(full);
}

static void processor_topology(const char *root, int cpu, int package, int core, int sibling_step,
			       int threads)
{
	char path[128], text[32];
	SCOPED(strbuf) list;
	const struct {
		const char *name;
		int value;
	} rows[] = {{"physical_package_id", package}, {"core_id", core}};

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu,
			 rows[i].name);
		snprintf(text, sizeof(text), "%d", rows[i].value);
		machine_file(root, path, text);
	}
	unsigned long siblings = 0;
	for (int i = 0; i < threads; i++)
		siblings |= 1UL << (cpu % sibling_step + i * sibling_step);
	strbuf_init(&list, 0);
	strbuf_printf(&list, "%08lx", siblings);
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings", cpu);
	machine_file(root, path, strbuf_text(&list));
}

void machine_processors(const char *root, int packages, int cores, int threads, const char *flags)
{
	int step = packages * cores, count = step * threads;
	struct strbuf info;
	char text[64], path[128];

	assert(count <= 32);
	strbuf_init(&info, 0);
	for (int cpu = 0; cpu < count; cpu++) {
		int package = cpu % step / cores;

		strbuf_printf(&info,
			      "processor\t: %d\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
			      "model\t\t: 106\nmodel name\t: Test CPU @ 2.00GHz\nstepping\t: 6\n"
			      "microcode\t: 0xd0003a5\nphysical id\t: %d\ncore id\t\t: %d\n"
			      "flags\t\t: %s\n\n",
			      cpu, package, cpu % cores, flags);
		processor_topology(root, cpu, package, cpu % cores, step, threads);
		for (int i = 0; i < packages; i++) {
			unsigned long mask = 0;

			for (int other = 0; other < count; other++)
				if (other % step / cores == package)
					mask |= 1UL << other;
			snprintf(text, sizeof(text), "%08lx", mask);
			snprintf(path, sizeof(path),
				 "/sys/devices/system/cpu/cpu%d/topology/core_siblings", cpu);
			machine_file(root, path, text);
		}
	}
	machine_file(root, "/proc/cpuinfo", strbuf_text(&info));
	strbuf_release(&info);
	snprintf(text, sizeof(text), "0-%d", count - 1);
	machine_file(root, "/sys/devices/system/cpu/online", text);
	machine_file(root, "/sys/devices/system/cpu/possible", text);
	machine_file(root, "/sys/devices/system/cpu/present", text);
	snprintf(path, sizeof(path), "Name:\tprony\nCpus_allowed_list:\t%s", text);
	machine_file(root, "/proc/self/status", path);
}

void machine_good_server(const char *root)
{
	static const struct {
		const char *path, *text;
	} files[] = {
		{"/proc/meminfo", "MemTotal:       65536000 kB\nMemAvailable:   60000000 kB\n"
				  "SwapTotal:       8388608 kB\nSwapFree:        8388608 kB"},
		{"/proc/loadavg", "0.02 0.10 0.05 1/300 4242"},
		{"/proc/stat", "cpu  1000 0 500 98000 400 0 50 50 0 0\ncpu0 1 2 3 4"},
		{"/proc/cmdline", "root=/dev/sda1 mitigations=off quiet"},
		{"/proc/sys/kernel/osrelease", "6.1.0-18-amd64"},
		{"/proc/sys/kernel/arch", "x86_64"},
		{"/proc/sys/kernel/hostname", "bench"},
		{"/proc/sys/kernel/perf_event_paranoid", "2"},
		{"/proc/sys/kernel/randomize_va_space", "2"},
		{"/proc/self/cgroup", "0::/user.slice/session"},
		{"/sys/bus/event_source/devices/cpu/type", "4"},
		{"/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12\""},
		{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"},
		{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"},
		{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_cpufreq"},
		{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "2000000"},
		{"/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance"},
		{"/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance"},
		{"/sys/devices/system/cpu/intel_pstate/no_turbo", "1"},
		{"/sys/class/powercap/intel-rapl:0/name", "package-0"},
		{"/sys/class/powercap/intel-rapl:0/energy_uj", "123456"},
		{"/sys/class/hwmon/hwmon3/name", "coretemp"},
		{"/sys/class/hwmon/hwmon3/temp1_input", "41000"},
		{"/proc/driver/nvidia/version",
		 "NVRM version: NVIDIA UNIX 550.54\nGCC version: 12"},
		{"/proc/driver/nvidia/gpus/0000:01:00.0/information",
		 "Model: \t\t NVIDIA A100\nIRQ: 1"},
	};

	machine_processors(root, 2, 2, 2, "fpu sse2 avx avx2 fma avx512f smep");
	for (size_t i = 0; i < COUNT(files); i++)
		machine_file(root, files[i].path, files[i].text);
}
