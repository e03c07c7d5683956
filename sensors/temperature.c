/* Temperature of the processor packages (Documentation/hwmon/sysfs-interface.rst of Linux). */
#include "sensors/temperature.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sensors/files.h"
#include "sensors/sensor.h"

/* Drivers whose first input is the package temperature. Without them, thermal zones of the kernel
 * (Arm). */
static const struct source {
	const char *folder, *name, *input;
	const char *const names[5]; /* name prefix */
} sources[] = {
	{"/sys/class/hwmon/hwmon",
	 "name",
	 "temp1_input",
	 {"coretemp", "k10temp", "zenpower", "cpu_thermal"}},
	{"/sys/class/thermal/thermal_zone", "type", "temp", {"x86_pkg_temp", "cpu", "soc"}},
};

static bool is_named(const struct source *source, const char *name)
{
	for (size_t i = 0; i < sizeof source->names / sizeof source->names[0]; i++)
		if (source->names[i] && !strncmp(name, source->names[i], strlen(source->names[i])))
			return true;
	return false;
}

size_t temperature_files(int root_fd, char (*out)[THERMOMETER_BYTES], size_t capacity)
{
	size_t count = 0;

	for (size_t s = 0; s < sizeof sources / sizeof sources[0] && count == 0; s++)
		for (int i = 0; i < THERMOMETERS_MAX && count < capacity; i++) {
			char path[THERMOMETER_BYTES], name[64];
			snprintf(path, sizeof path, "%s%d/%s", sources[s].folder, i,
				 sources[s].name);
			if (process_read_file(root_fd, path, name, sizeof name) > 0 &&
			    is_named(&sources[s], name))
				snprintf(out[count++], THERMOMETER_BYTES, "%s%d/%s",
					 sources[s].folder, i, sources[s].input);
		}
	return count;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	char paths[THERMOMETERS_MAX][THERMOMETER_BYTES];
	size_t count = temperature_files(watched->root_fd, paths, THERMOMETERS_MAX);

	for (size_t i = 0; i < count; i++) {
		char name[SERIES_WORD_BYTES];
		int fd = process_open_file(watched->root_fd, paths[i]);
		if (fd < 0)
			continue;
		snprintf(name, sizeof name, "package-%d", (int)handle->fd_count);
		sensor_add_channel(handle, name);
		sensor_add_file(handle, fd);
	}
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	char paths[THERMOMETERS_MAX][THERMOMETER_BYTES];
	size_t count = temperature_files(watched->root_fd, paths, THERMOMETERS_MAX);

	for (size_t i = 0; i < count; i++)
		if (file_opens(process_open_file(watched->root_fd, paths[i])))
			return true;
	snprintf(reason, SERIES_REASON_BYTES, "/sys has no temperature sensor of the processor");
	return false;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	(void)watched;
	for (size_t i = 0; i < handle->fd_count; i++) {
		int64_t millidegrees = file_number(handle->fds[i]);
		values[i] = millidegrees > 0 ? (double)millidegrees * 1e-3 : NAN;
	}
}

const struct sensor sensor_temperature = {
	.name = "temperature",
	.unit = "degC",
	.rate_unit = "",
	.kind = SERIES_GAUGE,
	.period_ns = 1000000000,
	.probe = probe,
	.open = open_all,
	.sample = sample,
};
