/* Time in which the worker's processors were throttled because they or their package were too hot
 * (thermal_throttle of x86; Documentation/ABI/testing/sysfs-devices-system-cpu of Linux). */
#include <math.h>
#include <stdio.h>

#include "sensors/files.h"
#include "sensors/sensor.h"

enum { CAUSES = 2 };
static const char *const causes[CAUSES] = {"core", "package"};

static int open_counter(const struct watched *watched, int cpu, int cause)
{
	char path[128];

	snprintf(path, sizeof path,
		 "/sys/devices/system/cpu/cpu%d/thermal_throttle/%s_throttle_total_time_ms", cpu,
		 causes[cause]);
	return process_open_file(watched->root_fd, path);
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	for (int cpu = 0; cpu < watched->times.count; cpu++)
		if (watched_owns(watched, cpu) && file_opens(open_counter(watched, cpu, 0)))
			return true;
	snprintf(reason, SERIES_REASON_BYTES, "no thermal_throttle in /sys");
	return false;
}

/* One file per processor of the worker and cause. */
static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	for (int cpu = 0; cpu < watched->times.count; cpu++)
		for (int cause = 0; cause < CAUSES && watched_owns(watched, cpu); cause++)
			sensor_add_file(handle, open_counter(watched, cpu, cause));
}

/* Per processor, so that the rate is a share of their time; NaN when one of them has no value. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	size_t processors = handle->fd_count / CAUSES;

	(void)watched;
	for (size_t cause = 0; cause < CAUSES; cause++) {
		values[cause] = processors > 0 ? 0 : NAN;
		for (size_t i = 0; i < processors; i++) {
			int64_t ms = file_number(handle->fds[i * CAUSES + cause]);
			values[cause] += ms < 0 ? NAN : (double)ms * 1e6 / (double)processors;
		}
	}
}

const struct sensor sensor_thermal = {
	.name = "thermal",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.channels = "core package",
	.probe = probe,
	.open = open_all,
	.sample = sample,
};
