#include "study/counted.h"

#include <stdlib.h>

#include "base/memory.h"

/* In a disturbed cell, processes whose disturbance is unknown count as disturbed. */
static bool is_disturbed(const struct run_cell *cell, size_t i)
{
	return cell->disturbances[i] == DISTURBANCE_SEEN ||
	       (cell->disturbances[i] == DISTURBANCE_UNKNOWN && cell->flags & CELL_FLAG_DISTURBED);
}

/* Returns the means that count, which the caller frees. */
static double *counted_means(const struct run_cell *cell, size_t *count)
{
	double *means = memory_alloc((cell->mean_count + 1) * sizeof *means);
	size_t disturbed = 0, n = 0;

	for (size_t i = 0; i < cell->mean_count; i++)
		disturbed += is_disturbed(cell, i);
	bool choose = estimate_leaves_out(cell->mean_count, disturbed);
	for (size_t i = 0; i < cell->mean_count; i++)
		if (!choose || !is_disturbed(cell, i))
			means[n++] = cell->means[i];
	*count = n;
	return means;
}

void counted_estimate(const struct run_cell *cell, bool looked, struct estimate *out)
{
	size_t count;
	double *means = counted_means(cell, &count);

	estimate_compute(means, count, 0, looked, out);
	free(means);
}

bool counted_wants_more(const struct run_cell *cell, const struct effort_row *effort, int repeat,
			bool *not_converged)
{
	size_t count;

	if (repeat > 0 || effort->stop_half_width <= 0)
		return effort_wants_more(effort, repeat, cell->means, cell->mean_count, cell->tried,
					 not_converged);
	double *means = counted_means(cell, &count);
	bool more = effort_wants_more(effort, 0, means, count, cell->tried, not_converged);
	free(means);
	return more;
}
