/* Counts threads that a framework started, if it does not report them itself. */
#ifndef PRONY_ADAPTERS_THREADS_H
#define PRONY_ADAPTERS_THREADS_H

#include <stdint.h>

/* The number of threads of this process whose name (comm, at most 15 bytes) contains `part`; with
 * "" all threads, the caller included. -1 when /proc cannot be read. */
int threads_count(const char *part);

/* MXCSR of the calling thread; 0 on processors without it. */
uint32_t threads_mxcsr(void);

#endif
