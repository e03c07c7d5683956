/*
 * Prints a sweep in one table: frameworks against the values of the numeric axis that a run varies.
 */
#ifndef PRONY_REPORT_PIVOT_H
#define PRONY_REPORT_PIVOT_H

#include "report/summary.h"

#define PIVOT_LEGEND                                                                               \
	"step time; +/-: half width of the 95 % interval over processes; *: fastest or tied; ?: "  \
	"rank not settled; prony show --full: a table per value, with intervals and ranks"

/* Returns the numeric axis of which a run has at least three values, if there is exactly one and
 * each cell belongs to one of its sweeps; AXIS_COUNT if there is none, or several. */
enum axis_id pivot_axis(const struct summary *summary);

/* Adds the usual table of a comparison. */
typedef void pivot_usual(const struct summary *summary, size_t comparison, bool colour, int width,
			 struct strbuf *out);

/* Adds a table for each combination of the other axes, instead of those of summary_table.
 * Comparisons to which the axis does not apply (inference has no learning rate) get their usual
 * table; returns whether there are any. */
bool pivot_render(const struct summary *summary, enum axis_id axis, pivot_usual *usual, bool colour,
		  int width, struct strbuf *out);

#endif
