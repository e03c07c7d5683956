/* A parallel loop with threads that live only as long as the loop. There is no thread pool: the
 * orchestrator forks workers and measures between two loops and must then be single-threaded.
 * Starting a thread costs 20 us; an item is milliseconds of work. OpenMP is not used because its
 * threads keep spinning after a loop, and Clang would need a run-time library for it. */
#ifndef PRONY_BASE_PARALLEL_H
#define PRONY_BASE_PARALLEL_H

#include <stdatomic.h>
#include <stdint.h>

struct parallel_items {
	_Atomic int64_t next;
	int64_t count;
};

/* The next item that no thread has taken yet, or -1. */
int64_t parallel_next(struct parallel_items *items);

/* The number of cores that this process may use, 1 to 256. */
int parallel_cores(void);

/* How many threads are worth starting for so many multiplications: at most one per allowed core. */
int parallel_threads(int64_t multiplications);

/* Calls work(context, items) on up to `threads` threads, including the caller's, and returns when
 * all have finished. Each thread takes items until none are left. The result of an item must not
 * depend on the thread or on the order; then the results are the same for any number of threads. If
 * the system starts fewer threads, the running ones do all the work. */
void parallel_run(int64_t count, int threads,
		  void (*work)(void *context, struct parallel_items *items), void *context);

#endif
