/* Speeds that others published for the same work, beside ours: other years, other machines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/figures_internal.h"
#include "report/format.h"
#include "report/published.h"

enum { PUBLISHED_MAX = 60 };

static void add_ours(const struct html_page *page, size_t run, const struct summary_row *row,
		     struct figures *figures, struct figure *figure)
{
	char label[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4], colour[FIGURE_COLOUR_BYTES],
		text[FORMAT_BYTES];
	const char *name = row->cell->cell.framework;
	double work = row->items_per_second * row->step.center;
	html_row_label(page, run, name, label, sizeof label);
	figure_colour(name, colour);
	struct figure_row *bar = figure_row(figures, figure, label, name, colour);
	bar->value = row->items_per_second;
	bar->low = work / row->step.high;
	bar->high = work / row->step.low;
	format_rate(row->items_per_second, text, sizeof text);
	bar->text = arena_strdup(&figures->arena, text);
}

static void add_published(const struct published_row *row, struct figures *figures,
			  struct figure *figure)
{
	char label[160], colour[FIGURE_COLOUR_BYTES], text[FORMAT_BYTES];
	double rate = published_items_per_second(row);
	snprintf(label, sizeof label, "%s, %s, %s", row->framework, row->year, row->hardware);
	figure_colour(row->framework, colour);
	struct figure_row *bar = figure_row(figures, figure, label, row->framework, colour);
	bar->value = rate;
	bar->faint = true;
	format_rate(rate, text, sizeof text);
	bar->text = arena_printf(&figures->arena, "%s, batch %lld, %s", text, (long long)row->batch,
				 row->precision);
}

/* Whether a row of what was published is about a cell of the comparison. */
static bool is_about(const struct html_page *page, const struct published_row *published,
		     size_t run, size_t comparison)
{
	size_t count;
	const struct summary_row *rows = html_rows(page, run, comparison, &count);
	const char *suite = page->summaries[run]->run->meta.suite;
	for (size_t i = 0; i < count; i++)
		if (published_matches(published, suite, &rows[i].cell->cell))
			return true;
	return false;
}

void figures_published(const struct html_page *page, size_t comparison, struct figures *figures)
{
	char title[CELL_KEY_BYTES], name[CELL_KEY_BYTES + 32], head[CELL_KEY_BYTES + 32];
	size_t ours = 0, theirs = 0;
	summary_comparison_title(page->comparisons[comparison], title, sizeof title);
	snprintf(name, sizeof name, "Published %s", title);
	snprintf(head, sizeof head, "Beside what was published: %s", title);
	struct figure *figure = figures_add(
		figures, FIGURE_BARS, name, head,
		"Solid: measured here, with 95 % intervals. Faint: published, with year, hardware, "
		"batch and precision; other machines and versions, so no rank.",
		html_row_count(page, comparison) + PUBLISHED_MAX);
	figure->x = (struct figure_axis){.title = "items a second, more is better",
					 .column = "items_per_second",
					 .measure = FIGURE_PER_SECOND};
	for (size_t run = 0; run < page->count; run++) {
		size_t count;
		const struct summary_row *rows = html_rows(page, run, comparison, &count);
		for (size_t i = 0; i < count; i++)
			if (rows[i].comparable && ++ours)
				add_ours(page, run, &rows[i], figures, figure);
	}
	for (size_t i = 0; i < page->published.count && theirs < PUBLISHED_MAX; i++) {
		const struct published_row *row = &page->published.rows[i];
		bool about = isfinite(published_items_per_second(row));
		for (size_t run = 0; run < page->count && about; run++)
			if (is_about(page, row, run, comparison)) {
				add_published(row, figures, figure);
				theirs++;
				break;
			}
	}
	if (theirs == 0)
		figures_drop(figures);
}
