/* Private to ceilings/: threads that do the same at once, each on a processor of its own. */
#ifndef PRONY_CEILINGS_TEAM_H
#define PRONY_CEILINGS_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* piece(data, i, i + 1) is what thread i does. */
struct team_work {
	const int *cpus; /* the processor of each thread */
	int count;
	void (*piece)(void *data, size_t first, size_t end);
	void *data;
	int times_min; /* at least once */
};

/* The shortest time in ns in which all threads did their piece, of times_min times and as many as
 * fit into limit_ns. The caller is the first of the threads and keeps its processors. */
enum prony_status team_best(const struct team_work *work, int64_t limit_ns, double *best_ns,
			    struct error *err);

#endif
