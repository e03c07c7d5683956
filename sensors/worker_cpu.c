/* CPU time of the worker's tree, by the processes' own clocks where they can be read. */
#include <math.h>
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

/* A process' own time and that of its children that have ended; the guard waits for those whose
 * parent did not. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	int64_t reaped = 0, sum = 0;

	(void)handle;
	values[0] = NAN;
	if (watched->below_count == 0 ||
	    process_cpu_ns(watched->root_fd, watched->guard, &reaped) < 0)
		return;
	sum = reaped;
	for (int i = 0; i < watched->below_count; i++) {
		int64_t own = process_cpu_ns(watched->root_fd, watched->below[i], &reaped);
		/* The worker itself is gone; a child that is has its time with who waited for it.
		 */
		if (own < 0 && i == 0)
			return;
		sum += own < 0 ? 0 : own + reaped;
	}
	values[0] = (double)sum;
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
