/* CPU time of the worker's tree, by the processes' own clocks where they can be read. */
#include <stdio.h>

#include "sensors/sensor.h"

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->guard > 0 && process_cpu_ns(watched->root_fd, watched->guard, NULL) >= 0)
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/stat cannot be read");
	return false;
}

static void name_channels(const struct watched *watched, struct sensor_handle *handle)
{
	(void)watched;
	sensor_add_channel(handle, "tree");
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	(void)handle;
	values[0] = watched_tree_sum(watched, process_cpu_ns);
}

const struct sensor sensor_worker_cpu = {
	.name = "worker_cpu",
	.unit = "ns",
	.rate_unit = "cores",
	.kind = SERIES_COUNTER,
	.period_ns = 250000000,
	.probe = probe,
	.open = name_channels,
	.sample = sample,
};
