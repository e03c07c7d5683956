/*
 * When a cell will have enough processes. A cell stops at the first interval that is narrow enough
 * (stats/effort.h): a stopping time, which comes earlier, and scatters more, than the number that
 * its spread would ask for in advance. It is drawn: a spread from what is known of it, processes
 * that lie so far apart, and the rule on them.
 */
#ifndef PRONY_STATS_STOPPING_H
#define PRONY_STATS_STOPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/effort.h"

enum { STOPPING_PROCESSES_MAX = 40, STOPPING_DRAWS = 128 };

/* The rule of an effort that stops by the interval: with n processes, of start to cap, it has
 * stopped where their standard deviation (of logarithms) is at most narrow[n]. */
struct stopping_rule {
	int start, cap;
	double narrow[STOPPING_PROCESSES_MAX + 1];
};

void stopping_rule_init(struct stopping_rule *rule, const struct effort_row *effort);

/* What is known of a cell: `n` processes count and have the standard deviation
 * `spread` (of logarithms; any value where n < 2). Of it was thought `prior`, as if from `weight`
 * degrees of freedom (> 0). In each draw a process to come does not count with a probability of
 * `lost` (STOPPING_DRAWS of them, below 1; NULL: all count) and is made up for. */
struct stopping_known {
	int n;
	double spread, prior;
	int weight;
	const double *lost;
	bool shared; /* most of the spread is the machine's: drawn alike in all cells */
};

/*
 * Writes STOPPING_DRAWS numbers of processes in the end: those that count, each above n unless the
 * rule ends the cell there, and those to come that will not. The same `seed` gives the same
 * numbers, and of cells that share one a wide spread is in the same places. The variance is
 * drawn from its posterior, a scaled inverse chi squared (Gelman et al., Bayesian Data
 * Analysis, 3.2).
 */
void stopping_draw(const struct stopping_rule *rule, const struct stopping_known *known,
		   uint64_t seed, int counts[STOPPING_DRAWS]);

#endif
