/* The machine and the processes of one worker that the sensors observe. Readings that several
 * sensors need are taken once for all of them. */
#ifndef PRONY_SENSORS_WATCHED_H
#define PRONY_SENSORS_WATCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/process_tree.h"

enum { CPUS_MAX = 1024, WATCHED_OTHERS_MAX = 64 };

/* Time of one processor, or of all together, since boot (proc(5), /proc/stat). */
struct cpu_time {
	bool known;
	int64_t busy_ns, steal_ns, total_ns; /* busy: not idle, not waiting for disks, not stolen */
};

struct cpu_times {
	struct cpu_time all, cpus[CPUS_MAX]; /* false: unknown, because it is switched off */
	int count, online; /* number of processors; number of those that are online */
};

/* Reads /proc/stat below a root (base/process_tree.h). False when it cannot be read; then *out
 * holds nothing. */
bool cpu_times_read(int root_fd, struct cpu_times *out);

/* Reads the load averages of 1, 5 and 15 minutes from /proc/loadavg. */
bool load_averages_read(int root_fd, double out[3]);

/* The processors that the worker is bound to. */
struct watched_cores {
	int count;	       /* 0: all online processors */
	bool prony_too;	       /* prony uses them as well, to load the worker's batches */
	bool own[CPUS_MAX];    /* the worker is bound to it */
	bool beside[CPUS_MAX]; /* a sibling hardware thread of a core that it is bound to */
};

struct meters; /* sensors/meters.h */

struct watched {
	int root_fd;	/* a folder, or PROCESS_HERE */
	int64_t now_ns; /* monotonic time of the last reading */
	pid_t self;	/* prony */
	pid_t guard;	/* parent of the worker; the worker's tree is below it; 0 = none */
	pid_t others[WATCHED_OTHERS_MAX]; /* guards of the other ranks' workers */
	int other_count;
	struct watched_cores cores;
	struct meters *meters; /* of the GPUs that the cell runs on; NULL: none */
	struct cpu_times times;
	pid_t below[PROCESS_TREE_MAX]; /* descendants of the guards, parents before children */
	int below_count;
	int64_t tree_due_ns; /* when to look for new processes next */
};

void watched_init(struct watched *watched, int root_fd, pid_t self, pid_t guard);

/* From now on the worker is bound to these processors (count 0: not bound). */
void watched_bind(struct watched *watched, const int *cpus, int count);

/* Whether the worker is bound to this processor, or not bound at all. */
bool watched_owns(const struct watched *watched, int cpu);

/* Sums the times of the worker's processors and returns their number; *beside_ns: busy time of the
 * sibling hardware threads. False when one of them has no value. */
bool watched_own_time(const struct watched *watched, struct cpu_time *out, int *count,
		      int64_t *beside_ns);

/* Sums a counter of base/process_tree.h over the worker's tree: each process's own value plus that
 * of its reaped children. The guard reaps orphans, so nothing is lost. NAN once the worker has
 * ended. */
double watched_tree_sum(const struct watched *watched,
			int64_t (*count)(int root_fd, pid_t pid, int64_t *reaped));

/* Reads the processor times and, when due, the list of processes. Returns the monotonic time of the
 * reading. */
int64_t watched_look(struct watched *watched);

#endif
