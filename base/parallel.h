/*
 * A loop whose items are shared out between threads that live only as long as it does. No pool: the
 * orchestrator forks workers and measures between two of these loops, and must then have no thread
 * but its own; starting one costs 20 us, an item is milliseconds of work. No OpenMP: its threads
 * spin on after a loop, and Clang would need a run-time library of its own.
 */
#ifndef PRONY_BASE_PARALLEL_H
#define PRONY_BASE_PARALLEL_H

#include <stdatomic.h>
#include <stdint.h>

struct parallel_items {
	_Atomic int64_t next;
	int64_t count;
};

/* The next item that nobody has taken, or -1. */
int64_t parallel_next(struct parallel_items *items);

/* One for each core that this process may use, 1 to 256. */
int parallel_cores(void);

/*
 * Calls work(context, items) on up to `threads` threads, the caller's among them, and returns when
 * all are through; each takes items until there are none. What an item writes must not depend on
 * who takes it, nor on the order: results are then the same whatever the number of threads. Where
 * the system gives fewer threads, those that there are do all the work.
 */
void parallel_run(int64_t count, int threads,
		  void (*work)(void *context, struct parallel_items *items), void *context);

#endif
