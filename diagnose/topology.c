#include "diagnose/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "diagnose/sources.h"

static bool leave_out(hwloc_topology_t topology, const char *component)
{
	return hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					     component) == 0;
}

/* hwloc reads its root and its verbosity only from the environment. That is safe here, because this
 * is a separate process. */
static bool discover(hwloc_topology_t topology, const char *root)
{
	/* hwloc's other sources query the processor and the C library of this machine, not the
	 * recorded one. */
	if (*root && (setenv("HWLOC_FSROOT", root, 1) != 0 || !leave_out(topology, "x86") ||
		      !leave_out(topology, "no_os")))
		return false;
	setenv("HWLOC_HIDE_ERRORS", "2", 0);
	/* The record describes the whole machine; the usable part is computed below. */
	return hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
	       hwloc_topology_load(topology) == 0;
}

static bool load(const char *root, hwloc_topology_t *out)
{
	hwloc_topology_t topology;

	if (hwloc_topology_init(&topology) != 0)
		memory_exhausted("host memory");
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

/* Finds the logical CPUs that this process may use. */
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

/* If a machine does not say which threads share a core, count each thread as a core. */
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

/* *out is zeroed. */
static bool ask_hwloc(const char *root, struct topology *out, int *cpus, int capacity)
{
	hwloc_topology_t topology;
	hwloc_bitmap_t allowed;

	if (!load(root, &topology))
		return false;
	allowed = hwloc_bitmap_alloc();
	out->packages = count_of(topology, HWLOC_OBJ_PACKAGE);
	out->cores = count_of(topology, HWLOC_OBJ_CORE);
	out->threads = count_of(topology, HWLOC_OBJ_PU);
	out->numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE);
	out->l1d_bytes = cache_bytes(topology, HWLOC_OBJ_L1CACHE);
	out->l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
	out->l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE);
	if (allowed) {
		find_allowed(topology, root, allowed);
		count_usable(topology, allowed, out, cpus, capacity);
		hwloc_bitmap_list_snprintf(out->allowed, sizeof(out->allowed), allowed);
	}
	hwloc_bitmap_free(allowed);
	hwloc_topology_destroy(topology);
	return out->usable_threads > 0;
}

static bool write_all(int fd, const void *bytes, size_t length)
{
	for (const char *at = bytes; length > 0;) {
		ssize_t written = write(fd, at, length);

		if (written <= 0)
			return false;
		at += written;
		length -= (size_t)written;
	}
	return true;
}

static size_t read_all(int fd, void *bytes, size_t length)
{
	size_t used = 0;

	while (used < length) {
		ssize_t got = read(fd, (char *)bytes + used, length - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		used += (size_t)got;
	}
	return used;
}

/* The child sends this, followed by its list of CPUs. */
struct answer {
	bool known;
	struct topology topology;
};

static int *answer_once(const char *root, int capacity, struct answer *answer)
{
	size_t bytes = (size_t)capacity * sizeof(int);
	int *cpus = memset(memory_alloc(bytes), 0, bytes);

	/* Padding bytes are compared too. */
	memset(answer, 0, sizeof(*answer));
	errno = 0;
	answer->known = ask_hwloc(root, &answer->topology, cpus, capacity);
	if (!answer->known)
		memory_check(errno);
	return cpus;
}

/* When memory runs out hwloc crashes or silently leaves things out. So ask twice and accept only
 * equal answers. */
static _Noreturn void answer_and_end(const char *root, int capacity, int fd)
{
	size_t bytes = (size_t)capacity * sizeof(int);
	struct answer first, second;
	int *cpus = answer_once(root, capacity, &first);
	const int *again = answer_once(root, capacity, &second);

	_exit(memcmp(&first, &second, sizeof(first)) == 0 && memcmp(cpus, again, bytes) == 0 &&
			      write_all(fd, &first, sizeof(first)) && write_all(fd, cpus, bytes)
		      ? 0
		      : 1);
}

bool topology_read(const char *root, struct topology *out, int *cpus, int capacity)
{
	struct answer answer = {.known = false};
	size_t list_bytes = (size_t)capacity * sizeof(*cpus);
	int ends[2], ended = 0;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	pid_t child = fork();
	if (child == 0)
		answer_and_end(root, capacity, ends[1]);
	if (child < 0)
		memory_check(errno);
	close(ends[1]);
	bool whole = child > 0 && read_all(ends[0], &answer, sizeof(answer)) == sizeof(answer) &&
		     read_all(ends[0], cpus, list_bytes) == list_bytes;
	close(ends[0]);
	while (child > 0 && waitpid(child, &ended, 0) < 0 && errno == EINTR)
		;
	/* A machine with unknown cores would look like a different machine, so do not continue. */
	if (child > 0 && (!whole || ended != 0))
		memory_exhausted("libhwloc failed to read the machine's topology; memory may be");
	if (answer.known)
		*out = answer.topology;
	return answer.known;
}
