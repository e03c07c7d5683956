/* The checks of `prony doctor`: what on this machine spoils a measurement, and the remedy. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "diagnose/machine.h"
#include "diagnose/sources.h"
#include "diagnose/topology.h"

/* Processor times come in ticks of 10 ms, so up to two ticks say nothing. */
#define TICKS_UNSURE_NS INT64_C(20000000)

#define GIB (1024.0 * 1024.0 * 1024.0)
enum { POLICIES_MAX = 4096 };

/* Everything that the checks read. */
struct examination {
	const char *root;
	char *cpuinfo, *flags; /* owned; flags is "" when unknown */
	struct topology topology;
	bool has_topology;
	struct cpu_time before, after; /* of all processors */
	struct instrument instruments[INSTRUMENT_COUNT];
};

static void found(struct finding *finding, enum finding_level level, const char *remedy,
		  const char *format, ...) PRONY_PRINTF(4, 5);

static void found(struct finding *finding, enum finding_level level, const char *remedy,
		  const char *format, ...)
{
	va_list arguments;

	finding->level = level;
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy);
	va_start(arguments, format);
	vsnprintf(finding->value, sizeof(finding->value), format, arguments);
	va_end(arguments);
}

/* A share of all processors' time during the observation; 0 when it is too small to tell. */
static double share_percent(const struct examination *seen, int64_t part_ns)
{
	int64_t passed = seen->after.total_ns - seen->before.total_ns;

	return passed > 0 && part_ns > TICKS_UNSURE_NS ? 100.0 * (double)part_ns / (double)passed
						       : 0;
}

static bool is_virtual(const struct examination *seen)
{
	return strstr(seen->flags, "hypervisor") != NULL;
}

