/* Which sensors of power and temperature this machine has, and why the others are absent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/sources.h"

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

/* The first folder named prefix* whose file `name` holds a text that begins with one of `words`. */
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

/* Running Average Power Limit; AMD's counters appear under the same name. */
static void find_energy(const char *root, struct sensor *sensor)
{
	static const char *const package[] = {"package", NULL};
	char zone[96];

	if (!find_named(root, "/sys/class/powercap", "intel-rapl:", "name", package, zone,
			sizeof(zone))) {
		snprintf(sensor->reason, sizeof(sensor->reason),
			 is_virtual(root) ? "a virtual machine is not shown the host's counters"
					  : "no package zone in /sys/class/powercap");
		snprintf(sensor->remedy, sizeof(sensor->remedy),
			 is_virtual(root) ? "measure energy on the host itself"
					  : "load the kernel's module intel_rapl_msr, where the "
					    "processor has such counters");
		return;
	}
	snprintf(sensor->where, sizeof(sensor->where), "%s/energy_uj", zone);
	sensor->present = source_exists(root, sensor->where);
	sensor->readable = source_readable(root, sensor->where);
	if (sensor->readable)
		return;
	snprintf(sensor->reason, sizeof(sensor->reason), "only root may read %s", sensor->where);
	snprintf(sensor->remedy, sizeof(sensor->remedy), "as root: chmod a+r %s/*/energy_uj",
		 "/sys/class/powercap");
}

static void find_temperature(const char *root, struct sensor *sensor)
{
	static const char *const chips[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", NULL};
	static const char *const zones[] = {"x86_pkg_temp", "cpu", "soc", NULL};
	char folder[96];
	const char *file = "temp1_input";

	if (!find_named(root, "/sys/class/hwmon", "hwmon", "name", chips, folder, sizeof(folder))) {
		file = "temp";
		if (!find_named(root, "/sys/class/thermal", "thermal_zone", "type", zones, folder,
				sizeof(folder))) {
			snprintf(sensor->reason, sizeof(sensor->reason),
				 is_virtual(root)
					 ? "a virtual machine is not shown the host's sensors"
					 : "no processor's sensor in /sys/class/hwmon or "
					   "/sys/class/thermal");
			if (!is_virtual(root))
				snprintf(sensor->remedy, sizeof(sensor->remedy),
					 "load the kernel's module coretemp or k10temp");
			return;
		}
	}
	snprintf(sensor->where, sizeof(sensor->where), "%s/%s", folder, file);
	sensor->present = source_exists(root, sensor->where);
	sensor->readable = source_readable(root, sensor->where);
	if (!sensor->readable)
		snprintf(sensor->reason, sizeof(sensor->reason), "%s cannot be read",
			 sensor->where);
}

static void find_gpu(const char *root, struct sensor *sensor)
{
	static const char *const amd[] = {"0x1002", NULL};
	char folder[96];

	if (source_exists(root, "/proc/driver/nvidia/version"))
		snprintf(sensor->where, sizeof(sensor->where), "/proc/driver/nvidia/version");
	else if (find_named(root, "/sys/class/drm", "card", "device/vendor", amd, folder,
			    sizeof(folder)))
		snprintf(sensor->where, sizeof(sensor->where), "%s/device", folder);
	sensor->present = sensor->readable = sensor->where[0] != '\0';
	if (!sensor->present)
		snprintf(sensor->reason, sizeof(sensor->reason), "no GPU with a driver is here");
}

void source_sensors(const char *root, struct sensor out[SENSOR_COUNT])
{
	memset(out, 0, sizeof(out[0]) * SENSOR_COUNT);
	out[0].name = "cpu-energy";
	find_energy(root, &out[0]);
	out[1].name = "cpu-temperature";
	find_temperature(root, &out[1]);
	out[2].name = "gpu";
	find_gpu(root, &out[2]);
}
