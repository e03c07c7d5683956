/* Limits that the control groups above this process impose (cgroups(7)). */
#include <stdlib.h>

#include "base/memory.h"
#include "diagnose/sources.h"
#include "sensors/groups.h"

/* cgroup version 1 expresses "unlimited" as a number near 2^63. */
#define UNLIMITED_BYTES ((int64_t)1 << 60)

static double smaller_limit(double a, double b)
{
	return a <= 0 || (b > 0 && b < a) ? b : a;
}

double source_cpu_quota(const char *root)
{
	struct group_folder *groups = memory_alloc(GROUP_FOLDERS_MAX * sizeof(*groups));
	int root_fd = source_open_root(root);
	size_t count = group_folders(root_fd, "cpu", groups, GROUP_FOLDERS_MAX);
	double least = 0;

	for (size_t i = 0; i < count; i++)
		least = smaller_limit(least, group_cpu_quota(root_fd, &groups[i]));
	source_close_root(root_fd);
	free(groups);
	return least;
}

int64_t source_memory_limit(const char *root)
{
	struct group_folder *groups = memory_alloc(GROUP_FOLDERS_MAX * sizeof(*groups));
	int root_fd = source_open_root(root);
	size_t count = group_folders(root_fd, "memory", groups, GROUP_FOLDERS_MAX);
	double least = 0;

	source_close_root(root_fd);
	for (size_t i = 0; i < count; i++) {
		char *path =
			memory_printf("%s/%s", groups[i].path,
				      groups[i].version_2 ? "memory.max" : "memory.limit_in_bytes");
		int64_t bytes = 0;

		if (source_int(root, path, &bytes) && bytes > 0 && bytes < UNLIMITED_BYTES)
			least = smaller_limit(least, (double)bytes);
		free(path);
	}
	free(groups);
	return least > 0 ? (int64_t)least : -1;
}
