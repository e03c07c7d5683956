/* One self-contained HTML page per report: Vega-Lite charts written as data, usable offline. */
#ifndef PRONY_REPORT_HTML_H
#define PRONY_REPORT_HTML_H

#include "base/strbuf.h"
#include "report/summary.h"

/*
 * Writes the page for one or several runs (several: machines or dates side by side). Everything it
 * needs is in it, and it refuses the network by a content security policy. The Vega libraries
 * (vega-bundle.js, of path_share() or of build/deps there) go in as they are; without them the page
 * has its tables and says that charts are missing and why.
 */
enum prony_status html_report(const struct summary *const *summaries, size_t count,
			      struct strbuf *out, struct error *err);

#endif
