/* Time that the host of a virtual machine gave to others while this one wanted to run. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->times.all.known && watched->times.online > 0)
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/stat says nothing of processors");
	return false;
}

static void name_channels(const struct watched *watched, struct sensor_handle *handle)
{
	(void)watched;
	sensor_add_channel(handle, "steal");
}

/* Per processor, so that its rate is a share of the machine. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	const struct cpu_times *times = &watched->times;
	(void)handle;
	values[0] = times->all.known && times->online > 0
			    ? (double)times->all.steal_ns / times->online
			    : NAN;
}

const struct sensor sensor_steal = {
	.name = "steal",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.probe = probe,
	.open = name_channels,
	.sample = sample,
};
