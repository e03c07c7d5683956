/* The ranks of a comparison; only report/summary.c uses this. */
#ifndef PRONY_REPORT_RANKING_H
#define PRONY_REPORT_RANKING_H

#include "report/replicates.h"
#include "report/summary.h"

/* Fills ranks, ties and the ratios to native of the rows of one comparison, the comparable ones
 * first and by their step time; replicates: those of each row. Then no row stands behind one that
 * is known to be slower. */
void ranking_fill(struct summary_row *rows, const struct replicates *replicates, size_t count);

#endif
