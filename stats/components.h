/*
 * Where the variance of a cell's step time is, and how its time were split best (Kalibera and
 * Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013, two levels). Variances are of
 * logarithms.
 */
#ifndef PRONY_STATS_COMPONENTS_H
#define PRONY_STATS_COMPONENTS_H

#include <stddef.h>

#include "stats/diagnoses.h"

struct components {
	double within;	    /* T1^2: variance of the mean over one second of a window, in s */
	double between;	    /* T2^2: variance of processes whose windows had no end; may be < 0 */
	double window_s;    /* as it was */
	double cost_s;	    /* of a process beside its window */
	double best_s;	    /* window of the smallest error in equal time, within the limits */
	double error_ratio; /* standard error with it / with window_s, in equal time */
};

/* Windows that are proposed lie between these. */
#define COMPONENTS_WINDOW_MIN_S 0.5
#define COMPONENTS_WINDOW_MAX_S 120.0

/*
 * From processes of which each has blocks (at least 2 such); window_s and cost_s are theirs on
 * average. The variance of a window's mean comes from ten batches of its blocks, because blocks
 * depend on each other. All members NaN where too little is known.
 */
void components_of(const struct diagnosed_process *processes, size_t count, double window_s,
		   double cost_s, struct components *out);

#endif
