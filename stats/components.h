/* Splits the variance of a cell's step time into levels and finds the best split of its time
 * (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013, two levels).
 * Variances are of logarithms. */
#ifndef PRONY_STATS_COMPONENTS_H
#define PRONY_STATS_COMPONENTS_H

#include <stddef.h>

#include "stats/diagnoses.h"

struct components {
	double within;	/* T1^2: variance of the mean over one second of a window, in s */
	double between; /* T2^2: variance between processes with infinitely long windows; may be < 0
			 */
	double window_s;    /* length of the measured windows */
	double cost_s;	    /* time of a process outside its window */
	double best_s;	    /* window with the smallest error in equal time, within the limits */
	double error_ratio; /* its standard error divided by that with window_s, in equal time */
};

/* Limits of proposed windows. */
#define COMPONENTS_WINDOW_MIN_S 0.5
#define COMPONENTS_WINDOW_MAX_S 120.0

/* Uses processes with blocks (at least two). window_s and cost_s are their averages. The variance
 * of a window's mean is estimated from ten batches of its blocks, because neighbouring blocks are
 * correlated. All members are NaN when there is too little data. */
void components_of(const struct diagnosed_process *processes, size_t count, double window_s,
		   double cost_s, struct components *out);

#endif
