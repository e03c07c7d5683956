/* Time in which a control group throttled the worker because its CPU quota was used up (cpu.stat of
 * cgroups, versions 1 and 2). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "sensors/files.h"
#include "sensors/groups.h"
#include "sensors/sensor.h"

/* Summed over the throttled processors. Version 2 counts us, version 1 ns. */
static double throttled_ns(int fd)
{
	char text[512];

	if (file_reread(fd, text, sizeof text) <= 0)
		return NAN;
	int64_t us = text_number(text, "throttled_usec");
	int64_t ns = text_number(text, "throttled_time");
	return us >= 0 ? (double)us * 1e3 : ns >= 0 ? (double)ns : NAN;
}

/* Opens the counters of the groups that have a quota; returns their number. A group counts only its
 * own throttling, not that of its parents, so read all groups with a quota. */
static size_t open_counters(const struct watched *watched, int fds[GROUP_FOLDERS_MAX])
{
	struct group_folder *groups = memory_alloc(GROUP_FOLDERS_MAX * sizeof *groups);
	size_t count = group_folders(watched->root_fd, "cpu", groups, GROUP_FOLDERS_MAX), found = 0;
	char path[GROUP_PATH_BYTES + 32];

	for (size_t i = 0; i < count; i++) {
		if (!(group_cpu_quota(watched->root_fd, &groups[i]) > 0))
			continue;
		snprintf(path, sizeof path, "%s/cpu.stat", groups[i].path);
		fds[found] = process_open_file(watched->root_fd, path);
		found += fds[found] >= 0;
	}
	free(groups);
	return found;
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	int fds[GROUP_FOLDERS_MAX];
	size_t count = open_counters(watched, fds);

	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	if (count == 0)
		snprintf(reason, SERIES_REASON_BYTES,
			 "no control group has a quota of processor time");
	return count > 0;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	int fds[GROUP_FOLDERS_MAX];
	size_t count = open_counters(watched, fds);

	for (size_t i = 0; i < count; i++)
		sensor_add_file(handle, fds[i]);
}

/* Per processor of the worker, so that the rate is a share of their time. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	int processors = watched->cores.count > 0 ? watched->cores.count : watched->times.online;
	double sum = 0;

	for (size_t i = 0; i < handle->fd_count; i++)
		sum += throttled_ns(handle->fds[i]);
	values[0] = processors > 0 ? sum / processors : NAN;
}

const struct sensor sensor_quota = {
	.name = "quota",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.channels = "throttled",
	.probe = probe,
	.open = open_all,
	.sample = sample,
};
