/* Threads that a framework has started, counted where it does not say them itself. */
#ifndef PRONY_ADAPTERS_THREADS_H
#define PRONY_ADAPTERS_THREADS_H

#include <stdint.h>

/* Number of threads of this process in whose name (comm, at most 15 bytes) `part` stands; of all,
 * the caller too, with "". -1 where /proc does not say. */
int threads_count(const char *part);

/* MXCSR of the calling thread; 0 on processors that have none. */
uint32_t threads_mxcsr(void);

#endif
