/* Clock frequencies of the worker's processors, as their frequency driver reports them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "sensors/files.h"
#include "sensors/sensor.h"

/* Once a second and only for these processors: some drivers interrupt a processor to read it. */
#define PERIOD_NS 1000000000

/* A channel: a processor and its file; -1 while the file cannot be opened. */
struct clock {
	int cpu, fd;
};

static int open_cpu(const struct watched *watched, int cpu)
{
	char path[96];
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
	return process_open_file(watched->root_fd, path);
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		int fd = watched_owns(watched, cpu) ? open_cpu(watched, cpu) : -1;
		if (fd < 0)
			continue;
		close(fd);
		return true;
	}
	snprintf(reason, SERIES_REASON_BYTES,
		 "no frequency control here: a virtual machine, or no driver for it");
	return false;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	struct clock *clocks = memory_alloc((size_t)watched->times.count * sizeof *clocks);

	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		char name[SERIES_WORD_BYTES];
		if (!watched_owns(watched, cpu))
			continue;
		snprintf(name, sizeof name, "cpu%d", cpu);
		clocks[handle->channel_count] = (struct clock){cpu, open_cpu(watched, cpu)};
		sensor_add_channel(handle, name);
	}
	handle->state = clocks;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	struct clock *clocks = handle->state;
	for (size_t i = 0; i < handle->channel_count; i++) {
		int64_t khz = file_number(clocks[i].fd);
		values[i] = khz > 0 ? (double)khz * 1e3 : NAN;
		if (khz > 0)
			continue;
		/* The processor may be offline; when it returns its file is a new one. */
		if (clocks[i].fd >= 0)
			close(clocks[i].fd);
		clocks[i].fd = open_cpu(watched, clocks[i].cpu);
	}
}

static void close_all(struct sensor_handle *handle)
{
	struct clock *clocks = handle->state;
	for (size_t i = 0; i < handle->channel_count; i++)
		if (clocks[i].fd >= 0)
			close(clocks[i].fd);
	free(clocks);
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
	.close = close_all,
};
