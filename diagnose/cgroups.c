/* What the control groups above this process grant it (cgroups(7)). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/sources.h"

/* Version 1 has no word for "unlimited": it says about 2^63. */
#define UNLIMITED_BYTES ((int64_t)1 << 60)

enum controller { CONTROLLER_CPU, CONTROLLER_MEMORY };

/* Where a hierarchy is mounted and where this process stands in it. */
struct place {
	const char *mount;
	char *path; /* owned; "/" or "/a/b" */
};

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

/* Lines are "ID:CONTROLLERS:PATH"; version 2 has no controllers. Returns the path or NULL. */
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

static char *find_path(const char *root, const char *controller)
{
	char *text = source_text(root, "/proc/self/cgroup", NULL);
	char *found = NULL;

	for (char *line = text; line && *line && !found;) {
		char *newline = strchr(line, '\n');

		if (newline)
			*newline = '\0';
		const char *path = match_line(line, controller);
		if (path)
			found = memory_strdup(path);
		line = newline ? newline + 1 : NULL;
	}
	free(text);
	return found;
}

/* "max 100000" or "150000 100000" of version 2, two files of version 1; 0 = no limit. */
static double read_cpu(const char *root, const char *folder, bool two)
{
	int64_t quota = 0, period = 0;
	bool known;

	if (two) {
		char *path = memory_printf("%s/cpu.max", folder);
		char *text = source_text(root, path, NULL);
		char *end = text;

		quota = text ? strtoll(text, &end, 10) : 0;
		known = text && end != text;
		period = known ? strtoll(end, NULL, 10) : 0;
		free(text);
		free(path);
	} else {
		char *quota_path = memory_printf("%s/cpu.cfs_quota_us", folder);
		char *period_path = memory_printf("%s/cpu.cfs_period_us", folder);

		known = source_int(root, quota_path, &quota) &&
			source_int(root, period_path, &period);
		free(quota_path);
		free(period_path);
	}
	return known && quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

static double read_memory(const char *root, const char *folder, bool two)
{
	char *path = memory_printf("%s/%s", folder, two ? "memory.max" : "memory.limit_in_bytes");
	int64_t bytes = 0;
	bool known = source_int(root, path, &bytes);

	free(path);
	return known && bytes > 0 && bytes < UNLIMITED_BYTES ? (double)bytes : 0;
}

/* The least limit from the group up to the top. In a container the path may be the host's and the
 * mount the container's own: what is not there is passed over. */
static double least_of(const char *root, struct place *place, enum controller controller, bool two)
{
	double least = 0;

	for (;;) {
		bool top = strcmp(place->path, "/") == 0 || !*place->path;
		char *folder = memory_printf("%s%s", place->mount, top ? "" : place->path);
		double limit = controller == CONTROLLER_CPU ? read_cpu(root, folder, two)
							    : read_memory(root, folder, two);

		free(folder);
		if (limit > 0 && (least <= 0 || limit < least))
			least = limit;
		if (top)
			return least;
		*strrchr(place->path, '/') = '\0';
	}
}

static double least_limit(const char *root, enum controller controller)
{
	const char *word = controller == CONTROLLER_CPU ? "cpu" : "memory";
	/* Version 2 alone, version 2 beside version 1, and version 1. */
	const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
				      controller == CONTROLLER_CPU ? "/sys/fs/cgroup/cpu"
								   : "/sys/fs/cgroup/memory"};
	double least = 0;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		bool two = i < 2;
		struct place place = {.mount = mounts[i],
				      .path = find_path(root, two ? NULL : word)};

		if (!place.path)
			continue;
		double limit = least_of(root, &place, controller, two);
		if (limit > 0 && (least <= 0 || limit < least))
			least = limit;
		free(place.path);
	}
	return least;
}

double source_cpu_quota(const char *root)
{
	return least_limit(root, CONTROLLER_CPU);
}

int64_t source_memory_limit(const char *root)
{
	double bytes = least_limit(root, CONTROLLER_MEMORY);

	return bytes > 0 ? (int64_t)bytes : -1;
}
