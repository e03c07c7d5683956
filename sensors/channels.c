/* Helpers that several sensors share: channel names and probing. */
#include <stdio.h>

#include "sensors/sensor.h"

void sensor_add_channel(struct sensor_handle *handle, const char *name)
{
	if (handle->channel_count < SENSOR_CHANNELS_MAX)
		snprintf(handle->channels[handle->channel_count++], SERIES_WORD_BYTES, "%s", name);
}

bool sensor_probe_stat(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->guard > 0 && process_cpu_ns(watched->root_fd, watched->guard, NULL) >= 0)
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/stat cannot be read");
	return false;
}

void sensor_add_tree(const struct watched *watched, struct sensor_handle *handle)
{
	(void)watched;
	sensor_add_channel(handle, "tree");
}

void sensor_add_cpus(const struct watched *watched, struct sensor_handle *handle)
{
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		char name[SERIES_WORD_BYTES];
		snprintf(name, sizeof name, "cpu%d", cpu);
		sensor_add_channel(handle, name);
	}
}