static bool has_flag(const struct examination *seen, const char *flag)
{
	size_t length = strlen(flag);

	for (const char *at = seen->flags; (at = strstr(at, flag)); at += length)
		if ((at == seen->flags || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

/* Also finds a single processor whose governor differs from the others. */
static void check_governor(const struct examination *seen, struct finding *finding)
{
	static const char folder[] = "/sys/devices/system/cpu/cpufreq";
	char(*names)[SOURCE_NAME_BYTES] = memory_alloc(sizeof(*names) * POLICIES_MAX);
	size_t count = source_entries(seen->root, folder, "policy", names, POLICIES_MAX), other = 0;
	char *example = NULL;

	for (size_t i = 0; i < count; i++) {
		char *path = memory_printf("%s/%s/scaling_governor", folder, names[i]);
		char *governor = source_text(seen->root, path, NULL);

		free(path);
		if (governor && strcmp(governor, "performance") != 0) {
			other++;
			free(example);
			example = governor;
		} else {
			free(governor);
		}
	}
	free(names);
	if (count == 0)
		found(finding, FINDING_NOTE,
		      is_virtual(seen) ? "the host sets the frequency; check it there" : "",
		      "absent: no frequency control in /sys");
	else if (other == 0)
		found(finding, FINDING_OK, "", "performance");
	else
		found(finding, FINDING_WARNING, "as root: cpupower frequency-set -g performance",
		      "%s (%zu of %zu policies)", example, other, count);
	free(example);
}

static void check_boost(const struct examination *seen, struct finding *finding)
{
	static const char intel[] = "/sys/devices/system/cpu/intel_pstate/no_turbo";
	static const char other[] = "/sys/devices/system/cpu/cpufreq/boost";
	int64_t value;

	/* One file says 1 for off, the other says 1 for on. */
	bool is_intel = source_int(seen->root, intel, &value);
	if (!is_intel && !source_int(seen->root, other, &value)) {
		found(finding, FINDING_NOTE, "", "absent: /sys has no switch for it");
		return;
	}
	if (is_intel ? value != 0 : value == 0) {
		found(finding, FINDING_OK, "", "off");
		return;
	}
	found(finding, FINDING_NOTE, "", "on");
	snprintf(finding->remedy, sizeof(finding->remedy),
		 "the clock changes with temperature and load; to turn it off, as root: echo %d > "
		 "%s",
		 is_intel ? 1 : 0, is_intel ? intel : other);
}

static void check_load(const struct examination *seen, struct finding *finding)
{
	double averages[3], load = -1;
	int64_t passed = seen->after.total_ns - seen->before.total_ns;
	int64_t used = seen->after.busy_ns - seen->before.busy_ns;
	int threads = seen->has_topology ? seen->topology.threads : 1;
	double busy = passed > 0 ? share_percent(seen, used) : -1;

	if (source_load_averages(seen->root, averages))
		load = averages[0];
	if (load < 0) {
		found(finding, FINDING_NOTE, "", "absent: /proc/loadavg cannot be read");
		return;
	}
	/* docs/sensors.md allows five per cent of foreign work. A load left over from work that has
	 * ended is only reported. */
	bool high = load > 0.25 * threads;
	enum finding_level level = busy > 5 || (busy < 0 && high) ? FINDING_WARNING
				   : high			  ? FINDING_NOTE
								  : FINDING_OK;
	const char *remedy =
		level == FINDING_OK ? "" : "close other programs, or wait until they end";
	if (busy < 0)
		found(finding, level, remedy, "%.2f on %d processors", load, threads);
	else
		found(finding, level, remedy, "%.2f on %d processors, %.0f %% busy now", load,
		      threads, busy);
}

static void check_steal(const struct examination *seen, struct finding *finding)
{
	double since_boot, now;

	if (!seen->after.known) {
		found(finding, FINDING_NOTE, "", "absent: /proc/stat cannot be read");
		return;
	}
	since_boot = 100.0 * (double)seen->after.steal_ns / (double)seen->after.total_ns;
	now = share_percent(seen, seen->after.steal_ns - seen->before.steal_ns);
	if (now > 1 || since_boot > 1)
		found(finding, FINDING_WARNING,
		      "the host gives processor time to other virtual machines: use a dedicated "
		      "host, or more processes per cell (--rigorous)",
		      "%.1f %% now, %.1f %% since boot", now, since_boot);
	else
		found(finding, FINDING_OK, "", "%.1f %% now, %.1f %% since boot", now, since_boot);
}

static void check_cores(const struct examination *seen, struct finding *finding)
{
	const struct topology *machine = &seen->topology;
	double quota = source_cpu_quota(seen->root);

	if (!seen->has_topology) {
		found(finding, FINDING_WARNING, "give the number of threads: -D cpu:N",
		      "the topology cannot be read");
		return;
	}
	if (quota > 0 && quota < machine->usable_threads)
		found(finding, FINDING_WARNING,
		      "a control group throttles this process: give it whole cores (cpuset) "
		      "instead of a quota",
		      "%d of %d usable, quota of %.2f processors", machine->usable_cores,
		      machine->cores, quota);
	else if (machine->cores == 0)
		found(finding, FINDING_NOTE,
		      "if two threads share a core, use half of them: -D cpu:N",
		      "%d threads; which of them share a core is unknown", machine->threads);
	else if (machine->usable_cores < machine->cores)
		found(finding, FINDING_NOTE,
		      "prony uses only these; to use all cores, start it without taskset or cpuset",
		      "%d of %d usable (processors %.40s)", machine->usable_cores, machine->cores,
		      machine->allowed);
	else
		found(finding, FINDING_OK, "", "%d cores, %d threads, NUMA nodes: %d",
		      machine->cores, machine->threads, machine->numa_nodes);
}

static void check_memory(const struct examination *seen, struct finding *finding)
{
	int64_t total = source_meminfo_bytes(seen->root, "MemTotal");
	int64_t available = source_meminfo_bytes(seen->root, "MemAvailable");
	int64_t limit = source_memory_limit(seen->root);

	if (total <= 0 || available < 0) {
		found(finding, FINDING_NOTE, "", "absent: /proc/meminfo cannot be read");
		return;
	}
	if (limit > 0 && limit < total) {
		found(finding, (double)limit < 4 * GIB ? FINDING_WARNING : FINDING_NOTE,
		      "a control group kills processes above its limit: raise it, or use smaller "
		      "batches (-b)",
		      "%.1f of %.1f GiB available, limited to %.1f GiB", (double)available / GIB,
		      (double)total / GIB, (double)limit / GIB);
		return;
	}
	bool little = (double)available < 2 * GIB || (double)available < 0.25 * (double)total;
	found(finding, little ? FINDING_WARNING : FINDING_OK,
	      little ? "close other programs, or use smaller batches (-b)" : "",
	      "%.1f of %.1f GiB available", (double)available / GIB, (double)total / GIB);
}

static void check_swap(const struct examination *seen, struct finding *finding)
{
	int64_t total = source_meminfo_bytes(seen->root, "SwapTotal");
	int64_t unused = source_meminfo_bytes(seen->root, "SwapFree");

	if (total < 0 || unused < 0)
		found(finding, FINDING_NOTE, "", "absent: /proc/meminfo lacks it");
	else if (total == 0)
		found(finding, FINDING_OK, "", "none");
	else if (total - unused > total / 20)
		found(finding, FINDING_WARNING,
		      "free memory, then as root: swapoff -a && swapon -a",
		      "%.1f of %.1f GiB in use", (double)(total - unused) / GIB,
		      (double)total / GIB);
	else
		found(finding, FINDING_OK, "", "%.1f GiB, mostly unused", (double)total / GIB);
}

static void check_instruction_set(const struct examination *seen, struct finding *finding)
{
	static const struct {
		const char *flag, *name;
	} rows[] = {
		{"avx", "AVX"},		 {"avx2", "AVX2"},	  {"fma", "FMA"},
		{"avx512f", "AVX-512"},	 {"avx512_vnni", "VNNI"}, {"avx_vnni", "AVX-VNNI"},
		{"avx512_bf16", "BF16"}, {"avx512_fp16", "FP16"}, {"amx_tile", "AMX"},
		{"asimd", "NEON"},	 {"asimdhp", "FP16"},	  {"asimddp", "dot product"},
		{"sve", "SVE"},		 {"sve2", "SVE2"},	  {"i8mm", "I8MM"},
		{"bf16", "BF16"},
	};
	char text[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (has_flag(seen, rows[i].flag) && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used > 0 ? ", " : "", rows[i].name);
	if (!*seen->flags)
		found(finding, FINDING_NOTE, "", "absent: /proc/cpuinfo lacks it");
	else if (!has_flag(seen, "avx2") && !has_flag(seen, "asimd"))
		found(finding, FINDING_WARNING,
		      "most frameworks need AVX2 and may not start; in a virtual machine, set the "
		      "processor type to host-passthrough",
		      "%s", used > 0 ? text : "no AVX2 and no NEON");
	else
		found(finding, FINDING_OK, "", "%s", text);
}

static void check_virtual(const struct examination *seen, struct finding *finding)
{
	char *maker = source_text(seen->root, "/sys/class/dmi/id/sys_vendor", NULL);
	char *product = source_text(seen->root, "/sys/class/dmi/id/product_name", NULL);

	if (!*seen->flags || !seen->cpuinfo)
		found(finding, FINDING_NOTE, "", "absent: /proc/cpuinfo lacks it");
	else if (!is_virtual(seen))
		found(finding, FINDING_OK, "", "no");
	else
		found(finding, FINDING_NOTE,
		      "the host's load, clocks and energy are not visible here; compare only with "
		      "runs on the same type of machine",
		      "yes%s%.40s%s%.40s", maker ? ": " : "", maker ? maker : "",
		      product ? " " : "", product ? product : "");
	free(product);
	free(maker);
}

static void check_clock(const struct examination *seen, struct finding *finding)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	/* These clocks are read without a system call; all others cost about a microsecond. */
	static const char *const fast[] = {"tsc", "kvm-clock", "arch_sys_counter",
					   "hyperv_clocksource_tsc_page", "timebase"};
	char *name = source_text(seen->root, path, NULL);
	bool known = false;

	for (size_t i = 0; name && i < sizeof(fast) / sizeof(fast[0]); i++)
		known = known || strcmp(name, fast[i]) == 0;
	if (!name)
		found(finding, FINDING_NOTE, "", "absent: not in /sys");
	else if (known)
		found(finding, FINDING_OK, "", "%s", name);
	else
		found(finding, FINDING_WARNING,
		      "reading this clock is slow: dmesg says why the kernel does not use tsc; if "
		      "tsc is reliable here, boot with tsc=reliable",
		      "%s", name);
	free(name);
}

static void check_perf(const struct examination *seen, struct finding *finding)
{
	int64_t level;

	if (!source_int(seen->root, "/proc/sys/kernel/perf_event_paranoid", &level))
		found(finding, FINDING_NOTE, "", "absent: this kernel has no perf events");
	else if (!source_exists(seen->root, "/sys/bus/event_source/devices/cpu") &&
		 !source_exists(seen->root, "/sys/bus/event_source/devices/armv8_pmuv3_0"))
		found(finding, FINDING_NOTE,
		      is_virtual(seen) ? "give the virtual machine access to the host's counters"
				       : "",
		      "no hardware counters (perf_event_paranoid %" PRId64 ")", level);
	else if (level > 2)
		found(finding, FINDING_NOTE, "as root: sysctl kernel.perf_event_paranoid=2",
		      "root only (perf_event_paranoid %" PRId64 ")", level);
	else
		found(finding, FINDING_OK, "", "perf_event_paranoid %" PRId64, level);
}

static void check_instrument(const struct instrument *instrument, struct finding *finding)
{
	if (instrument->readable)
		found(finding, FINDING_OK, "", "%s", instrument->where);
	else
		found(finding, instrument->present ? FINDING_WARNING : FINDING_NOTE,
		      instrument->remedy, "%s%.100s",
		      instrument->present ? "" : "absent: ", instrument->reason);
}

static void check_energy(const struct examination *seen, struct finding *finding)
{
	check_instrument(&seen->instruments[0], finding);
}

static void check_temperature(const struct examination *seen, struct finding *finding)
{
	check_instrument(&seen->instruments[1], finding);
}

static void check_gpu(const struct examination *seen, struct finding *finding)
{
	const struct instrument *gpu = &seen->instruments[2];

	if (gpu->readable && *gpu->reason)
		found(finding, FINDING_OK, "", "%.60s; refused: %.60s", gpu->where, gpu->reason);
	else
		check_instrument(gpu, finding);
}

static void check_gpus(const struct examination *seen, struct finding *finding)
{
	struct gpus gpus;
	const struct gpu *first = gpus.gpus;
	char also[32];

	machine_gpus(seen->root, &gpus);
	snprintf(also, sizeof(also), " and %d more", gpus.count - 1);
	if (gpus.count == 0)
		found(finding, FINDING_NOTE, "", "absent: %.100s", gpus.reason);
	else if (!gpus.answered)
		found(finding, *gpus.reason ? FINDING_WARNING : FINDING_OK,
		      *gpus.reason ? "install the driver's library for programs; to a container, "
				     "give the driver's capability compute"
				   : "",
		      "%.50s%s%s%.60s", first->name, gpus.count > 1 ? also : "",
		      *gpus.reason ? ", but " : "", gpus.reason);
	else
		found(finding, FINDING_OK, "", "%.50s%s: %.1f GiB, sm_%d, driver %.16s",
		      first->name, gpus.count > 1 ? also : "", (double)first->memory_bytes / 0x1p30,
		      first->capability, *gpus.driver ? gpus.driver : "unknown");
}

static const struct {
	const char *name;
	void (*check)(const struct examination *seen, struct finding *finding);
	bool spoils; /* whether the warning means wrong figures, not just missing ones */
} checks[] = {
	{"governor", check_governor, true},
	{"boost", check_boost, false},
	{"load", check_load, true},
	{"steal", check_steal, true},
	{"cores", check_cores, true},
	{"memory", check_memory, true},
	{"swap", check_swap, true},
	{"instruction set", check_instruction_set, false},
	{"virtual machine", check_virtual, false},
	{"clock source", check_clock, true},
	{"perf permissions", check_perf, false},
	{"gpus", check_gpus, false},
	{"sensor cpu-energy", check_energy, false},
	{"sensor cpu-temperature", check_temperature, false},
	{"sensor gpu", check_gpu, false},
};

static void examine(const char *root, int64_t watch_ns, struct examination *seen)
{
	*seen = (struct examination){.root = root};
	source_cpu_time(root, &seen->before);
	seen->after = seen->before;
	/* Observe first, so that the checks themselves are not mistaken for foreign work. A
	 * recorded machine does not change. */
	if (seen->before.known && !*root) {
		clock_sleep_until_ns(clock_monotonic_ns() + watch_ns);
		source_cpu_time(root, &seen->after);
	}
	seen->cpuinfo = source_text(root, "/proc/cpuinfo", NULL);
	if (seen->cpuinfo)
		seen->flags = source_field(seen->cpuinfo, "flags");
	if (seen->cpuinfo && !seen->flags)
		seen->flags = source_field(seen->cpuinfo, "Features");
	if (!seen->flags)
		seen->flags = memory_strdup("");
	seen->has_topology = topology_read(root, &seen->topology, NULL, 0);
	source_instruments(root, seen->instruments);
}

size_t machine_findings(const char *root, int64_t watch_ns, struct finding *out, size_t capacity)
{
	struct examination seen;
	size_t count = 0;

	examine(root ? root : "", watch_ns, &seen);
	for (; count < sizeof(checks) / sizeof(checks[0]) && count < capacity; count++) {
		out[count] = (struct finding){.spoils = checks[count].spoils};
		snprintf(out[count].check, sizeof(out[count].check), "%s", checks[count].name);
		checks[count].check(&seen, &out[count]);
	}
	free(seen.flags);
	free(seen.cpuinfo);
	return count;
}

void machine_findings_add(json_t *record, const char *root, int64_t watch_ns)
{
	struct finding findings[sizeof(checks) / sizeof(checks[0])];
	size_t count =
		machine_findings(root, watch_ns, findings, sizeof(findings) / sizeof(findings[0]));
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		if (findings[i].spoils && findings[i].level == FINDING_WARNING)
			json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "check",
							       findings[i].check, "value",
							       findings[i].value, "remedy",
							       findings[i].remedy));
	json_object_set_new(json_object_get(record, "informational"), "findings", array);
}
