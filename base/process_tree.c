#include "base/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Static_assert(PROCESS_HERE == AT_FDCWD, "openat uses the current folder");

/* Opens root + path. */
static int open_below(int root_fd, const char *path, int flags)
{
	/* A path relative to a folder must not be absolute. */
	return openat(root_fd, path + (root_fd != PROCESS_HERE), flags | O_RDONLY | O_CLOEXEC);
}

int process_open_file(int root_fd, const char *path)
{
	return open_below(root_fd, path, 0);
}

ssize_t process_read_file(int root_fd, const char *path, char *buffer, size_t bytes)
{
	int fd = open_below(root_fd, path, 0);
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

/*
 * The fields of a stat file after the command name, which may itself contain spaces and brackets.
 */
static const char *read_stat(int root_fd, const char *path, char *buffer, size_t bytes)
{
	if (process_read_file(root_fd, path, buffer, bytes) <= 0)
		return NULL;
	const char *end = strrchr(buffer, ')');
	return end && end[1] == ' ' ? end + 2 : NULL;
}

static const char *stat_fields(int root_fd, pid_t pid, char *buffer, size_t bytes)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	return read_stat(root_fd, path, buffer, bytes);
}

/* Skips `count` fields; NULL when there are fewer. */
static const char *skip_fields(const char *fields, int count)
{
	for (int skip = 0; fields && skip < count; skip++)
		if ((fields = strchr(fields, ' ')))
			fields++;
	return fields;
}

/* CPU time from the process's own clock; -1 when it cannot be read. */
static int64_t exact_cpu_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec time;
	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return -1;
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static pid_t parent_of(int root_fd, pid_t pid)
{
	char buffer[1024];
	const char *fields = stat_fields(root_fd, pid, buffer, sizeof buffer);
	if (!fields || !fields[0])
		return -1;
	return (pid_t)strtol(fields + 1, NULL, 10);
}

/* Reads a folder whose entries are numbers, without opendir, which allocates. */
struct numbers {
	int fd;
	ssize_t filled, at;
	_Alignas(struct dirent64) char buffer[4096];
};

static bool numbers_open(struct numbers *numbers, int root_fd, const char *path)
{
	numbers->fd = open_below(root_fd, path, O_DIRECTORY);
	numbers->filled = numbers->at = 0;
	return numbers->fd >= 0;
}

/* The next numeric entry; false at the end, when it also closes the folder. */
static bool numbers_next(struct numbers *numbers, pid_t *out)
{
	for (;;) {
		if (numbers->at >= numbers->filled) {
			numbers->filled =
				getdents64(numbers->fd, numbers->buffer, sizeof numbers->buffer);
			numbers->at = 0;
		}
		if (numbers->filled <= 0) {
			close(numbers->fd);
			return false;
		}
		const struct dirent64 *entry =
			(const struct dirent64 *)(numbers->buffer + numbers->at);
		numbers->at += entry->d_reclen;
		if (isdigit((unsigned char)entry->d_name[0])) {
			*out = (pid_t)strtol(entry->d_name, NULL, 10);
			return true;
		}
	}
}

static int children_by_scan(int root_fd, pid_t parent, pid_t *out, int capacity)
{
	struct numbers processes;
	int count = 0;
	pid_t pid;
	if (!numbers_open(&processes, root_fd, "/proc"))
		return 0;
	while (numbers_next(&processes, &pid))
		if (count < capacity && parent_of(root_fd, pid) == parent)
			out[count++] = pid;
	return count;
}

static int add_children(const char *list, pid_t *out, int capacity)
{
	int count = 0;
	while (count < capacity) {
		char *end;
		long pid = strtol(list, &end, 10);
		if (end == list)
			break;
		if (pid > 0)
			out[count++] = (pid_t)pid;
		list = end;
	}
	return count;
}

/* The kernel lists children by the thread that created them. False when the kernel has no such
 * files. */
static bool children_by_files(int root_fd, pid_t parent, pid_t *out, int capacity, int *count)
{
	char path[96], buffer[8192];
	struct numbers threads;
	bool seen = false;
	pid_t thread;
	snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
	if (!numbers_open(&threads, root_fd, path))
		return false;
	while (numbers_next(&threads, &thread)) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)thread);
		if (process_read_file(root_fd, path, buffer, sizeof buffer) < 0)
			continue;
		seen = true;
		*count += add_children(buffer, out + *count, capacity - *count);
	}
	return seen;
}

int process_children(int root_fd, pid_t parent, pid_t *out, int capacity)
{
	int count = 0;
	if (children_by_files(root_fd, parent, out, capacity, &count))
		return count;
	return children_by_scan(root_fd, parent, out, capacity);
}

int process_descendants(int root_fd, pid_t root, pid_t *out, int capacity)
{
	int count = process_children(root_fd, root, out, capacity);
	for (int done = 0; done < count; done++)
		count += process_children(root_fd, out[done], out + count, capacity - count);
	return count;
}

int64_t process_rss_bytes(int root_fd, pid_t pid)
{
	char path[64], buffer[256], *pages, *end;
	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	if (process_read_file(root_fd, path, buffer, sizeof buffer) <= 0)
		return -1;
	strtoll(buffer, &pages, 10);
	long long resident = strtoll(pages, &end, 10);
	int64_t bytes;
	if (end == pages || resident < 0 ||
	    __builtin_mul_overflow(resident, (int64_t)sysconf(_SC_PAGESIZE), &bytes))
		return -1;
	return bytes;
}

