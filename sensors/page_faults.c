/* Page faults of the worker's process tree. A framework that returns memory to the system after
 * each step gets it back page by page, each page costing a trap and 4 KiB of zeroing. */
#include "sensors/sensor.h"

/* Makes a value per ns into faults per second. */
#define NANO_PER_FAULT 1e9

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
	.probe = sensor_probe_stat,
	.channels = "tree",
	.sample = sample,
};
