/* The memory available to the processes that a command starts. */
#ifndef PRONY_CLI_MEMORY_LIMIT_H
#define PRONY_CLI_MEMORY_LIMIT_H

#include <stdint.h>

struct memory_limit {
	int64_t bytes;	/* 0 = unknown */
	const char *of; /* what sets the limit, for a message */
};

/* For the processes of a cell: the user's limit (MiB, 0 = none), otherwise 90 % of the available
 * memory. */
struct memory_limit memory_limit_worker(long long said_mib);

/* For the reference interpreter, which runs while nothing is timed: half of the memory that this
 * process may ever use, even if some is in use now. The size of a gate must not depend on the
 * moment. */
int64_t memory_limit_reference(void);

#endif
