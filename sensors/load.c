/* The load average: running and waiting processes, smoothed over a minute by the kernel. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	double averages[3];
	if (load_averages_read(watched->root_fd, averages))
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/loadavg cannot be read");
	return false;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	double averages[3];
	(void)handle;
	values[0] = load_averages_read(watched->root_fd, averages) ? averages[0] : NAN;
}

const struct sensor sensor_load = {
	.name = "load",
	.unit = "",
	.rate_unit = "",
	.kind = SERIES_GAUGE,
	.period_ns = 1000000000,
	.probe = probe,
	.channels = "1min",
	.sample = sample,
};
