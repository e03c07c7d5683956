/* Context switches of all threads of the worker's tree: those that waited, and those that were
 * taken off their processor for others. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

/* Each thread has a file. */
#define PERIOD_NS 1000000000

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	struct process_switches switches = {0};

	if (watched->guard > 0 && process_switches_add(watched->root_fd, watched->guard, &switches))
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/task/TID/status does not say");
	return false;
}

static void name_channels(const struct watched *watched, struct sensor_handle *handle)
{
	(void)watched;
	sensor_add_channel(handle, "voluntary");
	sensor_add_channel(handle, "involuntary");
}

/* A thread that ends takes what it counted with it: then the sum falls, or rises too little. */
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
	.unit = "1e-9", /* so that their rate is a number per second */
	.rate_unit = "/s",
	.kind = SERIES_COUNTER,
	.period_ns = PERIOD_NS,
	.probe = probe,
	.open = name_channels,
	.sample = sample,
};
