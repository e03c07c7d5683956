/* Functions shared by the summary's source files. */
#ifndef PRONY_REPORT_SUMMARY_INTERNAL_H
#define PRONY_REPORT_SUMMARY_INTERNAL_H

#include "report/summary.h"

/* Marks the rows of frameworks that are not installed, if there are many of them and others are
 * installed. */
void summary_fold(struct summary *summary);

/* Returns the disturbances of a cell's processes. */
struct disturbances summary_disturbances(const struct stored_cell *cell);

/* Fills row->diagnoses from the processes that count. */
void summary_diagnose(struct arena *arena, const struct replicates *replicates,
		      struct summary_row *row);

/* Returns the diagnoses found, an object each (docs/exports.md); new reference. */
json_t *summary_diagnoses_to_json(const struct summary_row *row);

/* Fills row->latency of a cell of `--sync step` from the processes that count. It takes a
 * percentile p of each process, then the same estimate over processes as for the step. Each process
 * needs N (1 - p) of at least 10, with N steps in its window (docs/measurement.md); otherwise n =
 * 0. */
void latency_fill(struct arena *arena, const struct stored_cell *cell,
		  const struct replicates *replicates, struct summary_row *row);

/* Fills row->costs from its cell and row->flops_per_step; NaN if the cell's figures may not be
 * shown. `environment`: the run's machine record, or NULL. */
void costs_fill(const json_t *environment, struct summary_row *row);

/* Adds why a cell's processes have no energy and so no power, from their null_reasons; false if
 * none gives a reason. */
bool costs_power_reason(const struct stored_cell *cell, struct strbuf *out);

#endif
