/* The charts of one or several runs, as the page shows them and `prony report --figures` writes
 * them. */
#ifndef PRONY_REPORT_CHARTS_H
#define PRONY_REPORT_CHARTS_H

#include "report/chart.h"
#include "report/history.h"
#include "report/summary.h"

/* Adds every chart that the runs have the data for; those of intervals and sensors where the runs
 * were loaded with them (STORE_INTERVALS, STORE_SERIES). `histories`: of their cells. */
void charts_of_runs(const struct summary *const *summaries, size_t count,
		    const struct history *histories, size_t history_count, struct charts *charts);

#endif
