/* Time to a target: how many steps trainings need, and which frameworks train alike; private to
 * report/. */
#ifndef PRONY_REPORT_ACCURACY_H
#define PRONY_REPORT_ACCURACY_H

#include "report/summary.h"

/* Fills row->target of the rows of one comparison. The row with the most trainings leads; where a
 * row's trainings have the same distribution, its time follows from the leader's steps. */
void accuracy_fill(struct summary_row *rows, size_t count);

/* Sets the members of a row's training in the object "target" of its cell (docs/exports.md). */
void accuracy_to_json(const struct summary_row *row, json_t *target);

#endif
