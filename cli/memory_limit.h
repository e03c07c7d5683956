/* How much memory there is for what a command starts. */
#ifndef PRONY_CLI_MEMORY_LIMIT_H
#define PRONY_CLI_MEMORY_LIMIT_H

#include <stdint.h>

struct memory_limit {
	int64_t bytes;	/* 0 = not known */
	const char *of; /* what that is, for a message */
};

/* For the processes of a cell: what the user says (MiB, 0 = nothing), else 90 % of what can be had.
 */
struct memory_limit memory_limit_worker(long long said_mib);

/* For the reference, which runs when nothing is timed: half of all that this process may ever have,
 * however much of it is taken just now: how large a gate is must not depend on the moment. */
int64_t memory_limit_reference(void);

#endif
