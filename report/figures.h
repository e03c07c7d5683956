/* The figures of one or several runs, as the page shows them and `prony report --figures` writes
 * them. */
#ifndef PRONY_REPORT_FIGURES_H
#define PRONY_REPORT_FIGURES_H

#include "report/figure.h"
#include "report/history.h"
#include "report/summary.h"

/* Adds every figure that the runs have the data for; those of intervals and sensors where the runs
 * were loaded with them (STORE_INTERVALS, STORE_SERIES). `histories`: of their cells. */
void figures_of_runs(const struct summary *const *summaries, size_t count,
		     const struct history *histories, size_t history_count,
		     struct figures *figures);

#endif