int64_t process_tree_rss_bytes(int root_fd, pid_t root)
{
	pid_t below[PROCESS_TREE_MAX];
	int64_t sum = process_rss_bytes(root_fd, root);
	if (sum < 0)
		return -1;
	int count = process_descendants(root_fd, root, below, PROCESS_TREE_MAX);
	for (int i = 0; i < count; i++) {
		int64_t bytes = process_rss_bytes(root_fd, below[i]);
		sum += bytes > 0 ? bytes : 0;
	}
	return sum;
}

/* Reads `count` numbers of proc(5)'s stat file, starting at `field` (10 to 17). They come in pairs:
 * the process's own, then that of its reaped children. The first field here is the state, field 3.
 */
static bool stat_numbers(int root_fd, pid_t pid, int field, int count, int64_t *out)
{
	char buffer[1024], *end;
	const char *fields = stat_fields(root_fd, pid, buffer, sizeof buffer);

	fields = fields ? skip_fields(fields, field - 3) : NULL;
	for (int i = 0; fields && i < count; i++) {
		out[i] = strtoll(fields, &end, 10);
		if (end == fields || out[i] < 0)
			return false;
		fields = end;
	}
	return fields != NULL;
}

int64_t process_cpu_ns(int root_fd, pid_t pid, int64_t *reaped)
{
	enum { USER, SYSTEM, REAPED_USER, REAPED_SYSTEM, TIMES };
	long hertz = sysconf(_SC_CLK_TCK);
	int64_t tick = INT64_C(1000000000) / (hertz > 0 ? hertz : 100), times[TIMES];

	if (!stat_numbers(root_fd, pid, 14, TIMES, times))
		return -1;
	for (int i = 0; i < TIMES; i++)
		if (times[i] > INT64_MAX / tick / 2)
			return -1;
	if (reaped)
		*reaped = (times[REAPED_USER] + times[REAPED_SYSTEM]) * tick;
	int64_t exact = root_fd == PROCESS_HERE ? exact_cpu_ns(pid) : -1;
	return exact >= 0 ? exact : (times[USER] + times[SYSTEM]) * tick;
}

int64_t process_page_faults(int root_fd, pid_t pid, int64_t *reaped)
{
	enum { MINOR, REAPED_MINOR, MAJOR, REAPED_MAJOR, COUNTS };
	int64_t counts[COUNTS];

	if (!stat_numbers(root_fd, pid, 10, COUNTS, counts))
		return -1;
	for (int i = 0; i < COUNTS; i++)
		if (counts[i] > INT64_MAX / COUNTS)
			return -1;
	if (reaped)
		*reaped = counts[REAPED_MINOR] + counts[REAPED_MAJOR];
	return counts[MINOR] + counts[MAJOR];
}

bool process_threads_add(int root_fd, pid_t pid, struct process_threads *threads)
{
	/*
	 * Field 39 of proc(5), the processor that it last ran on, counted from the state, field 3.
	 */
	enum { TO_PROCESSOR = 36 };
	char path[96], buffer[1024];
	struct numbers tasks;
	pid_t task;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	if (!numbers_open(&tasks, root_fd, path))
		return false;
	while (numbers_next(&tasks, &task)) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)task);
		const char *fields = read_stat(root_fd, path, buffer, sizeof buffer);
		if (!fields)
			continue;
		threads->alive++;
		if (*fields != 'R')
			continue;
		threads->running++;
		fields = skip_fields(fields, TO_PROCESSOR);
		long processor = fields ? strtol(fields, NULL, 10) : -1;
		if (processor >= 0 && processor < PROCESSORS_MAX)
			threads->on_processor[processor / 8] |= (unsigned char)(1 << processor % 8);
	}
	return true;
}

int process_threads_processors(const struct process_threads *threads)
{
	int count = 0;
	for (size_t i = 0; i < sizeof threads->on_processor; i++)
		count += __builtin_popcount(threads->on_processor[i]);
	return count;
}

/* The number after a word; -1 when the word is not found. */
static int64_t number_behind(const char *text, const char *word)
{
	const char *found = strstr(text, word);
	return found ? (int64_t)strtoll(found + strlen(word), NULL, 10) : -1;
}

bool process_switches_add(int root_fd, pid_t pid, struct process_switches *switches)
{
	char path[96], buffer[4096];
	struct numbers tasks;
	bool known = false;
	pid_t task;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	if (!numbers_open(&tasks, root_fd, path))
		return false;
	while (numbers_next(&tasks, &task)) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)task);
		if (process_read_file(root_fd, path, buffer, sizeof buffer) <= 0)
			continue;
		int64_t voluntary = number_behind(buffer, "\nvoluntary_ctxt_switches:");
		int64_t involuntary = number_behind(buffer, "\nnonvoluntary_ctxt_switches:");
		if (voluntary < 0 || involuntary < 0)
			continue;
		switches->voluntary += voluntary;
		switches->involuntary += involuntary;
		known = true;
	}
	return known;
}

int64_t process_oom_kills(int root_fd)
{
	/* The file has about 200 lines, and this one is near the end. */
	char buffer[16384];
	if (process_read_file(root_fd, "/proc/vmstat", buffer, sizeof buffer) <= 0)
		return -1;
	return number_behind(buffer, "\noom_kill ");
}
