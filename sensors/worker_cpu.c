/* CPU time of the worker's tree, from the processes' own clocks when they can be read. */
#include "sensors/sensor.h"

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
	.probe = sensor_probe_stat,
	.channels = "tree",
	.sample = sample,
};
