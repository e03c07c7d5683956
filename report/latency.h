/* Percentiles of single steps, for cells that wait for each step. */
#ifndef PRONY_REPORT_LATENCY_H
#define PRONY_REPORT_LATENCY_H

#include "report/summary.h"

/* Fills row->latency of a cell of `--sync step` from the processes that count. It takes a
 * percentile p of each process, then the same estimate over processes as for the step. Each process
 * needs N (1 - p) of at least 10, with N steps in its window (docs/measurement.md); otherwise n =
 * 0. */
void latency_fill(struct arena *arena, const struct run_meta *meta, const struct stored_cell *cell,
		  const struct replicates *replicates, struct summary_row *row);

#endif
