/* Resident memory of the worker's process tree; shared pages count once per process. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->guard > 0 && process_rss_bytes(watched->root_fd, watched->guard) >= 0)
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/statm cannot be read");
	return false;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	double sum = NAN;

	(void)handle;
	for (int i = 0; i < watched->below_count; i++) {
		int64_t bytes = process_rss_bytes(watched->root_fd, watched->below[i]);
		if (bytes > 0) /* a zombie process has no memory */
			sum = (isnan(sum) ? 0 : sum) + (double)bytes;
	}
	values[0] = sum;
}

const struct sensor sensor_memory = {
	.name = "memory",
	.unit = "bytes",
	.rate_unit = "",
	.kind = SERIES_GAUGE,
	.period_ns = 250000000,
	.probe = probe,
	.channels = "rss",
	.sample = sample,
};
