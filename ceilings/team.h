/* Private to ceilings/: threads that work at the same time, each on its own processor. */
#ifndef PRONY_CEILINGS_TEAM_H
#define PRONY_CEILINGS_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Thread i runs piece(data, i, i + 1). */
struct team_work {
	const int *cpus; /* the processor of each thread */
	int count;
	void (*piece)(void *data, size_t first, size_t end);
	void *data;
	int times_min; /* at least once */
};

/* The shortest time in ns in which all threads finished their piece, of at least times_min attempts
 * and as many as fit into limit_ns. The caller is the first thread; its affinity is restored. */
enum prony_status team_best(const struct team_work *work, int64_t limit_ns, double *best_ns,
			    struct error *err);

#endif
