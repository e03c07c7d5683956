/* Page faults of the worker's tree: a framework that gives its memory back to the system after each
 * step gets it again page by page, each a trap and 4 KiB of zeros. */
#include <stdio.h>

#include "sensors/sensor.h"

/* So that a value per ns is faults per second. */
#define NANO_PER_FAULT 1e9

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->guard > 0 && process_page_faults(watched->root_fd, watched->guard, NULL) >= 0)
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
	values[0] = NANO_PER_FAULT * watched_tree_sum(watched, process_page_faults);
}

const struct sensor sensor_page_faults = {
	.name = "page_faults",
	.unit = "1e-9",
	.rate_unit = "1/s",
	.kind = SERIES_COUNTER,
	.period_ns = 250000000,
	.probe = probe,
	.open = name_channels,
	.sample = sample,
};
