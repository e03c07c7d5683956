/* Functions shared by the summary's source files. */
#ifndef PRONY_REPORT_SUMMARY_INTERNAL_H
#define PRONY_REPORT_SUMMARY_INTERNAL_H

#include "report/summary.h"

/* Marks the rows of frameworks that are not installed, if there are many of them and others are
 * installed. */
void summary_fold(struct summary *summary);

/* Whether the cell was proved to compute the same as the reference. */
static inline bool summary_gate_passed(const struct stored_cell *cell)
{
	return cell->evidence && cell->gate == CELL_OK;
}

/* Returns the disturbances of a cell's processes. */
struct disturbances summary_disturbances(const struct stored_cell *cell);

/* Fills row->diagnoses from the processes that count. */
void summary_diagnose(struct arena *arena, const struct replicates *replicates,
		      struct summary_row *row);

/* Makes the key of the comparison that holds the same work by one rank of as many cores; 0: the
 * cell has one rank. */
size_t scaling_base_key(const struct cell *cell, enum scaling scaling, char key[SUMMARY_KEY_BYTES]);

/* Fills the efficiencies of all rows. */
void scaling_fill(struct summary *summary);

/* Returns the diagnoses found, an object each (docs/exports.md); new reference. */
json_t *summary_diagnoses_to_json(const struct summary_row *row);

#endif
