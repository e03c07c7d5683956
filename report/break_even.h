/* After how many steps a contender overtakes another that starts sooner; private to report/. */
#ifndef PRONY_REPORT_BREAK_EVEN_H
#define PRONY_REPORT_BREAK_EVEN_H

#include "report/replicates.h"
#include "report/summary.h"

/* Fills row->overtakes and row->break_even of the rows of one comparison. A framework with options
 * is held against itself without (pytorch+compile against pytorch), all others against pytorch. */
void break_even_fill(struct arena *arena, struct summary_row *rows,
		     const struct replicates *replicates, size_t count);

#endif
