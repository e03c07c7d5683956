/* Busy time of the machine that neither the worker's processes nor prony used. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

/* Own time and that of children that have ended; 0 for a process that is gone: whoever waited for
 * it has its time now. */
static int64_t used_ns(const struct watched *watched, pid_t pid)
{
	int64_t reaped = 0, own = process_cpu_ns(watched->root_fd, pid, &reaped);
	return own < 0 ? 0 : own + reaped;
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	if (!watched->times.all.known || watched->times.online == 0)
		snprintf(reason, SERIES_REASON_BYTES, "/proc/stat says nothing of processors");
	else if (watched->guard <= 0 ||
		 process_cpu_ns(watched->root_fd, watched->guard, NULL) < 0 ||
		 process_cpu_ns(watched->root_fd, watched->self, NULL) < 0)
		snprintf(reason, SERIES_REASON_BYTES, "/proc/PID/stat cannot be read");
	else
		return true;
	return false;
}

static void name_channels(const struct watched *watched, struct sensor_handle *handle)
{
	(void)watched;
	sensor_add_channel(handle, "foreign");
}

/* Per processor, so that its rate is a share of the machine. A balance: the kernel counts the one
 * in ticks and the others as they are, and a new process is known a second after it began. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	const struct cpu_times *times = &watched->times;
	(void)handle;
	values[0] = NAN;
	if (!times->all.known || times->online == 0)
		return;
	int64_t ours = used_ns(watched, watched->self) + used_ns(watched, watched->guard);
	for (int i = 0; i < watched->below_count; i++)
		ours += used_ns(watched, watched->below[i]);
	values[0] = (double)(times->all.busy_ns - ours) / times->online;
}

const struct sensor sensor_foreign = {
	.name = "foreign",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_BALANCE,
	.period_ns = 1000000000,
	.probe = probe,
	.open = name_channels,
	.sample = sample,
};
