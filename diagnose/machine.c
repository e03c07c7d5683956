#include "diagnose/machine.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/memory.h"
#include "diagnose/environment.h"
#include "diagnose/job.h"
#include "diagnose/sources.h"
#include "diagnose/topology.h"

/* The record under construction. */
struct record {
	const char *root;
	json_t *must, *should, *informational, *absent; /* borrowed from `whole` */
	json_t *whole;
};

/* Takes ownership of the value; NULL becomes null with its reason. */
static void put(struct record *record, json_t *section, const char *key, json_t *value,
		const char *reason)
{
	if (!value)
		json_object_set_new(record->absent, key, json_string(reason));
	json_object_set_new(section, key, value ? value : json_null());
}

/* Takes ownership of the text. JSON cannot hold text that is not UTF-8. */
static void put_text(struct record *record, json_t *section, const char *key, char *text,
		     const char *reason)
{
	put(record, section, key, text ? json_string(text) : NULL,
	    text ? "the text is not UTF-8" : reason);
	free(text);
}

static void put_bytes(struct record *record, json_t *section, const char *key, int64_t bytes,
		      const char *reason)
{
	put(record, section, key, bytes >= 0 ? json_integer(bytes) : NULL, reason);
}

/* A file whose whole content is the value, and why it may be missing. */
struct file_row {
	const char *key, *path, *reason;
	bool number;
};

static void put_files(struct record *record, json_t *section, const struct file_row *rows,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct file_row *row = &rows[i];
		struct error err = ERROR_INIT;
		int64_t value;

		if (row->number) {
			bool known = source_int(record->root, row->path, &value);
			put(record, section, row->key, known ? json_integer(value) : NULL,
			    row->reason);
			continue;
		}
		char *text = source_text(record->root, row->path, &err);
		/* A file that exists but cannot be read gets that as its reason. */
		bool there = !text && source_exists(record->root, row->path);
		put_text(record, section, row->key, text, there ? err.text : row->reason);
	}
}

static json_t *instruction_set(const char *cpuinfo)
{
	char *flags = cpuinfo ? source_field(cpuinfo, "flags") : NULL;
	json_t *list = NULL;
	char *cursor, *word;

	if (cpuinfo && !flags)
		flags = source_field(cpuinfo, "Features");
	if (!flags)
		return NULL;
	list = json_array();
	cursor = flags;
	while ((word = strsep(&cursor, " \t")))
		if (instruction_flag_matters(word))
			json_array_append_new(list, json_string(word));
	free(flags);
	return list;
}

/* Arm's /proc/cpuinfo has numbers instead of a model name. */
static char *model_of(const char *cpuinfo)
{
	char *model = cpuinfo ? source_field(cpuinfo, "model name") : NULL;

	if (!model && cpuinfo) {
		char *maker = source_field(cpuinfo, "CPU implementer");
		char *part = source_field(cpuinfo, "CPU part");

		if (maker && part)
			model = memory_printf("implementer %s part %s", maker, part);
		free(maker);
		free(part);
	}
	return model;
}

static void put_processor(struct record *record)
{
	static const struct {
		const char *key, *field;
	} fields[] = {{"cpu_vendor", "vendor_id"},
		      {"cpu_family", "cpu family"},
		      {"cpu_model_number", "model"},
		      {"cpu_stepping", "stepping"}};
	const char *lacks = "/proc/cpuinfo lacks it";
	char *cpuinfo = source_text(record->root, "/proc/cpuinfo", NULL);
	char *arch = source_text(record->root, "/proc/sys/kernel/arch", NULL);
	struct utsname names;

	if (!arch && uname(&names) == 0)
		arch = memory_strdup(names.machine);
	put_text(record, record->must, "architecture", arch, "uname failed");
	put_text(record, record->must, "cpu_model", model_of(cpuinfo), lacks);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		put_text(record, record->must, fields[i].key,
			 cpuinfo ? source_field(cpuinfo, fields[i].field) : NULL, lacks);
	put(record, record->must, "instruction_set", instruction_set(cpuinfo), lacks);
	put_text(record, record->should, "microcode",
		 cpuinfo ? source_field(cpuinfo, "microcode") : NULL, lacks);
	char *flags = cpuinfo ? source_field(cpuinfo, "flags") : NULL;
	put(record, record->should, "virtual_machine",
	    flags ? json_boolean(strstr(flags, "hypervisor") != NULL) : NULL, lacks);
	free(flags);
	free(cpuinfo);
}

