/* The clock of each processor as its frequency driver says it. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "sensors/sensor.h"

/* Once a second: some drivers interrupt the processor to read it. */
#define PERIOD_NS 1000000000

static int open_cpu(const struct watched *watched, size_t cpu)
{
	char path[96];
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/cpufreq/scaling_cur_freq", cpu);
	return process_open_file(watched->root_fd, path);
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		int fd = open_cpu(watched, (size_t)cpu);
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
	sensor_add_cpus(watched, handle);
	int *fds = memory_alloc(handle->channel_count * sizeof *fds);
	for (size_t i = 0; i < handle->channel_count; i++)
		fds[i] = open_cpu(watched, i);
	handle->state = fds;
}

/* In Hz from kHz; NaN for what is no number. */
static double read_hz(int fd)
{
	char buffer[32], *end;
	ssize_t got = fd < 0 ? -1 : pread(fd, buffer, sizeof buffer - 1, 0);
	if (got <= 0)
		return NAN;
	buffer[got] = '\0';
	long long khz = strtoll(buffer, &end, 10);
	return end == buffer || khz <= 0 ? NAN : (double)khz * 1e3;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	int *fds = handle->state;
	for (size_t i = 0; i < handle->channel_count; i++) {
		values[i] = read_hz(fds[i]);
		if (!isnan(values[i]))
			continue;
		/* Its processor may be off; when it comes back the file is another one. */
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = open_cpu(watched, i);
	}
}

static void close_all(struct sensor_handle *handle)
{
	int *fds = handle->state;
	for (size_t i = 0; i < handle->channel_count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
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
