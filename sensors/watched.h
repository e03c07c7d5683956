/* What is watched: a machine below a root folder, and the processes of one worker on it. What
 * several sensors need is read once for all of them. */
#ifndef PRONY_SENSORS_WATCHED_H
#define PRONY_SENSORS_WATCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/process_tree.h"

enum { CPUS_MAX = 1024 };

/* Time of a processor, or of all together, since boot (proc(5), /proc/stat). */
struct cpu_time {
	bool known;
	int64_t busy_ns, steal_ns, total_ns; /* busy: neither idle, waiting for disks, nor stolen */
};

struct cpu_times {
	struct cpu_time all, cpus[CPUS_MAX]; /* not known: switched off */
	int count, online;		     /* processors that are numbered; that are on */
};

/* Reads /proc/stat below a root (base/process_tree.h). False where it says nothing; then nothing in
 * *out is known. */
bool cpu_times_read(int root_fd, struct cpu_times *out);

/* The load averages of 1, 5 and 15 minutes from /proc/loadavg. */
bool load_averages_read(int root_fd, double out[3]);

/* Processors that the worker is bound to. */
struct watched_cores {
	int count;	       /* 0: all that are on */
	bool prony_too;	       /* prony works on them as well: it loads the worker's batches */
	bool own[CPUS_MAX];    /* bound to it */
	bool beside[CPUS_MAX]; /* another hardware thread of a core that it is bound to */
};

struct watched {
	int root_fd;	/* a folder, or PROCESS_HERE */
	int64_t now_ns; /* the instant of the last look on the monotonic clock */
	pid_t self;	/* prony */
	pid_t guard;	/* the worker and its children are the processes below it; 0 = nobody */
	struct watched_cores cores;
	struct cpu_times times;
	pid_t below[PROCESS_TREE_MAX]; /* the guard, parents before their children */
	int below_count;
	int64_t tree_due_ns; /* when to look for new processes again */
};

void watched_init(struct watched *watched, int root_fd, pid_t self, pid_t guard);

/* What follows is bound to these processors (none: to no ones in particular). */
void watched_bind(struct watched *watched, const int *cpus, int count);

/* Is the worker bound to the processor, or to none in particular? */
bool watched_owns(const struct watched *watched, int cpu);

/*
 * Time of the processors that the worker is bound to, summed, and how many they are; *beside_ns:
 * busy time of the other hardware threads of their cores. False while one of them says nothing.
 */
bool watched_own_time(const struct watched *watched, struct cpu_time *out, int *count,
		      int64_t *beside_ns);

/*
 * What a function of base/process_tree.h counts of one process (own, and *reaped of its children
 * that were waited for), summed over the worker's tree with those that have ended: the guard waits
 * for those whose parent did not. NAN once the worker is gone.
 */
double watched_tree_sum(const struct watched *watched,
			int64_t (*count)(int root_fd, pid_t pid, int64_t *reaped));

/* Looks at times, and, when it is due, at which processes there are. The instant of the look on the
 * monotonic clock. */
int64_t watched_look(struct watched *watched);

#endif
