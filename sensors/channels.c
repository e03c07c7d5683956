/* Opens and closes sensors; names their channels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sensors/sensor.h"

void sensor_add_channel(struct sensor_handle *handle, const char *name)
{
	if (handle->channel_count < SENSOR_CHANNELS_MAX)
		snprintf(handle->channels[handle->channel_count++], SERIES_WORD_BYTES, "%s", name);
}

void sensor_add_file(struct sensor_handle *handle, int fd)
{
	handle->fds = memory_realloc(handle->fds, (handle->fd_count + 1) * sizeof *handle->fds);
	handle->fds[handle->fd_count++] = fd;
}

void sensor_open(const struct sensor *sensor, const struct watched *watched,
		 struct sensor_handle *handle)
{
	char words[64], *rest = words, *word;

	*handle = (struct sensor_handle){
		.channels = memory_alloc(SENSOR_CHANNELS_MAX * sizeof *handle->channels)};
	snprintf(words, sizeof words, "%s", sensor->channels ? sensor->channels : "");
	while (*words && (word = strsep(&rest, " ")))
		sensor_add_channel(handle, word);
	if (sensor->open)
		sensor->open(watched, handle);
}

void sensor_close(const struct sensor *sensor, struct sensor_handle *handle)
{
	if (sensor->close)
		sensor->close(handle);
	for (size_t i = 0; i < handle->fd_count; i++)
		if (handle->fds[i] >= 0)
			close(handle->fds[i]);
	free(handle->fds);
	free(handle->channels);
}

bool sensor_probe_stat(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->guard > 0 && process_cpu_ns(watched->root_fd, watched->guard, NULL) >= 0)
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/stat cannot be read");
	return false;
}

void sensor_add_cpus(const struct watched *watched, struct sensor_handle *handle)
{
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		char name[SERIES_WORD_BYTES];
		snprintf(name, sizeof name, "cpu%d", cpu);
		sensor_add_channel(handle, name);
	}
}
