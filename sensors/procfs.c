#include "sensors/procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TREE_MAX = 512 };

/* Reads a small /proc file into a terminated buffer; returns its length or -1. */
static ssize_t read_small(const char *path, char *buffer, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	size_t used = 0;
	while (used + 1 < bytes) {
		ssize_t got = read(fd, buffer + used, bytes - 1 - used);
		if (got <= 0)
			break;
		used += (size_t)got;
	}
	close(fd);
	buffer[used] = '\0';
	return (ssize_t)used;
}

/* The fields of /proc/PID/stat behind the command name, which may itself hold spaces and brackets.
 */
static const char *stat_fields(pid_t pid, char *buffer, size_t bytes)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (read_small(path, buffer, bytes) <= 0)
		return NULL;
	const char *end = strrchr(buffer, ')');
	return end && end[1] == ' ' ? end + 2 : NULL;
}

static pid_t parent_of(pid_t pid)
{
	char buffer[1024];
	const char *fields = stat_fields(pid, buffer, sizeof buffer);
	if (!fields || !fields[0])
		return -1;
	return (pid_t)strtol(fields + 1, NULL, 10);
}

static int children_by_scan(pid_t parent, pid_t *out, int capacity)
{
	DIR *proc = opendir("/proc");
	if (!proc)
		return 0;
	int count = 0;
	struct dirent *entry;
	while (count < capacity && (entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (parent_of(pid) == parent)
			out[count++] = pid;
	}
	closedir(proc);
	return count;
}

/* Children are listed per thread that made them. False when the kernel has no such files. */
static bool children_by_files(pid_t parent, pid_t *out, int capacity, int *count)
{
	char path[96];
	snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
	DIR *tasks = opendir(path);
	if (!tasks)
		return false;
	bool seen = false;
	struct dirent *entry;
	while ((entry = readdir(tasks))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		char buffer[8192];
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)parent,
			 entry->d_name);
		if (read_small(path, buffer, sizeof buffer) < 0)
			continue;
		seen = true;
		char *cursor = buffer;
		while (*count < capacity) {
			char *end;
			long pid = strtol(cursor, &end, 10);
			if (end == cursor)
				break;
			out[(*count)++] = (pid_t)pid;
			cursor = end;
		}
	}
	closedir(tasks);
	return seen;
}

int procfs_children(pid_t parent, pid_t *out, int capacity)
{
	int count = 0;
	if (children_by_files(parent, out, capacity, &count))
		return count;
	return children_by_scan(parent, out, capacity);
}

static int64_t rss_bytes(pid_t pid)
{
	char path[64], buffer[256];
	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	if (read_small(path, buffer, sizeof buffer) <= 0)
		return -1;
	char *cursor;
	strtoll(buffer, &cursor, 10);
	return (int64_t)strtoll(cursor, NULL, 10) * (int64_t)sysconf(_SC_PAGESIZE);
}

int64_t procfs_tree_rss_bytes(pid_t root)
{
	pid_t tree[TREE_MAX];
	int count = 1, done = 0;
	int64_t sum = rss_bytes(root);
	if (sum < 0)
		return -1;
	tree[0] = root;
	for (; done < count; done++) {
		int before = count;
		count += procfs_children(tree[done], tree + count, TREE_MAX - count);
		for (int i = before; i < count; i++) {
			int64_t bytes = rss_bytes(tree[i]);
			sum += bytes > 0 ? bytes : 0;
		}
	}
	return sum;
}

int64_t procfs_cpu_ns(pid_t pid)
{
	char buffer[1024];
	const char *fields = stat_fields(pid, buffer, sizeof buffer);
	if (!fields)
		return -1;
	/* utime and stime are fields 14 and 15 of proc(5); the state, field 3, comes first here. */
	for (int skip = 0; skip < 11; skip++) {
		fields = strchr(fields, ' ');
		if (!fields)
			return -1;
		fields++;
	}
	char *end;
	long long user = strtoll(fields, &end, 10), system = strtoll(end, NULL, 10);
	long ticks = sysconf(_SC_CLK_TCK);
	return (int64_t)(user + system) * (INT64_C(1000000000) / (ticks > 0 ? ticks : 100));
}

/* The number behind "name " or "name: " at the start of a line. */
static int64_t labelled_number(const char *path, const char *name)
{
	char *buffer = malloc(65536);
	int64_t value = -1;
	if (buffer && read_small(path, buffer, 65536) > 0) {
		size_t length = strlen(name);
		for (const char *line = buffer; line; line = strchr(line, '\n')) {
			line += *line == '\n';
			if (!strncmp(line, name, length) &&
			    (line[length] == ' ' || line[length] == ':')) {
				value = (int64_t)strtoll(line + length + 1, NULL, 10);
				break;
			}
		}
	}
	free(buffer);
	return value;
}

int64_t procfs_oom_kills(void)
{
	return labelled_number("/proc/vmstat", "oom_kill");
}

int64_t procfs_available_bytes(void)
{
	int64_t kib = labelled_number("/proc/meminfo", "MemAvailable");
	return kib < 0 ? -1 : kib * 1024;
}
