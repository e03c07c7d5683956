/* How long the window of a timed process will be. The test of steadiness needs it before it begins.
 */
#ifndef PRONY_RUN_WINDOW_H
#define PRONY_RUN_WINDOW_H

#include "plan/plan.h"
#include "run/run.h"

/* Of one request. */
#define RECORDS_MAX ((int64_t)1 << 20)

struct window_size {
	int64_t steps, every; /* every: steps between two synchronisations */
	bool few;	      /* fewer than the effort's least, because a step is that long */
};

/* Steps of an epoch of a cell that has such: of one that would take too long, as many as do not,
 * but the least that a window has. */
int64_t window_epoch(const struct plan_cell *cell, const struct run_limits *limits, double step_ns);

/* What a cell's window will have when a step takes step_ns. */
struct window_size window_size(const struct plan_cell *cell, const struct run_limits *limits,
			       double step_ns);

/* How long that is; not shorter than the effort's window: over a few fixed steps everything is
 * steady, and what they say then depends on when they came. */
int64_t window_coming_ns(const struct plan_cell *cell, const struct run_limits *limits,
			 double step_ns);

static inline int64_t at_least_one(double value)
{
	return value < 1 ? 1 : (int64_t)value;
}

#endif
