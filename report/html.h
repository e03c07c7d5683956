/* One self-contained HTML page per report: figures as SVG, tables, filters; usable offline. */
#ifndef PRONY_REPORT_HTML_H
#define PRONY_REPORT_HTML_H

#include "base/strbuf.h"
#include "report/history.h"
#include "report/summary.h"

/* So many comparisons have a section of their own, and so many rows a table: of more, what they
 * have in common is told, and where the rest is. */
enum { HTML_SECTIONS_MAX = 60, HTML_ROWS_MAX = 400 };

/*
 * Writes the page for one or several runs (several: machines or dates side by side). Everything it
 * needs is in it, and it refuses the network by a content security policy. Figures of intervals and
 * sensors are in it where the runs were loaded with them; of more comparisons than anybody reads,
 * the first have sections of their own and the others are told together. `histories`: of cells of
 * the runs, up to the newest of them.
 */
enum prony_status html_report(const struct summary *const *summaries, size_t count,
			      const struct history *histories, size_t history_count,
			      struct strbuf *out, struct error *err);

#endif
