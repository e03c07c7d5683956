/* Clock frequencies of the worker's processors, as their frequency driver reports them. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "sensors/files.h"
#include "sensors/sensor.h"

/* Once a second and only for these processors: some drivers interrupt a processor to read it. */
#define PERIOD_NS 1000000000

static int open_cpu(const struct watched *watched, int cpu)
{
	char path[96];
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
	return process_open_file(watched->root_fd, path);
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	for (int cpu = 0; cpu < watched->times.count; cpu++)
		if (watched_owns(watched, cpu) && file_opens(open_cpu(watched, cpu)))
			return true;
	snprintf(reason, SERIES_REASON_BYTES,
		 "no frequency control: a virtual machine, or no driver");
	return false;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		char name[SERIES_WORD_BYTES];
		if (!watched_owns(watched, cpu))
			continue;
		snprintf(name, sizeof name, "cpu%d", cpu);
		sensor_add_channel(handle, name);
		sensor_add_file(handle, open_cpu(watched, cpu));
	}
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	size_t i = 0;

	for (int cpu = 0; cpu < CPUS_MAX && i < handle->fd_count; cpu++) {
		if (!watched_owns(watched, cpu))
			continue;
		int *fd = &handle->fds[i];
		int64_t khz = file_number(*fd);
		values[i++] = khz > 0 ? (double)khz * 1e3 : NAN;
		if (khz > 0)
			continue;
		/* The processor may be offline; when it returns its file is a new one. */
		if (*fd >= 0)
			close(*fd);
		*fd = open_cpu(watched, cpu);
	}
}

const struct sensor sensor_frequency = {
	.name = "frequency",
	.unit = "Hz",
	.rate_unit = "",
	.kind = SERIES_GAUGE,
	.period_ns = PERIOD_NS,
	.probe = probe,
	.open = open_all,
	.sample = sample,
};
