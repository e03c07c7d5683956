/*
 * Writes one self-contained HTML page per report: charts as SVG, tables, filters; usable offline.
 */
#ifndef PRONY_REPORT_HTML_H
#define PRONY_REPORT_HTML_H

#include "base/strbuf.h"
#include "report/history.h"
#include "report/summary.h"

/* The largest number of comparisons with their own section, and of rows in a table. For the rest,
 * the page gives what they have in common and where to find them. */
enum { HTML_SECTIONS_MAX = 60, HTML_ROWS_MAX = 400 };

/* Writes the page for one or several runs (several: machines or dates side by side). It contains
 * everything it needs, and its content security policy refuses the network. Charts of intervals and
 * sensors need runs loaded with them. If there are too many comparisons to read, the first have
 * their own sections and the others are summarised together. `histories`: histories of cells of the
 * runs, up to the newest of these. */
enum prony_status html_report(const struct summary *const *summaries, size_t count,
			      const struct history *histories, size_t history_count,
			      struct strbuf *out, struct error *err);

#endif
