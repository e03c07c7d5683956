#include "diagnose/topology.h"

#include <hwloc.h>
#include <stdlib.h>

#include "diagnose/sources.h"

static bool leave_out(hwloc_topology_t topology, const char *component)
{
	return hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					     component) == 0;
}

/* hwloc takes its root, and whether it prints, from the environment only; both are put back. Called
 * before there are threads. */
static bool discover(hwloc_topology_t topology, const char *root)
{
	bool silent = getenv("HWLOC_HIDE_ERRORS") == NULL;

	/* hwloc's other sources ask the processor and the C library, which are not the recorded
	 * machine's. */
	if (*root && (setenv("HWLOC_FSROOT", root, 1) != 0 || !leave_out(topology, "x86") ||
		      !leave_out(topology, "no_os")))
		return false;
	if (silent)
		setenv("HWLOC_HIDE_ERRORS", "2", 1);
	/* The record describes the machine; what this process may use of it is told apart below. */
	bool loaded =
		hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
		hwloc_topology_load(topology) == 0;
	if (silent)
		unsetenv("HWLOC_HIDE_ERRORS");
	if (*root)
		unsetenv("HWLOC_FSROOT");
	return loaded;
}

static bool load(const char *root, hwloc_topology_t *out)
{
	hwloc_topology_t topology;

	if (hwloc_topology_init(&topology) != 0)
		return false;
	if (!discover(topology, root)) {
		hwloc_topology_destroy(topology);
		return false;
	}
	*out = topology;
	return true;
}

static int count_of(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	int count = hwloc_get_nbobjs_by_type(topology, type);

	return count > 0 ? count : 0;
}

static int64_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);

	return cache ? (int64_t)cache->attr->cache.size : 0;
}

/* The logical CPUs that this process may run on. */
static void find_allowed(hwloc_topology_t topology, const char *root, hwloc_bitmap_t allowed)
{
	hwloc_bitmap_t bound = hwloc_bitmap_alloc();
	bool known = false;

	hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
	if (!*root) {
		known = bound && hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_THREAD) == 0;
	} else {
		char *text = source_text(root, "/proc/self/status", NULL);
		char *list = text ? source_field(text, "Cpus_allowed_list") : NULL;

		known = bound && list && hwloc_bitmap_list_sscanf(bound, list) == 0;
		free(list);
		free(text);
	}
	if (known && hwloc_bitmap_intersects(allowed, bound))
		hwloc_bitmap_and(allowed, allowed, bound);
	hwloc_bitmap_free(bound);
}

/* Where a machine does not say which threads share a core, each thread stands for one. */
static void count_usable(hwloc_topology_t topology, hwloc_const_bitmap_t allowed,
			 struct topology *out, int *cpus, int capacity)
{
	bool cores = count_of(topology, HWLOC_OBJ_CORE) > 0;
	hwloc_obj_type_t type = cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
	hwloc_bitmap_t of_core = hwloc_bitmap_alloc();

	for (hwloc_obj_t core = NULL;
	     of_core && (core = hwloc_get_next_obj_by_type(topology, type, core));) {
		hwloc_bitmap_and(of_core, core->cpuset, allowed);
		int first = hwloc_bitmap_first(of_core);

		if (first < 0)
			continue;
		if (out->usable_cores < capacity)
			cpus[out->usable_cores] = first;
		out->usable_cores++;
	}
	hwloc_bitmap_free(of_core);
	int threads = hwloc_bitmap_weight(allowed);
	out->usable_threads = threads > 0 ? threads : 0;
}

bool topology_read(const char *root, struct topology *out, int *cpus, int capacity)
{
	hwloc_topology_t topology;
	hwloc_bitmap_t allowed;

	if (!load(root, &topology))
		return false;
	allowed = hwloc_bitmap_alloc();
	*out = (struct topology){
		.packages = count_of(topology, HWLOC_OBJ_PACKAGE),
		.cores = count_of(topology, HWLOC_OBJ_CORE),
		.threads = count_of(topology, HWLOC_OBJ_PU),
		.numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE),
		.l1d_bytes = cache_bytes(topology, HWLOC_OBJ_L1CACHE),
		.l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE),
		.l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE),
	};
	if (allowed) {
		find_allowed(topology, root, allowed);
		count_usable(topology, allowed, out, cpus, capacity);
		hwloc_bitmap_list_snprintf(out->allowed, sizeof(out->allowed), allowed);
	}
	hwloc_bitmap_free(allowed);
	hwloc_topology_destroy(topology);
	return out->usable_threads > 0;
}
