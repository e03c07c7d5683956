/* Computes the length of a timed process's window, which the test of steadiness needs before the
 * window begins. */
#ifndef PRONY_RUN_WINDOW_H
#define PRONY_RUN_WINDOW_H

#include "plan/plan.h"
#include "run/run.h"

/* Most records of one request. */
#define RECORDS_MAX ((int64_t)1 << 20)

struct window_size {
	int64_t steps, every; /* every: steps between two synchronisations */
	bool few;	      /* fewer than the effort's minimum, because a step is that long */
};

/* Returns the steps of an epoch, for a cell that has epochs. An epoch that would take too long is
 * shortened, but not below the minimum steps of a window. */
int64_t window_epoch(const struct plan_cell *cell, const struct run_limits *limits, double step_ns);

/* Returns the size of a cell's window if a step takes step_ns. */
struct window_size window_size(const struct plan_cell *cell, const struct run_limits *limits,
			       double step_ns);

/* Returns how long that window is, but at least the effort's window: over a few fixed steps every
 * process looks steady, and the result then depends on when they ran. */
int64_t window_coming_ns(const struct plan_cell *cell, const struct run_limits *limits,
			 double step_ns);

static inline int64_t at_least_one(double value)
{
	return value < 1 ? 1 : (int64_t)value;
}

#endif
