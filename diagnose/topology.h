/*
 * Packages, cores, threads, NUMA nodes and caches, by hwloc
 * (https://www.open-mpi.org/projects/hwloc) in a process of its own, because it crashes, or
 * leaves things out, where it gets no memory.
 */
#ifndef PRONY_DIAGNOSE_TOPOLOGY_H
#define PRONY_DIAGNOSE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

struct topology {
	int packages, cores, threads, numa_nodes; /* of the whole machine that is online */
	int64_t l1d_bytes, l2_bytes, l3_bytes;	  /* one cache of the level; 0 = none or unknown */
	int usable_cores, usable_threads;	  /* by affinity and control groups, not by quota */
	char allowed[256];			  /* "0-3,8": the logical CPUs usable */
};

/* False when hwloc cannot read the machine; when it crashes the process ends (base/memory.h). cpus
 * gets the first usable logical CPU of each core, up to capacity. A root other than "" is not this
 * machine: its /proc/self/status says what is usable.
 */
bool topology_read(const char *root, struct topology *out, int *cpus, int capacity);

#endif
