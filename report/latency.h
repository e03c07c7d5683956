/* Percentiles of single steps, where each was waited for. */
#ifndef PRONY_REPORT_LATENCY_H
#define PRONY_REPORT_LATENCY_H

#include "report/summary.h"

/*
 * Fills row->latency of a cell of `--sync step` from the processes that count: a percentile p of
 * each process, then the same estimate over processes as the step's. It is there only where in each
 * of them N (1 - p) is at least 10, of N steps in the window (docs/measurement.md); else n = 0.
 */
void latency_fill(struct arena *arena, const struct stored_cell *cell,
		  const struct replicates *replicates, struct summary_row *row);

#endif
