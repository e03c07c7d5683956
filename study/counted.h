/* The processes of a cell that count during a run. They are the ones from which its table computes
 * the estimate (report/replicates.h), so that the stop rule and the table agree. */
#ifndef PRONY_STUDY_COUNTED_H
#define PRONY_STUDY_COUNTED_H

#include "run/run.h"
#include "stats/effort.h"

/* `looked` as in estimate_compute. */
void counted_estimate(const struct run_cell *cell, bool looked, struct estimate *out);

/* Returns effort_wants_more() for the processes that count; for all if their number is fixed
 * (`repeat`, quick effort). */
bool counted_wants_more(const struct run_cell *cell, const struct effort_row *effort, int repeat,
			bool *not_converged);

#endif
