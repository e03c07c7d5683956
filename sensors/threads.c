/* Number of threads in the worker's tree and of processors that they run on. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

/* Reading takes one file per thread, so do it twice a second. */
#define PERIOD_NS 500000000

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	struct process_threads threads = {0};

	if (watched->guard > 0 && process_threads_add(watched->root_fd, watched->guard, &threads) &&
	    threads.alive > 0)
		return true;
	snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/task cannot be read");
	return false;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	struct process_threads threads = {0};

	(void)handle;
	for (int i = 0; i < watched->below_count; i++)
		process_threads_add(watched->root_fd, watched->below[i], &threads);
	int processors = process_threads_processors(&threads);
	values[0] = threads.alive > 0 ? (double)threads.alive : NAN;
	/* All threads wait: their processors are unknown. */
	values[1] = processors > 0 ? (double)processors : NAN;
}

const struct sensor sensor_threads = {
	.name = "threads",
	.unit = "",
	.rate_unit = "",
	.kind = SERIES_GAUGE,
	.period_ns = PERIOD_NS,
	.probe = probe,
	.channels = "alive processors",
	.sample = sample,
};
