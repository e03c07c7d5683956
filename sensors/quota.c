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

/* The groups that have a quota, and their counters. */
struct throttles {
	size_t count;
	int processors; /* processors of the worker */
	struct {
		int fd;
		bool version_2;
	} rows[GROUP_FOLDERS_MAX];
};

/* Summed over the throttled processors. Version 2 counts us, version 1 ns. */
static double throttled_ns(int fd, bool version_2)
{
	char text[512];
	int64_t value = file_reread(fd, text, sizeof text) <= 0 ? -1
			: version_2 ? text_number(text, "throttled_usec")
				    : text_number(text, "throttled_time");

	return value < 0 ? NAN : (double)value * (version_2 ? 1e3 : 1);
}

/*
 * A group counts only its own throttling, not that of its parents, so read all groups with a quota.
 */
static void find_throttles(const struct watched *watched, struct throttles *out)
{
	struct group_folder *groups = memory_alloc(GROUP_FOLDERS_MAX * sizeof *groups);
	size_t count = group_folders(watched->root_fd, "cpu", groups, GROUP_FOLDERS_MAX);
	char path[GROUP_PATH_BYTES + 32];

	*out = (struct throttles){.processors = watched->cores.count > 0 ? watched->cores.count
									 : watched->times.online};
	for (size_t i = 0; i < count; i++) {
		if (!(group_cpu_quota(watched->root_fd, &groups[i]) > 0))
			continue;
		snprintf(path, sizeof path, "%s/cpu.stat", groups[i].path);
		int fd = process_open_file(watched->root_fd, path);
		if (fd < 0)
			continue;
		out->rows[out->count].fd = fd;
		out->rows[out->count++].version_2 = groups[i].version_2;
	}
	free(groups);
}

static void close_throttles(struct throttles *throttles)
{
	for (size_t i = 0; i < throttles->count; i++)
		close(throttles->rows[i].fd);
}

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	struct throttles found;

	find_throttles(watched, &found);
	close_throttles(&found);
	if (found.count == 0)
		snprintf(reason, SERIES_REASON_BYTES,
			 "no control group has a quota of processor time");
	return found.count > 0;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	struct throttles *throttles = memory_alloc(sizeof *throttles);

	find_throttles(watched, throttles);
	sensor_add_channel(handle, "throttled");
	handle->state = throttles;
}

/* Per processor, so that the rate is a share of their time. */
static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	const struct throttles *throttles = handle->state;
	double sum = 0;

	(void)watched;
	for (size_t i = 0; i < throttles->count; i++)
		sum += throttled_ns(throttles->rows[i].fd, throttles->rows[i].version_2);
	values[0] = throttles->processors > 0 ? sum / throttles->processors : NAN;
}

static void close_all(struct sensor_handle *handle)
{
	close_throttles(handle->state);
	free(handle->state);
}

const struct sensor sensor_quota = {
	.name = "quota",
	.unit = "ns",
	.rate_unit = "share",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.probe = probe,
	.open = open_all,
	.sample = sample,
	.close = close_all,
};
