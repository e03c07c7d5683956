/* The ranks of a comparison; private to report/summary.c. */
#ifndef PRONY_REPORT_RANKING_H
#define PRONY_REPORT_RANKING_H

#include "report/replicates.h"
#include "report/summary.h"

/* Fills the ranks, ties and ratios to native of the rows of one comparison. The input has
 * comparable rows first, by step time; `replicates` has an entry for each row. Afterwards no row
 * comes after one that is known to be slower. */
void ranking_fill(struct summary_row *rows, const struct replicates *replicates, size_t count);

#endif
