/* Finds the control groups of prony and its workers (cgroups(7)). */
#ifndef PRONY_SENSORS_GROUPS_H
#define PRONY_SENSORS_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

enum { GROUP_FOLDERS_MAX = 64, GROUP_PATH_BYTES = 512 };

struct group_folder {
	bool version_2;
	char path[GROUP_PATH_BYTES];
};

/* Finds the folders of this process's groups in which the controller ("cpu", "memory") may have
 * files: version 2 first, then version 1, each from its own group up to the root. In a container
 * the path may be the host's while the mount is its own, so some folders may not exist. Returns
 * their number. */
size_t group_folders(int root_fd, const char *controller, struct group_folder *out,
		     size_t capacity);

/* The CPU quota of this group in processors; 0 = unlimited or unknown. */
double group_cpu_quota(int root_fd, const struct group_folder *group);

#endif
