/* As much of SYCL, and of the TBB behind it, as is asked for: once in a process, as many threads as
 * it may then use processors. */
#include <sched.h>

int fake_sycl_here(void);
int fake_tbb_threads(const void *arena) __asm__(
	"_ZN3tbb6detail2r115max_concurrencyEPKNS0_2d115task_arena_baseE");

int fake_sycl_here(void)
{
	return 2;
}

int fake_tbb_threads(const void *arena)
{
	static int threads;
	cpu_set_t allowed;

	(void)arena;
	if (threads == 0 && sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
		threads = CPU_COUNT(&allowed);
	return threads;
}
