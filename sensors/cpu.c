/* Busy time of each processor. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->times.all.known && watched->times.count > 0)
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/stat does not list processors");
	return false;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	for (size_t i = 0; i < handle->channel_count; i++) {
		const struct cpu_time *time = &watched->times.cpus[i];
		values[i] = time->known ? (double)time->busy_ns : NAN;
	}
}

const struct sensor sensor_cpu = {
	.name = "cpu",
	.unit = "ns",
	.rate_unit = "cores",
	.kind = SERIES_COUNTER,
	.period_ns = 250000000,
	.probe = probe,
	.open = sensor_add_cpus,
	.sample = sample,
};
