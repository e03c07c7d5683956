/* What the files of the summary share. */
#ifndef PRONY_REPORT_SUMMARY_INTERNAL_H
#define PRONY_REPORT_SUMMARY_INTERNAL_H

#include "report/summary.h"

/* Marks the rows of frameworks that are not installed, where there are many of them and others are
 * here. */
void summary_fold(struct summary *summary);

/* What the machine did to a cell. */
struct disturbances summary_disturbances(const struct stored_cell *cell);

/* Fills row->diagnoses and row->components from the processes that count. */
void summary_diagnose(struct arena *arena, const struct replicates *replicates,
		      struct summary_row *row);

/* What was found, an object each (docs/exports.md); new reference. */
json_t *summary_diagnoses_to_json(const struct summary_row *row);
json_t *summary_components_to_json(const struct summary_row *row);

#endif
