#include "run/window.h"

#include <math.h>

/* Returns as many of the steps as take no longer than that, but at least few_steps. */
static int64_t cut(int64_t steps, int64_t longest_ns, const struct run_limits *limits,
		   double step_ns)
{
	if ((double)steps * step_ns <= (double)longest_ns)
		return steps;
	int64_t fitting = (int64_t)((double)longest_ns / step_ns);
	if (fitting < limits->few_steps)
		fitting = limits->few_steps;
	return fitting < steps ? fitting : steps;
}

int64_t window_epoch(const struct plan_cell *cell, const struct run_limits *limits, double step_ns)
{
	return cell->epoch_ns <= 0 ? cell->epoch_steps
				   : cut(cell->epoch_steps, cell->epoch_ns, limits, step_ns);
}

/* Returns how many steps fill the window. */
static int64_t steps_of(const struct plan_cell *cell, const struct run_limits *limits,
			double step_ns, bool *few)
{
	int64_t steps = cell->steps;

	*few = false;
	if (steps > 0 && cell->epoch_ns > 0)
		return steps / cell->epoch_steps * window_epoch(cell, limits, step_ns);
	if (steps > 0)
		return steps;
	steps = at_least_one(ceil((double)limits->window_ns / step_ns));
	if (steps < limits->min_steps)
		steps = limits->min_steps;
	steps = cut(steps, limits->window_max_ns, limits, step_ns);
	*few = steps < limits->min_steps;
	return steps;
}

struct window_size window_size(const struct plan_cell *cell, const struct run_limits *limits,
			       double step_ns)
{
	struct window_size size;

	size.steps = steps_of(cell, limits, step_ns, &size.few);
	switch (cell->cell.sync) {
	case SYNC_END:
		size.every = cell->until.goal ? cell->until.every : size.steps;
		break;
	case SYNC_STEP:
		size.every = 1;
		if (size.steps > RECORDS_MAX)
			size.steps = RECORDS_MAX;
		break;
	default:
		size.every = at_least_one(ceil((double)limits->window_block_ns / step_ns));
		if (cell->until.goal)
			size.every = cell->until.every;
		if (cell->epoch_steps > 0)
			size.every = window_epoch(cell, limits, step_ns);
		if (size.every > size.steps)
			size.every = size.steps;
		/* Whole blocks only, so that all of them have the same weight. */
		if (cell->steps <= 0)
			size.steps = (size.steps + size.every - 1) / size.every * size.every;
		break;
	}
	return size;
}

int64_t window_coming_ns(const struct plan_cell *cell, const struct run_limits *limits,
			 double step_ns)
{
	double coming = (double)window_size(cell, limits, step_ns).steps * step_ns;
	int64_t least = limits->window_ns;

	return coming > (double)least ? (int64_t)coming : least;
}
