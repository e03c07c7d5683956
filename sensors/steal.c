/* Time in which the host of a virtual machine ran others while this machine wanted to run. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	struct cpu_time time;
	int64_t beside;
	int count;

	if (watched_own_time(watched, &time, &count, &beside))
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/stat does not list processors");
	return false;
}

/* Per processor of the worker, so that the rate is a share of their time. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	struct cpu_time own;
	int64_t beside;
	int count;

	(void)handle;
	values[0] = watched_own_time(watched, &own, &count, &beside) ? (double)own.steal_ns / count
								     : NAN;
}

const struct sensor sensor_steal = {
	.name = "steal",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.probe = probe,
	.channels = "cores",
	.sample = sample,
};
