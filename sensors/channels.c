/* The channels of a sensor, as its open names them. */
#include <stdio.h>

#include "sensors/sensor.h"

void sensor_add_channel(struct sensor_handle *handle, const char *name)
{
	if (handle->channel_count < SENSOR_CHANNELS_MAX)
		snprintf(handle->channels[handle->channel_count++], SERIES_WORD_BYTES, "%s", name);
}

void sensor_add_cpus(const struct watched *watched, struct sensor_handle *handle)
{
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		char name[SERIES_WORD_BYTES];
		snprintf(name, sizeof name, "cpu%d", cpu);
		sensor_add_channel(handle, name);
	}
}