static void put_topology(struct record *record)
{
	struct topology topology = {0};
	bool known = topology_read(record->root, &topology, NULL, 0);
	const struct {
		const char *key;
		int64_t value;
	} counts[] = {
		{"packages", topology.packages},
		{"cores", topology.cores},
		{"threads", topology.threads},
		{"numa_nodes", topology.numa_nodes},
		{"cores_usable", topology.usable_cores},
		{"threads_usable", topology.usable_threads},
		{"cache_l1d_bytes", topology.l1d_bytes},
		{"cache_l2_bytes", topology.l2_bytes},
		{"cache_l3_bytes", topology.l3_bytes},
	};
	double quota = source_cpu_quota(record->root);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		put(record, record->must, counts[i].key,
		    known && counts[i].value > 0 ? json_integer(counts[i].value) : NULL,
		    known ? "the kernel does not report it" : "hwloc cannot read the topology");
	put(record, record->must, "cpus_allowed", known ? json_string(topology.allowed) : NULL,
	    "hwloc cannot read the topology");
	put(record, record->must, "cpu_quota", quota > 0 ? json_real(quota) : NULL,
	    "no control group limits the processor time");
}

static void put_memory(struct record *record)
{
	const char *lacks = "/proc/meminfo lacks it";
	int64_t total = source_meminfo_bytes(record->root, "MemTotal");
	int64_t limit = source_memory_limit(record->root);

	/* Kernels reserve slightly different amounts, so whole GiB identify a machine and bytes do
	 * not. */
	put(record, record->must, "memory_gib",
	    total > 0 ? json_integer((json_int_t)llround((double)total / (1024.0 * 1024 * 1024)))
		      : NULL,
	    lacks);
	put_bytes(record, record->must, "memory_limit_bytes", limit,
		  "no control group limits the memory");
	put_bytes(record, record->informational, "memory_total_bytes", total, lacks);
	put_bytes(record, record->informational, "memory_available_bytes",
		  source_meminfo_bytes(record->root, "MemAvailable"), lacks);
	put_bytes(record, record->informational, "swap_total_bytes",
		  source_meminfo_bytes(record->root, "SwapTotal"), lacks);
	put_bytes(record, record->informational, "swap_free_bytes",
		  source_meminfo_bytes(record->root, "SwapFree"), lacks);
}

static const char gpu_folder[] = "/proc/driver/nvidia/gpus";

/* Returns the number of GPUs in the files of NVIDIA's driver; `out` gets the names of the first. */
static int gpus_in_files(const char *root, struct gpu out[GPUS_MAX])
{
	char(*names)[SOURCE_NAME_BYTES] = memory_alloc(sizeof(*names) * GPUS_MAX);
	size_t count = source_entries(root, gpu_folder, "", names, GPUS_MAX);

	for (size_t i = 0; i < count; i++) {
		char *path = memory_printf("%s/%s/information", gpu_folder, names[i]);
		char *text = source_text(root, path, NULL);
		char *model = text ? source_field(text, "Model") : NULL;

		snprintf(out[i].name, sizeof(out[i].name), "%s", model ? model : "unknown");
		free(model);
		free(text);
		free(path);
	}
	free(names);
	return (int)count;
}

void machine_gpus(const char *root, struct gpus *out)
{
	*out = *root ? (struct gpus){.count = 0} : *gpus_here();
	if (!out->answered)
		out->count = gpus_in_files(root, out->gpus);
}

/* The files of NVIDIA's driver come first, so that the hash of an old record stays; in some
 * containers only the driver's library knows. */
static void put_gpus(struct record *record)
{
	struct gpus gpus = {.count = 0};
	char *text = source_text(record->root, "/proc/driver/nvidia/version", NULL);
	char *version = text ? source_field(text, "NVRM version") : NULL;
	json_t *models = json_array();

	gpus.count = gpus_in_files(record->root, gpus.gpus);
	if (!gpus.count && !version) {
		machine_gpus(record->root, &gpus);
		version = *gpus.driver ? memory_strdup(gpus.driver) : NULL;
	}
	for (int i = 0; i < gpus.count; i++)
		json_array_append_new(models, json_string(gpus.gpus[i].name));
	json_object_set_new(record->must, "gpus", models);
	put_text(record, record->should, "nvidia_driver", version, "no NVIDIA driver is loaded");
	free(text);
}

static char *distribution(const char *root)
{
	char *text = source_text(root, "/etc/os-release", NULL);
	char *name = text ? source_field(text, "PRETTY_NAME") : NULL;
	size_t length = name ? strlen(name) : 0;

	if (length >= 2 && name[0] == '"' && name[length - 1] == '"') {
		memmove(name, name + 1, length - 2);
		name[length - 2] = '\0';
	}
	free(text);
	return name;
}

