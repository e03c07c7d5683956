/* Where prony stands among the control groups (cgroups(7)), and with it its workers. */
#ifndef PRONY_SENSORS_GROUPS_H
#define PRONY_SENSORS_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

enum { GROUP_FOLDERS_MAX = 64, GROUP_PATH_BYTES = 512 };

struct group_folder {
	bool version_2;
	char path[GROUP_PATH_BYTES];
};

/*
 * The folders of the groups of this process that the controller ("cpu", "memory") may have files
 * in: those of version 2, then those of version 1, each from its own group up to the top. In a
 * container the path may be the host's and the mount its own: then some are not there. Returns how
 * many.
 */
size_t group_folders(int root_fd, const char *controller, struct group_folder *out,
		     size_t capacity);

/* Processors' worth of time that the quota of this group grants; 0 = unlimited or unknown. */
double group_cpu_quota(int root_fd, const struct group_folder *group);

#endif
