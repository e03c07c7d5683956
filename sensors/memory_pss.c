/* Memory of the worker's process tree, with shared pages divided among the processes that share
 * them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/sensor.h"

/* Reading it walks the page tables and locks the address space meanwhile (proc(5)), so never do it
 * in a window, and only once a second outside. */
#define PERIOD_NS 1000000000

/* The line "Pss:   123 kB" of /proc/PID/smaps_rollup; NaN when it is absent or not permitted. */
static double pss_bytes(int root_fd, pid_t pid)
{
	char path[64], buffer[2048];
	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	if (process_read_file(root_fd, path, buffer, sizeof buffer) <= 0)
		return NAN;
	const char *line = strstr(buffer, "\nPss:");
	char *end;
	long long kib = line ? strtoll(line + 5, &end, 10) : -1;
	return kib < 0 || end == line + 5 ? NAN : (double)kib * 1024;
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (watched->guard > 0 && !isnan(pss_bytes(watched->root_fd, watched->guard)))
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/smaps_rollup cannot be read");
	return false;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	(void)handle;
	values[0] = NAN;
	for (int i = 0; i < watched->below_count; i++) {
		double bytes = pss_bytes(watched->root_fd, watched->below[i]);
		if (bytes > 0)
			values[0] = (isnan(values[0]) ? 0 : values[0]) + bytes;
	}
}

const struct sensor sensor_memory_pss = {
	.name = "memory_pss",
	.unit = "bytes",
	.rate_unit = "",
	.kind = SERIES_GAUGE,
	.period_ns = PERIOD_NS,
	.outside_windows = true,
	.probe = probe,
	.channels = "pss",
	.sample = sample,
};
