/* Reads packages, cores, threads, NUMA nodes and caches with hwloc
 * (https://www.open-mpi.org/projects/hwloc), in a child process, because hwloc crashes or leaves
 * things out when memory runs out. */
#ifndef PRONY_DIAGNOSE_TOPOLOGY_H
#define PRONY_DIAGNOSE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

struct topology {
	int packages, cores, threads, numa_nodes; /* of the whole machine, online ones */
	int64_t l1d_bytes, l2_bytes,
		l3_bytes;		  /* size of one cache of the level; 0 = none or unknown */
	int usable_cores, usable_threads; /* limited by affinity and control groups, not by quota */
	char allowed[256];		  /* "0-3,8": the logical CPUs usable */
};

/* False when hwloc cannot read the machine; ends the process when hwloc crashes (base/memory.h).
 * cpus receives the first usable logical CPU of each core, up to capacity. For a root other than
 * "", usable CPUs come from its /proc/self/status. */
bool topology_read(const char *root, struct topology *out, int *cpus, int capacity);

#endif
