/* Context switches of all threads in the worker's tree, voluntary and involuntary. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

/* Reading takes one file per thread, so do it once a second. */
#define PERIOD_NS 1000000000

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	struct process_switches switches = {0};

	if (watched->guard > 0 && process_switches_add(watched->root_fd, watched->guard, &switches))
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/task/TID/status does not report it");
	return false;
}

/* When a thread ends, its count is lost, so the sum may fall. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	struct process_switches switches = {0};
	bool known = false;

	(void)handle;
	for (int i = 0; i < watched->below_count; i++)
		known |= process_switches_add(watched->root_fd, watched->below[i], &switches);
	values[0] = known ? (double)switches.voluntary * 1e9 : NAN;
	values[1] = known ? (double)switches.involuntary * 1e9 : NAN;
}

const struct sensor sensor_switches = {
	.name = "switches",
	.unit = "1e-9", /* makes the rate a number per second */
	.rate_unit = "/s",
	.kind = SERIES_COUNTER,
	.period_ns = PERIOD_NS,
	.probe = probe,
	.channels = "voluntary involuntary",
	.sample = sample,
};
