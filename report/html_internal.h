/* The parts of the HTML page; private to report/html*.c and charts*.c. */
#ifndef PRONY_REPORT_HTML_INTERNAL_H
#define PRONY_REPORT_HTML_INTERNAL_H

#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
#include "report/chart.h"
#include "report/figures.h"
#include "report/history.h"
#include "report/html.h"
#include "report/labels.h"
#include "report/names.h"
#include "report/published.h"
#include "report/summary.h"

#define HTML_LABEL_BYTES 96

/* The content of the page, over all its runs. All data are in the arena or borrowed. */
struct html_page {
	struct arena arena;
	const struct summary *const *summaries;
	size_t count;			  /* number of runs */
	char (*labels)[HTML_LABEL_BYTES]; /* one for each run, all different */
	const char **frameworks;	  /* spellings, in order of appearance */
	size_t framework_count;
	struct names framework_names;	 /* the same, for look-up */
	struct names coloured;		 /* the same and those published for the runs' suites */
	const char **colours;		 /* one for each of these, "#rrggbb" */
	const struct cell **comparisons; /* a cell of each comparison, in order of appearance */
	size_t comparison_count;
	struct labels differing;	 /* the axes in which the comparisons differ */
	char common[CELL_KEY_BYTES];	 /* the others, if there are several comparisons */
	const struct history *histories; /* histories of cells of the runs, borrowed */
	size_t history_count;
	struct published published; /* empty if the file cannot be read */
	size_t **of_run; /* for each run, by comparison of the page: the comparison's number in the
			    summary, or NAMES_NONE */
};

/* `histories`: histories of cells of the runs, borrowed. */
void html_page_init(struct html_page *page, const struct summary *const *summaries, size_t count,
		    const struct history *histories, size_t history_count);
void html_page_release(struct html_page *page);

/* Returns the rows of a comparison of the page in a run; *count is 0 if the run has none. */
const struct summary_row *html_rows(const struct html_page *page, size_t run, size_t comparison,
				    size_t *count);
/* Returns the number of these rows in all runs. */
size_t html_row_count(const struct html_page *page, size_t comparison);

/* Writes what tells the cell's comparison from the page's other ones: "lenet, batch 8". It is the
 * whole title if the page has only one. */
void html_work(const struct html_page *page, const struct cell *cell, char *out, size_t out_bytes);

/* Returns the row of a framework among them; NULL if the run has none. */
const struct summary_row *html_find(const struct html_page *page, size_t run, size_t comparison,
				    const char *framework);

/* Returns the ratio by which the comparison's frameworks are compared: that to native or, if a run
 * has none with a figure, that to the fastest. */
enum figure_id html_ratio(const struct html_page *page, size_t comparison);

/* Whether at most one framework has a place in a comparison of a run (its number there). */
bool html_is_alone(const struct html_page *page, size_t run, size_t comparison);

/* Returns the class of a row's status: "good", "bad" if it failed, "none" if it cannot run. */
const char *html_status_class(const struct summary_row *row);

/* Returns the colour of a framework of the page, measured or published; it is the same in all
 * charts. */
const char *html_colour(const struct html_page *page, const char *framework);

/* Writes the name of a framework's row, with the run if there are several runs. */
void html_row_label(const struct html_page *page, size_t run, const char *framework, char *out,
		    size_t out_bytes);

/* The axes by which a reader hides rows, columns, bars and curves, as data-NAME attributes of
 * elements. The framework comes first. */
enum { HTML_FILTERS = 11 };
extern const enum axis_id html_filters[HTML_FILTERS];
void html_attribute(const char *name, const char *value, struct strbuf *out);
/* Adds an attribute for each axis that applies to the cell: all but the framework, or all. */
void html_attributes(const struct cell *cell, bool framework, struct strbuf *out);
/* For elements that represent several cells: adds only the attributes in `filters`, whose bits are
 * indices into html_filters. Start with HTML_FILTERS_ALL; html_shared keeps the axes in which
 * another cell is equal. */
#define HTML_FILTERS_ALL ((1U << HTML_FILTERS) - 1)
unsigned html_shared(unsigned filters, const struct cell *cell, const struct cell *other);
void html_attributes_of(const struct cell *cell, unsigned filters, struct strbuf *out);

/* A table: its head (a '>' before a title right-aligns the column, for figures; "run" and "work"
 * are left out if the page has only one), rows that filters select, cells (class NULL: none), foot.
 */
void html_head(const struct html_page *page, const char *const *titles, size_t count,
	       struct strbuf *out);
void html_row(const struct summary_row *row, const char *class, struct strbuf *out);
void html_row_of(const struct summary_row *row, unsigned filters, const char *class,
		 struct strbuf *out);
/* Adds a text between the strings `before` and `after`. */
void html_text(const char *before, const char *text, const char *after, struct strbuf *out);
void html_cell(const char *class, const char *text, struct strbuf *out);
/* The cells of the columns "work" and "run". */
void html_work_cell(const struct html_page *page, const struct cell *cell, const char *more,
		    struct strbuf *out);
void html_run_cell(const struct html_page *page, size_t run, struct strbuf *out);
/* Ends a row with a text below it, in a row of its own that the caller begins. */
void html_below(size_t columns, const char *text, struct strbuf *out);
void html_foot(struct strbuf *out);
#define HTML_HEAD(page, titles, out)                                                               \
	html_head((page), (titles), sizeof(titles) / sizeof *(titles), (out))

/* Adds any JSON on one line: members as "name value, name value". */
void html_join_json(const json_t *value, struct strbuf *out);

/* Adds the charts from number `first` on, side by side; nothing if there are none. */
void html_charts(const struct charts *charts, size_t first, struct strbuf *out);

/* Sections of the page. */
void html_conclusions(const struct html_page *page, struct strbuf *out);
void html_certainty(const struct summary *summary, struct strbuf *out);
void html_matrix(const struct html_page *page, struct strbuf *out);
void html_comparison_table(const struct html_page *page, size_t comparison, struct strbuf *out);
void html_ledger(const struct html_page *page, struct strbuf *out);
void html_parity(const struct html_page *page, struct strbuf *out);
void html_frameworks(const struct html_page *page, struct strbuf *out);
void html_devices(const struct html_page *page, struct strbuf *out);
/* Empty unless the runs are of several nodes. */
void html_nodes(const struct html_page *page, struct strbuf *out);
void html_history(const struct html_page *page, struct strbuf *out);
void html_reproduce(const struct html_page *page, struct strbuf *out);
void html_runs(const struct html_page *page, struct strbuf *out);

/* Style sheet and script. */
extern const char html_style[], html_script[];

#endif
