/* A sweep in one table: frameworks against the values of the number that a run varies. */
#ifndef PRONY_REPORT_PIVOT_H
#define PRONY_REPORT_PIVOT_H

#include "report/summary.h"

#define PIVOT_LEGEND                                                                               \
	"step time; +/-: half width of the 95 % interval over processes; *: fastest or tied; ?: "  \
	"place not settled; prony show --full: a table each, with intervals and ranks"

/* The numeric axis of which a run has at least three values, if there is one such axis and each
 * cell is one of its sweep; AXIS_COUNT when there is none, or several. */
enum axis_id pivot_axis(const struct summary *summary);

/* Adds the usual table of a comparison. */
typedef void pivot_usual(const struct summary *summary, size_t comparison, bool colour, int width,
			 struct strbuf *out);

/* The tables, one for each combination of the other axes; instead of those of summary_table, but
 * for what the axis means nothing in (inference has no learning rate): that has its usual table.
 * True when there is any such one. */
bool pivot_render(const struct summary *summary, enum axis_id axis, pivot_usual *usual, bool colour,
		  int width, struct strbuf *out);

#endif
