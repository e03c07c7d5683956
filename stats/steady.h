/* Detects the steady state of a process: the least-squares slope over the trailing half of the
 * blocks. */
#ifndef PRONY_STATS_STEADY_H
#define PRONY_STATS_STEADY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "samples/protocol.h"

#define STEADY_MIN_NS INT64_C(10000000000) /* a process is never steady before */

/* Rule of docs/measurement.md: over the trailing half of the elapsed warm-up (at least 5 s of it),
 * fit block mean step time against time: slope b with standard error SE; steady when (|b| + 2 SE) x
 * window / mean <= 2 %. False while there are fewer than 4 blocks in that half. */
bool steady_reached(const struct step_record *blocks, const int64_t *block_steps, size_t count,
		    int64_t window_ns);

#endif
