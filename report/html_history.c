/* Writes the histories of cells: a chart for each comparison, and the changes. */
#include <stdio.h>
#include <string.h>

#include "report/charts_internal.h"
#include "report/text.h"

/* Whether a history belongs to a cell of that comparison. */
static bool is_of(const struct history *history, const struct cell *comparison)
{
	char a[SUMMARY_KEY_BYTES], b[SUMMARY_KEY_BYTES];
	size_t length = summary_comparison_key(&history->cell->cell, a);
	return length == summary_comparison_key(comparison, b) && !memcmp(a, b, length);
}

static void add_series(const struct html_page *page, const struct history *history,
		       struct charts *charts, struct chart *chart)
{
	const char *name = history->cell->cell.framework;
	struct chart_series *series =
		chart_series(charts, chart, name, name, html_colour(page, name), history->count);
	charts_sign(page, 0, name, &series->mark, &series->run);
	for (size_t i = 0; i < history->count; i++) {
		const struct history_point *point = &history->points[i];
		series->points[series->count++] =
			(struct chart_point){(double)point->run->meta.id, point->step.center,
					     point->step.low, point->step.high};
	}
}

void charts_history(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart =
		charts_begin(page, comparison, "History",
			     "Each point is a stored run of the same cell on the same machine, "
			     "with its 95 % interval. The run numbers are below.",
			     CHART_LINES, page->history_count, charts);
	char work[CELL_KEY_BYTES];
	html_work(page, page->comparisons[comparison], work, sizeof work);
	chart->heading = arena_strdup(&charts->arena, work);
	chart->x = (struct chart_axis){
		.title = "run", .column = "run", .measure = CHART_PLAIN, .ticks_at_values = true};
	chart->y = charts_axis(charts, FIGURE_STEP);
	for (size_t i = 0; i < page->history_count; i++)
		if (is_of(&page->histories[i], page->comparisons[comparison]))
			add_series(page, &page->histories[i], charts, chart);
	if (chart->series_count == 0)
		charts_drop(charts);
}

static void add_rows(const struct html_page *page, struct strbuf *out)
{
	static const char *const titles[] = {"framework", "work", "changes (95 %)",
					     "through the runs"};
	HTML_HEAD(page, titles, out);
	for (size_t i = 0; i < page->history_count; i++) {
		const struct cell *cell = &page->histories[i].cell->cell;
		struct strbuf changes, words;
		strbuf_init(&changes, 0);
		strbuf_init(&words, 0);
		history_changes(&page->histories[i], &changes);
		history_words(&page->histories[i], &words);
		strbuf_puts(out, "<tr");
		html_attributes(cell, true, out);
		strbuf_puts(out, ">");
		html_cell("strong", cell->framework, out);
		html_work_cell(page, cell, "", out);
		html_cell(NULL, changes.length > 0 ? strbuf_text(&changes) : "none found", out);
		html_cell("long", strbuf_text(&words), out);
		strbuf_puts(out, "</tr>\n");
		strbuf_release(&changes);
		strbuf_release(&words);
	}
	html_foot(out);
}

void html_history(const struct html_page *page, struct strbuf *out)
{
	strbuf_puts(out, "<div class=\"charts\">\n");
	for (size_t c = 0; c < page->comparison_count && c < HTML_SECTIONS_MAX; c++) {
		struct charts charts = {.count = 0};
		charts_history(page, c, &charts);
		if (charts.count > 0) {
			strbuf_puts(out, "<div");
			html_attributes(page->comparisons[c], false, out);
			strbuf_puts(out, ">");
			html_charts(&charts, 0, out);
			strbuf_puts(out, "</div>\n");
		}
		charts_release(&charts);
	}
	strbuf_puts(out, "</div>\n");
	add_rows(page, out);
}
