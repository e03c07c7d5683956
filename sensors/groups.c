#include "sensors/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process_tree.h"

static bool lists_word(const char *list, size_t length, const char *word)
{
	size_t word_length = strlen(word);

	for (const char *at = list; at < list + length;) {
		size_t piece = strcspn(at, ",:");

		if (piece == word_length && memcmp(at, word, word_length) == 0)
			return true;
		at += piece + 1;
	}
	return false;
}

/* Lines are "ID:CONTROLLERS:PATH"; cgroup version 2 has no controllers (NULL). Returns the path or
 * NULL. */
static const char *match_line(const char *line, const char *controller)
{
	const char *list = strchr(line, ':');
	const char *path = list ? strchr(list + 1, ':') : NULL;

	if (!path || path[1] != '/')
		return NULL;
	size_t length = (size_t)(path - list) - 1;
	if (controller ? !lists_word(list + 1, length, controller) : length > 0)
		return NULL;
	return path + 1;
}

/* Adds the folders below one mount; `text` is the content of /proc/self/cgroup. */
static size_t add_folders(const char *text, const char *mount, const char *controller,
			  bool version_2, struct group_folder *out, size_t capacity)
{
	char path[GROUP_PATH_BYTES];
	const char *found = NULL;
	size_t count = 0;

	for (const char *line = text; line && !found; line = strchr(line, '\n')) {
		line += *line == '\n';
		found = match_line(line, version_2 ? NULL : controller);
	}
	if (!found || strcspn(found, "\n") >= sizeof path)
		return 0;
	snprintf(path, sizeof path, "%.*s", (int)strcspn(found, "\n"), found);
	while (count < capacity) {
		bool top = strcmp(path, "/") == 0 || !*path;
		struct group_folder *folder = &out[count];
		int length =
			snprintf(folder->path, sizeof folder->path, "%s%s", mount, top ? "" : path);

		folder->version_2 = version_2;
		count += length < (int)sizeof folder->path;
		if (top)
			break;
		*strrchr(path, '/') = '\0';
	}
	return count;
}

size_t group_folders(int root_fd, const char *controller, struct group_folder *out, size_t capacity)
{
	char text[8192], version_1[64];
	/* cgroup version 2 alone, version 2 beside version 1, and version 1. */
	const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", version_1};
	size_t count = 0;

	snprintf(version_1, sizeof version_1, "/sys/fs/cgroup/%s", controller);
	if (process_read_file(root_fd, "/proc/self/cgroup", text, sizeof text) <= 0)
		return 0;
	for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++)
		count += add_folders(text, mounts[i], controller, i < 2, out + count,
				     capacity - count);
	return count;
}

/* Reads the number at the beginning of a file of the group, and the text after it; false if there
 * is none. */
static bool read_number(int root_fd, const struct group_folder *group, const char *name,
			long long *out, long long *second)
{
	char path[GROUP_PATH_BYTES + 32], text[64], *end, *rest;

	snprintf(path, sizeof path, "%s/%s", group->path, name);
	if (process_read_file(root_fd, path, text, sizeof text) <= 0)
		return false;
	*out = strtoll(text, &end, 10);
	*second = strtoll(end, &rest, 10);
	return end != text;
}

double group_cpu_quota(int root_fd, const struct group_folder *group)
{
	long long quota, period, unused;
	bool known;

	/* "max 100000" or "150000 100000" of version 2, two files of version 1. */
	if (group->version_2)
		known = read_number(root_fd, group, "cpu.max", &quota, &period);
	else
		known = read_number(root_fd, group, "cpu.cfs_quota_us", &quota, &unused) &&
			read_number(root_fd, group, "cpu.cfs_period_us", &period, &unused);
	return known && quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}
