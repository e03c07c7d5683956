#include "stats/effort.h"

#define SECOND_NS INT64_C(1000000000)

/* docs/measurement.md gives the reasons: quick has many short processes, because t with 2 degrees
 * of freedom makes an interval of three useless, and eleven take no longer than three of 2 s did;
 * the other windows outlast clock throttling and drown the noise of single steps, the starts are
 * where peeking at the interval stops misleading (6.4 % false from 5). */
const struct effort_row effort_table[3] = {
	{.name = "quick",
	 .processes_start = 11,
	 .processes_cap = 11,
	 .warm_up_cap_ns = SECOND_NS * 15 / 100,
	 .window_ns = SECOND_NS * 4 / 10,
	 .min_steps = 3,
	 .stop_half_width = 0,
	 .test_steadiness = false},
	{.name = "default",
	 .processes_start = 5,
	 .processes_cap = 12,
	 .warm_up_cap_ns = 30 * SECOND_NS,
	 .window_ns = 10 * SECOND_NS,
	 .min_steps = 20,
	 .stop_half_width = 0.02,
	 .test_steadiness = true},
	{.name = "rigorous",
	 .processes_start = 10,
	 .processes_cap = 40,
	 .warm_up_cap_ns = 60 * SECOND_NS,
	 .window_ns = 20 * SECOND_NS,
	 .min_steps = 30,
	 .stop_half_width = 0.01,
	 .test_steadiness = true},
};

/* A process that failed by accident, or does not count because the machine did other things, is
 * made up for, but not without end. As a cell ends at its second failure in a row, twice as many
 * processes hold the results that are wanted, unless others disturb most of them. */
static bool may_try(int wanted, int tried)
{
	return tried < 2 * wanted;
}

bool effort_wants_more(const struct effort_row *effort, int fixed_repeat, const double *means,
		       size_t n, int tried, bool *not_converged)
{
	*not_converged = false;
	/* A suite that fixes the number has automatic stopping switched off. */
	if (fixed_repeat > 0)
		return n < (size_t)fixed_repeat && may_try(fixed_repeat, tried);
	if (n < (size_t)effort->processes_start)
		return may_try(effort->processes_start, tried);
	if (effort->stop_half_width <= 0)
		return false;
	struct estimate estimate;
	estimate_compute(means, n, effort->stop_half_width, true, &estimate);
	if (estimate.half_width <= effort->stop_half_width)
		return false;
	if (n < (size_t)effort->processes_cap && may_try(effort->processes_cap, tried))
		return true;
	*not_converged = true;
	return false;
}
