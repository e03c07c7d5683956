#include "cli/room.h"

#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "diagnose/sources.h"
#include "samplers/procfs.h"

static int64_t physical_bytes(void)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE), bytes;
	if (pages <= 0 || page <= 0 || __builtin_mul_overflow(pages, page, &bytes))
		return -1;
	return bytes;
}

/* ulimit -v, which workers inherit. */
static int64_t address_space_bytes(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur > INT64_MAX)
		return -1;
	return (int64_t)limit.rlim_cur;
}

/* Those that are not known are negative. */
static struct room least(const struct room *rooms, size_t count)
{
	struct room least = {0};
	for (size_t i = 0; i < count; i++)
		if (rooms[i].bytes >= 0 && (!least.of || rooms[i].bytes < least.bytes))
			least = rooms[i];
	return least;
}

struct room room_for_worker(long long said_mib)
{
	const struct room rooms[] = {
		{procfs_available_bytes(), "90 % of the memory that is available"},
		{source_memory_limit(""), "90 % of the control group's limit"},
		{address_space_bytes(), "90 % of the limit on address space, ulimit -v"},
	};
	if (said_mib > 0)
		return (struct room){(int64_t)said_mib << 20, "--memory-limit"};
	struct room room = least(rooms, sizeof rooms / sizeof *rooms);
	room.bytes = room.bytes / 10 * 9;
	return room;
}

int64_t room_for_reference(void)
{
	const struct room rooms[] = {
		{physical_bytes(), "memory of the machine"},
		{source_memory_limit(""), "the control group's limit"},
		{address_space_bytes(), "the limit on address space"},
	};
	return least(rooms, sizeof rooms / sizeof *rooms).bytes / 2;
}
