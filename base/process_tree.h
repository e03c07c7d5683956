/* Reads what the kernel reports about processes and their descendants, to end them and to limit
 * them. Nothing here allocates. */
#ifndef PRONY_BASE_PROCESS_TREE_H
#define PRONY_BASE_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_TREE_MAX = 512 };

/* Every function takes the root folder "/" as a descriptor: that of a recorded machine, or
 * PROCESS_HERE for this machine. */
#define PROCESS_HERE (-100) /* AT_FDCWD: absolute paths */

/* Opens a file below the root for reading; -1 on failure. `path` begins with '/'. */
int process_open_file(int root_fd, const char *path);

/* Reads a small file below the root into a 0-terminated buffer and truncates it if it is too long.
 * Returns the length, or -1. */
ssize_t process_read_file(int root_fd, const char *path, char *buffer, size_t bytes);

/* Finds the direct children of a process, at most `capacity`, and returns their number. Also works
 * on kernels without children files, by reading the parent of every process. */
int process_children(int root_fd, pid_t parent, pid_t *out, int capacity);

/* Finds all descendants of a process, parents before children. Returns their number. */
int process_descendants(int root_fd, pid_t root, pid_t *out, int capacity);

/* Resident bytes of one process (shared pages counted in full); -1 when it no longer exists. */
int64_t process_rss_bytes(int root_fd, pid_t pid);

/* Resident bytes of a process and its descendants; -1 when it no longer exists. */
int64_t process_tree_rss_bytes(int root_fd, pid_t root);

/* User plus system time of one process, all threads, in ns: from its CPU clock when the kernel
 * allows it (this machine only), otherwise in ticks of 10 ms. *reaped (may be NULL) receives the
 * time of its terminated and reaped children, in ticks. -1 when it no longer exists. */
int64_t process_cpu_ns(int root_fd, pid_t pid, int64_t *reaped);

/* Minor plus major page faults of one process, all threads, since it started. *reaped (may be NULL)
 * receives those of its terminated and reaped children. -1 when it no longer exists. */
int64_t process_page_faults(int root_fd, pid_t pid, int64_t *reaped);

enum { PROCESSORS_MAX = 1024 };
/* A snapshot of what the threads of processes are doing. */
struct process_threads {
	int alive, running; /* running: on a processor, or waiting for one */
	unsigned char on_processor[PROCESSORS_MAX / 8]; /* a bit where one of them runs */
};

/* Adds the threads of a process; false when it no longer exists. */
bool process_threads_add(int root_fd, pid_t pid, struct process_threads *threads);

/* The number of processors that they run on. */
int process_threads_processors(const struct process_threads *threads);

/* Context switches of threads, voluntary (they waited) and involuntary (they were preempted). */
struct process_switches {
	int64_t voluntary, involuntary;
};

/* Adds the context switches of all threads of a process; false when it no longer exists or the
 * kernel does not report them. */
bool process_switches_add(int root_fd, pid_t pid, struct process_switches *switches);

/* Number of processes killed by the out-of-memory killer since boot; -1 when unknown. */
int64_t process_oom_kills(int root_fd);

#endif
