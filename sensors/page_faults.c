/* Page faults of the worker's tree: a framework that gives its memory back to the system after each
 * step gets it again page by page, each a trap and 4 KiB of zeros. */
#include "sensors/sensor.h"

/* So that a value per ns is faults per second. */
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
	.open = sensor_add_tree,
	.sample = sample,
};
