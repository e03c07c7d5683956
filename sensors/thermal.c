/* Time in which the worker's processors were throttled because they or their package were too hot
 * (thermal_throttle of x86; Documentation/ABI/testing/sysfs-devices-system-cpu of Linux). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "sensors/files.h"
#include "sensors/sensor.h"

enum { CAUSES = 2 };
static const char *const causes[CAUSES] = {"core", "package"};

/* One file per processor of the worker and cause; -1 when it does not exist. */
struct counters {
	int count;
	int (*fds)[CAUSES];
};

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
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		int fd = watched_owns(watched, cpu) ? open_counter(watched, cpu, 0) : -1;
		if (fd < 0)
			continue;
		close(fd);
		return true;
	}
	snprintf(reason, SERIES_REASON_BYTES, "no thermal_throttle in /sys");
	return false;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	struct counters *counters = memory_alloc(sizeof *counters);

	*counters = (struct counters){
		.fds = memory_alloc((size_t)watched->times.count * sizeof *counters->fds)};
	for (int cpu = 0; cpu < watched->times.count; cpu++) {
		if (!watched_owns(watched, cpu))
			continue;
		for (int cause = 0; cause < CAUSES; cause++)
			counters->fds[counters->count][cause] = open_counter(watched, cpu, cause);
		counters->count++;
	}
	for (int cause = 0; cause < CAUSES; cause++)
		sensor_add_channel(handle, causes[cause]);
	handle->state = counters;
}

/* Per processor, so that the rate is a share of their time; NaN when one of them has no value. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	const struct counters *counters = handle->state;

	(void)watched;
	for (int cause = 0; cause < CAUSES; cause++) {
		values[cause] = counters->count > 0 ? 0 : NAN;
		for (int i = 0; i < counters->count; i++) {
			int64_t ms = file_number(counters->fds[i][cause]);
			values[cause] += ms < 0 ? NAN : (double)ms * 1e6 / counters->count;
		}
	}
}

static void close_all(struct sensor_handle *handle)
{
	struct counters *counters = handle->state;

	for (int i = 0; i < counters->count; i++)
		for (int cause = 0; cause < CAUSES; cause++)
			if (counters->fds[i][cause] >= 0)
				close(counters->fds[i][cause]);
	free(counters->fds);
	free(counters);
}

const struct sensor sensor_thermal = {
	.name = "thermal",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.probe = probe,
	.open = open_all,
	.sample = sample,
	.close = close_all,
};
