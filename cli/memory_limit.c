#include "cli/memory_limit.h"

#include <stddef.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "diagnose/sources.h"

/* ulimit -v; workers inherit it. */
static int64_t address_space_bytes(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur > INT64_MAX)
		return -1;
	return (int64_t)limit.rlim_cur;
}

/* The lowest of the known limits; unknown ones are negative. */
static struct memory_limit least(const struct memory_limit *rooms, size_t count)
{
	struct memory_limit least = {0};
	for (size_t i = 0; i < count; i++)
		if (rooms[i].bytes >= 0 && (!least.of || rooms[i].bytes < least.bytes))
			least = rooms[i];
	return least;
}

struct memory_limit memory_limit_worker(long long said_mib)
{
	const struct memory_limit rooms[] = {
		{source_meminfo_bytes("", "MemAvailable"), "90 % of the available memory"},
		{source_memory_limit(""), "90 % of the control group's limit"},
		{address_space_bytes(), "90 % of the address space limit, ulimit -v"},
	};
	if (said_mib > 0)
		return (struct memory_limit){(int64_t)said_mib << 20, "--memory-limit"};
	struct memory_limit room = least(rooms, sizeof rooms / sizeof *rooms);
	room.bytes = room.bytes / 10 * 9;
	return room;
}

int64_t memory_limit_reference(void)
{
	const struct memory_limit rooms[] = {
		{memory_physical_bytes(), "memory of the machine"},
		{source_memory_limit(""), "the control group's limit"},
		{address_space_bytes(), "the address space limit"},
	};
	return least(rooms, sizeof rooms / sizeof *rooms).bytes / 2;
}
