/* What /proc says of a process tree: memory and CPU time. */
#ifndef PRONY_SENSORS_PROCFS_H
#define PRONY_SENSORS_PROCFS_H

#include <stdint.h>
#include <sys/types.h>

/* Resident bytes summed over a process and all its descendants (shared pages counted in each);
 * -1 when the process is gone. */
int64_t procfs_tree_rss_bytes(pid_t root);

/* User plus system time of one process with all its threads, in ns (ticks of 10 ms); -1 when gone.
 */
int64_t procfs_cpu_ns(pid_t pid);

/* Processes that the kernel killed for memory since boot (/proc/vmstat); -1 when it does not say.
 */
int64_t procfs_oom_kills(void);

/* MemAvailable of the machine in bytes; -1 unknown. */
int64_t procfs_available_bytes(void);

/*
 * The direct children of a process, at most capacity; returns how many it found. Works also where
 * the kernel has no children files, by reading every process' parent.
 */
int procfs_children(pid_t parent, pid_t *out, int capacity);

#endif