static void put_settings(struct record *record)
{
	static const char no_cpufreq[] = "no frequency control: a virtual machine, or no driver";
	static const struct file_row rows[] = {
		{"kernel", "/proc/sys/kernel/osrelease", "not in /proc", false},
		{"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", no_cpufreq,
		 false},
		{"frequency_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
		 no_cpufreq, false},
		{"frequency_max_khz", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
		 no_cpufreq, true},
		{"boost", "/sys/devices/system/cpu/cpufreq/boost", "no such switch here", true},
		{"intel_no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo",
		 "no such switch here", true},
		{"smt", "/sys/devices/system/cpu/smt/control", "the kernel does not report it",
		 false},
		{"clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		 "not in /sys", false},
		{"transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled",
		 "not in this kernel", false},
		{"address_randomisation", "/proc/sys/kernel/randomize_va_space", "not in /proc",
		 true},
		{"swappiness", "/proc/sys/vm/swappiness", "not in /proc", true},
	};
	char *line = source_text(record->root, "/proc/cmdline", NULL);
	const char *mitigations = line ? strstr(line, "mitigations=") : NULL;

	put_files(record, record->should, rows, sizeof(rows) / sizeof(rows[0]));
	put_text(record, record->should, "distribution", distribution(record->root),
		 "no /etc/os-release");
	json_object_set_new(record->should, "libc", json_string(gnu_get_libc_version()));
	json_object_set_new(record->should, "mitigations",
			    mitigations
				    ? json_stringn(mitigations + 12, strcspn(mitigations + 12, " "))
				    : json_string("default"));
	json_object_set_new(record->should, "container",
			    json_boolean(source_exists(record->root, "/.dockerenv") ||
					 source_exists(record->root, "/run/.containerenv")));
	json_object_set_new(record->should, "environment", environment_settings());
	put_text(record, record->informational, "command_line", line, "not in /proc");
}

static json_t *load_averages(const char *root)
{
	double averages[3];
	json_t *list = NULL;

	if (source_load_averages(root, averages)) {
		list = json_array();
		for (int i = 0; i < 3; i++)
			json_array_append_new(list, json_real(averages[i]));
	}
	return list;
}

static void put_moment(struct record *record)
{
	static const struct file_row rows[] = {
		{"host", "/proc/sys/kernel/hostname", "not in /proc", false},
		{"pressure_cpu", "/proc/pressure/cpu", "this kernel does not report pressure",
		 false},
		{"pressure_memory", "/proc/pressure/memory", "this kernel does not report pressure",
		 false},
		{"perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid", "not in /proc",
		 true},
	};
	struct cpu_time time;
	bool known = source_cpu_time(record->root, &time);
	char now[32];

	clock_format_utc(clock_wall_ns(), now, sizeof(now));
	json_object_set_new(record->informational, "recorded_at", json_string(now));
	json_object_set_new(record->informational, "prony", json_string(PRONY_VERSION));
	json_object_set_new(record->informational, "compiler", json_string(__VERSION__));
	put_files(record, record->informational, rows, sizeof(rows) / sizeof(rows[0]));
	put(record, record->informational, "load", load_averages(record->root),
	    "not in /proc/loadavg");
	put(record, record->informational, "steal_share",
	    known ? json_real((double)time.steal_ns / (double)time.total_ns) : NULL,
	    "not in /proc/stat");
	json_object_set_new(record->informational, "environment", environment_paths());
	job_add(record->informational, record->root);
}

static void put_sensors(struct record *record)
{
	struct instrument instruments[INSTRUMENT_COUNT];
	json_t *object = json_object();

	source_instruments(record->root, instruments);
	for (int i = 0; i < INSTRUMENT_COUNT; i++) {
		char *key = memory_printf("sensors.%s", instruments[i].name);

		json_object_set_new(object, instruments[i].name,
				    instruments[i].readable ? json_string(instruments[i].where)
							    : json_null());
		if (!instruments[i].readable)
			json_object_set_new(record->absent, key,
					    json_string(instruments[i].reason));
		free(key);
	}
	json_object_set_new(record->informational, "sensors", object);
}

/* Adds a section to the record; borrowed. */
static json_t *add_section(json_t *whole, const char *name)
{
	json_object_set_new(whole, name, json_object());
	return json_object_get(whole, name);
}

json_t *machine_record(const char *root)
{
	struct record record = {.root = root ? root : "", .whole = json_object()};

	record.must = add_section(record.whole, "must_match");
	record.should = add_section(record.whole, "should_match");
	record.informational = add_section(record.whole, "informational");
	record.absent = add_section(record.whole, "absent");
	put_processor(&record);
	put_topology(&record);
	put_memory(&record);
	put_gpus(&record);
	put_settings(&record);
	put_moment(&record);
	put_sensors(&record);
	return record.whole;
}

void machine_hash(const json_t *record, char hash[17])
{
	json_t *part = json_object();
	char hex[DIGEST_HEX_BYTES];

	json_object_set(part, "must_match", json_object_get(record, "must_match"));
	json_object_set(part, "should_match", json_object_get(record, "should_match"));
	char *text = json_dumps(part, JSON_COMPACT | JSON_SORT_KEYS);
	if (!text)
		memory_exhausted("the machine's record");
	digest_bytes(text, strlen(text), hex);
	memcpy(hash, hex, 16);
	hash[16] = '\0';
	free(text);
	json_decref(part);
}

int machine_cores(int *cpus, int capacity)
{
	struct topology topology;
	double quota = source_cpu_quota("");
	int cores = 1;

	if (topology_read("", &topology, cpus, capacity)) {
		cores = topology.usable_cores;
	} else if (capacity > 0) {
		cpus[0] = 0;
	}
	/* With part of a core the worker would be throttled in every period. */
	if (quota > 0 && quota < cores)
		cores = (int)quota;
	return cores > 0 ? cores : 1;
}
