/* The few constants of the measuring protocol, in one table, each with its reason. */
#ifndef PRONY_STATS_EFFORT_H
#define PRONY_STATS_EFFORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/estimate.h"

/* Rows in the order quick, default, rigorous (enum effort of spec/). */
struct effort_row {
	const char *name;
	int processes_start, processes_cap;
	int64_t warm_up_cap_ns;
	int64_t window_ns;
	int64_t min_steps;
	double stop_half_width; /* 0 = none */
	bool test_steadiness;
};
extern const struct effort_row effort_table[3];

#define BLOCK_MIN_NS                                                                               \
	INT64_C(250000000) /* blocks shorter than this drown in clock and sync noise               \
			    */
#define WINDOW_MAX_NS INT64_C(120000000000) /* a window never exceeds two minutes */
#define FEW_STEPS 3	   /* steps of a cell whose step is longer than WINDOW_MAX/3 */
#define OK_PROCESSES_MIN 3 /* committed results that an ok cell needs */

/* Should another process of the cell run? `means` are those of the processes that count so far,
 * `tried` all that were started: at most twice as many as are wanted. *not_converged is set when it
 * stops at the cap with the interval too wide. */
bool effort_wants_more(const struct effort_row *effort, int fixed_repeat, const double *means,
		       size_t n, int tried, bool *not_converged);

#endif
