/* Which power and temperature sensors this machine has, and why others are absent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/sources.h"
#include "sensors/gpu_instrument.h"
#include "sensors/temperature.h"

enum { ENTRIES_MAX = 128 };

static bool is_virtual(const char *root)
{
	char *text = source_text(root, "/proc/cpuinfo", NULL);
	char *flags = text ? source_field(text, "flags") : NULL;
	bool is = flags && strstr(flags, "hypervisor");

	free(flags);
	free(text);
	return is;
}

/* The first folder prefix* whose file `name` begins with one of `words`. */
static bool find_named(const char *root, const char *folder, const char *prefix, const char *name,
		       const char *const *words, char *out, size_t out_bytes)
{
	char(*names)[SOURCE_NAME_BYTES] = memory_alloc(sizeof(*names) * ENTRIES_MAX);
	size_t count = source_entries(root, folder, prefix, names, ENTRIES_MAX);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		char *path = memory_printf("%s/%s/%s", folder, names[i], name);
		char *text = source_text(root, path, NULL);

		for (const char *const *word = words; text && *word && !found; word++)
			found = strncmp(text, *word, strlen(*word)) == 0;
		if (found)
			snprintf(out, out_bytes, "%s/%s", folder, names[i]);
		free(text);
		free(path);
	}
	free(names);
	return found;
}

/* Running Average Power Limit; AMD's counters have the same name. */
static void find_energy(const char *root, struct instrument *instrument)
{
	static const char *const package[] = {"package", NULL};
	char zone[96];

	if (!find_named(root, "/sys/class/powercap", "intel-rapl:", "name", package, zone,
			sizeof(zone))) {
		snprintf(instrument->reason, sizeof(instrument->reason),
			 is_virtual(root) ? "not visible in a virtual machine"
					  : "/sys/class/powercap has no package zone");
		snprintf(instrument->remedy, sizeof(instrument->remedy),
			 is_virtual(root) ? "measure energy on the host itself"
					  : "load the kernel module intel_rapl_msr if the "
					    "processor has energy counters");
		return;
	}
	snprintf(instrument->where, sizeof(instrument->where), "%s/energy_uj", zone);
	instrument->present = source_exists(root, instrument->where);
	instrument->readable = source_readable(root, instrument->where);
	if (instrument->readable)
		return;
	snprintf(instrument->reason, sizeof(instrument->reason), "only root may read %s",
		 instrument->where);
	snprintf(instrument->remedy, sizeof(instrument->remedy),
		 "as root: chmod a+r %s/*/energy_uj", "/sys/class/powercap");
}

static void find_temperature(const char *root, struct instrument *instrument)
{
	char paths[1][THERMOMETER_BYTES];
	int root_fd = source_open_root(root);
	size_t count = temperature_files(root_fd, paths, 1);

	source_close_root(root_fd);
	if (count == 0) {
		snprintf(instrument->reason, sizeof(instrument->reason),
			 is_virtual(root) ? "not visible in a virtual machine"
					  : "/sys/class/hwmon and /sys/class/thermal have no "
					    "processor sensor");
		if (!is_virtual(root))
			snprintf(instrument->remedy, sizeof(instrument->remedy),
				 "load the kernel module coretemp or k10temp");
		return;
	}
	snprintf(instrument->where, sizeof(instrument->where), "%s", paths[0]);
	instrument->present = source_exists(root, instrument->where);
	instrument->readable = source_readable(root, instrument->where);
	if (!instrument->readable)
		snprintf(instrument->reason, sizeof(instrument->reason), "%s cannot be read",
			 instrument->where);
}

static void find_gpu(const char *root, struct instrument *instrument)
{
	static const char *const amd[] = {"0x1002", NULL};
	char folder[96];

	/* A recorded machine has no library to ask. */
	if (!*root && gpu_instrument(instrument->where, sizeof(instrument->where),
				     instrument->reason, sizeof(instrument->reason))) {
		instrument->present = instrument->readable = true;
		return;
	}
	if (source_exists(root, "/proc/driver/nvidia/version"))
		snprintf(instrument->where, sizeof(instrument->where),
			 "/proc/driver/nvidia/version");
	else if (find_named(root, "/sys/class/drm", "card", "device/vendor", amd, folder,
			    sizeof(folder)))
		snprintf(instrument->where, sizeof(instrument->where), "%s/device", folder);
	instrument->present = instrument->where[0] != '\0';
	instrument->readable = instrument->present && *root;
	if (!instrument->present)
		snprintf(instrument->reason, sizeof(instrument->reason),
			 "no GPU with a loaded driver");
	else if (!*root)
		snprintf(instrument->remedy, sizeof(instrument->remedy),
			 "install the driver's libnvidia-ml.so.1; to a container, give the "
			 "driver's capability utility");
}

void source_instruments(const char *root, struct instrument out[INSTRUMENT_COUNT])
{
	memset(out, 0, sizeof(out[0]) * INSTRUMENT_COUNT);
	out[0].name = "cpu-energy";
	find_energy(root, &out[0]);
	out[1].name = "cpu-temperature";
	find_temperature(root, &out[1]);
	out[2].name = "gpu";
	find_gpu(root, &out[2]);
}
