/* Busy time of processors not caused by the worker or prony. */
#include <math.h>
#include <stdio.h>

#include "sensors/sensor.h"

/* When both hardware threads of a core are busy, each gets about half of the core. */
#define BESIDE_WEIGHT 0.5

/* Time of the process and its ended children. 0 for a process that has ended: its parent has its
 * time now. */
static int64_t used_ns(const struct watched *watched, pid_t pid)
{
	int64_t reaped = 0, own = process_cpu_ns(watched->root_fd, pid, &reaped);
	return own < 0 ? 0 : own + reaped;
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	struct cpu_time time;
	int64_t beside;
	int count;

	if (!watched_own_time(watched, &time, &count, &beside))
		snprintf(reason, SERIES_REASON_BYTES, "/proc/stat does not list processors");
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
	struct cpu_time time;
	int64_t beside;
	int count;

	sensor_add_channel(handle, "cores");
	if (watched_own_time(watched, &time, &count, &beside) && count < watched->times.online)
		sensor_add_channel(handle, "elsewhere");
}

/* Values are per processor, so that the rate is a share of their time, in two channels: the
 * processors that the worker is bound to, and all others. The worker's time is subtracted on its
 * own processors. prony is not bound, and its little time is divided among all processors, unless
 * it loads the worker's batches, which happens on the worker's. This is a balance: the kernel
 * counts processors in ticks but processes exactly, and a new process is noticed up to a second
 * late. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	const struct cpu_times *times = &watched->times;
	struct cpu_time own;
	int64_t beside;
	int count;

	for (size_t i = 0; i < handle->channel_count; i++)
		values[i] = NAN;
	if (!watched_own_time(watched, &own, &count, &beside))
		return;
	int64_t worker = used_ns(watched, watched->guard);
	for (int i = 0; i < watched->below_count; i++)
		worker += used_ns(watched, watched->below[i]);
	int64_t prony = used_ns(watched, watched->self);
	double each = watched->cores.prony_too ? 0 : (double)prony / times->online;
	worker += watched->cores.prony_too ? prony : 0;
	values[0] =
		((double)(own.busy_ns - worker) + BESIDE_WEIGHT * (double)beside) / count - each;
	if (handle->channel_count > 1 && times->online > count)
		values[1] =
			(double)(times->all.busy_ns - own.busy_ns) / (times->online - count) - each;
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
