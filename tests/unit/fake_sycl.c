/* A fake SYCL, with the part of TBB behind it that is queried. The number of threads is set once
 * per process: the processors that the process may use at that time. */
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
