/* What the kernel says of processes and those below them, for ending them and holding them to a
 * limit. Nothing here allocates. */
#ifndef PRONY_BASE_PROCESS_TREE_H
#define PRONY_BASE_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_TREE_MAX = 512 };

/*
 * Every function takes the folder that stands for "/": a descriptor of a recorded machine, or
 * PROCESS_HERE for this one.
 */
#define PROCESS_HERE (-100) /* AT_FDCWD: absolute paths */

/* A descriptor to read a file below the root; -1. `path` begins with '/'. */
int process_open_file(int root_fd, const char *path);

/* Reads a small file below the root into a terminated buffer, cut where it is longer; the length,
 * or -1. */
ssize_t process_read_file(int root_fd, const char *path, char *buffer, size_t bytes);

/*
 * The direct children of a process, at most capacity; returns how many it found. Works also where
 * the kernel has no children files, by reading every process' parent.
 */
int process_children(int root_fd, pid_t parent, pid_t *out, int capacity);

/* All processes below one, parents before their children; how many. */
int process_descendants(int root_fd, pid_t root, pid_t *out, int capacity);

/* Resident bytes of one process (shared pages counted in full); -1 when it is gone. */
int64_t process_rss_bytes(int root_fd, pid_t pid);

/* Of a process and all below it; -1 when it is gone. */
int64_t process_tree_rss_bytes(int root_fd, pid_t root);

/* User plus system time in ns of one process with all its threads, by its own clock where the
 * kernel lets us read that (this machine only), else in ticks of 10 ms; *reaped (may be NULL) =
 * that of its children that have ended and were waited for, in ticks. -1 when it is gone. */
int64_t process_cpu_ns(int root_fd, pid_t pid, int64_t *reaped);

/* Page faults of one process with all its threads, minor and major ones, since it began; *reaped
 * (may be NULL) = those of its children that have ended and were waited for. -1 when it is gone. */
int64_t process_page_faults(int root_fd, pid_t pid, int64_t *reaped);

enum { PROCESSORS_MAX = 1024 };
/* What the threads of processes do at one instant. */
struct process_threads {
	int alive, running; /* running: on a processor, or waiting for one */
	unsigned char on_processor[PROCESSORS_MAX / 8]; /* a bit where one of them runs */
};

/* Adds the threads of a process; false when it is gone. */
bool process_threads_add(int root_fd, pid_t pid, struct process_threads *threads);

/* How many processors they run on. */
int process_threads_processors(const struct process_threads *threads);

/* How often threads of processes gave their processor away: to wait, or because others were to run.
 */
struct process_switches {
	int64_t voluntary, involuntary;
};

/* Adds those of all threads of a process; false when it is gone, or the kernel does not say. */
bool process_switches_add(int root_fd, pid_t pid, struct process_switches *switches);

/* Processes that the kernel killed for memory since boot; -1 when it does not say. */
int64_t process_oom_kills(int root_fd);

#endif
