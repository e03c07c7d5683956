/* Time in which a task waited for a processor, memory or a disk: the kernel's pressure stall
 * information (Documentation/accounting/psi.rst of Linux). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sensors/files.h"
#include "sensors/groups.h"
#include "sensors/sensor.h"

enum { RESOURCES = 3 };
static const char *const resources[RESOURCES] = {"cpu", "memory", "io"};

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in us. NaN when the kernel does not count. */
static double total_ns(int fd)
{
	char text[256], *end;

	if (file_reread(fd, text, sizeof text) <= 0 || strncmp(text, "some ", 5) != 0)
		return NAN;
	const char *total = strstr(text, " total=");
	const char *digits = total ? total + sizeof " total=" - 1 : "";
	long long us = strtoll(digits, &end, 10);
	return end == digits || us < 0 ? NAN : (double)us * 1e3;
}

/* Opens the file of the nearest control group that has one, otherwise the machine's. */
static int open_nearest(const struct watched *watched, const char *resource)
{
	struct group_folder *groups = memory_alloc(GROUP_FOLDERS_MAX * sizeof *groups);
	size_t count = group_folders(watched->root_fd, "cpu", groups, GROUP_FOLDERS_MAX);
	char path[GROUP_PATH_BYTES + 32];
	int fd = -1;

	for (size_t i = 0; i <= count && fd < 0; i++) {
		if (i < count && !groups[i].version_2)
			continue;
		snprintf(path, sizeof path, i < count ? "%s/%s.pressure" : "%s/%s",
			 i < count ? groups[i].path : "/proc/pressure", resource);
		fd = process_open_file(watched->root_fd, path);
		if (fd >= 0 && isnan(total_ns(fd))) {
			close(fd);
			fd = -1;
		}
	}
	free(groups);
	return fd;
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	for (int i = 0; i < RESOURCES; i++)
		if (file_opens(open_nearest(watched, resources[i])))
			return true;
	snprintf(reason, SERIES_REASON_BYTES, "this kernel does not report pressure");
	return false;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	for (int i = 0; i < RESOURCES; i++)
		sensor_add_file(handle, open_nearest(watched, resources[i]));
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	(void)watched;
	for (int i = 0; i < RESOURCES; i++)
		values[i] = total_ns(handle->fds[i]);
}

const struct sensor sensor_pressure = {
	.name = "pressure",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.channels = "cpu memory io",
	.probe = probe,
	.open = open_all,
	.sample = sample,
};
