/* The charts of one or several runs, for the HTML page and for `prony report --figures`. */
#ifndef PRONY_REPORT_CHARTS_H
#define PRONY_REPORT_CHARTS_H

#include "report/chart.h"
#include "report/history.h"
#include "report/summary.h"

/* Adds every chart for which the runs have data. Charts of intervals and sensors need runs loaded
 * with them (STORE_INTERVALS, STORE_SERIES). `histories`: histories of cells of the runs. */
void charts_of_runs(const struct summary *const *summaries, size_t count,
		    const struct history *histories, size_t history_count, struct charts *charts);

#endif
