/* The parts of the HTML page; only report/html*.c use this. */
#ifndef PRONY_REPORT_HTML_INTERNAL_H
#define PRONY_REPORT_HTML_INTERNAL_H

#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
#include "report/names.h"
#include "report/summary.h"

#define HTML_LABEL_BYTES 96

/* What the page shows, over all its runs. Everything lives in the arena or is borrowed. */
struct html_page {
	struct arena arena;
	const struct summary *const *summaries;
	size_t count;			  /* of runs */
	char (*labels)[HTML_LABEL_BYTES]; /* of each run, all different */
	const char **frameworks;	  /* spellings, in order of appearance */
	size_t framework_count;
	struct names framework_names;	 /* the same, to be found */
	const struct cell **comparisons; /* a cell of each, in order of appearance */
	size_t comparison_count;
	size_t **of_run; /* of each run, by comparison of the page: its number in the summary, or
			    NAMES_NONE */
};

void html_page_init(struct html_page *page, const struct summary *const *summaries, size_t count);
void html_page_release(struct html_page *page);

/* The rows of a comparison of the page in a run; *count 0 when the run has none. */
const struct summary_row *html_rows(const struct html_page *page, size_t run, size_t comparison,
				    size_t *count);

/* That of a framework among them; NULL when the run has none. */
const struct summary_row *html_find(const struct html_page *page, size_t run, size_t comparison,
				    const char *framework);

/* Median of a field of process_fields over the ok processes of a cell; NaN when none has it or the
 * cell's figures are not to be shown. */
double html_median(const struct stored_cell *cell, const char *field);

/* Vega-Lite specifications (https://vega.github.io/vega-lite/docs/spec.html) of a comparison with
 * their data; NULL when there is nothing to draw. New references. */
json_t *html_step_chart(const struct html_page *page, size_t comparison);
json_t *html_startup_chart(const struct html_page *page, size_t comparison);

/* Sections of the page. */
void html_overview(const struct html_page *page, struct strbuf *out);
void html_comparison_table(const struct html_page *page, size_t comparison, struct strbuf *out);
void html_ledger(const struct html_page *page, struct strbuf *out);
void html_parity(const struct html_page *page, struct strbuf *out);
void html_frameworks(const struct html_page *page, struct strbuf *out);
void html_runs(const struct html_page *page, struct strbuf *out);

/* Style sheet and script, line by line; end with NULL. */
extern const char *const html_style[];
extern const char *const html_script[];

#endif
