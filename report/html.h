/* One self-contained HTML page per report: Vega-Lite charts written as data, usable offline. */
#ifndef PRONY_REPORT_HTML_H
#define PRONY_REPORT_HTML_H

#include "base/strbuf.h"
#include "report/summary.h"

/* Writes the page for one or several runs (several: machines or dates side by side). The Vega bundle is
 * compiled in; without it the page has its tables and says that charts are missing and why. */
enum prony_status html_report(const struct summary *const *summaries, size_t count,
                              struct strbuf *out, struct error *err);

#endif
