/* Draws published speeds for the same work beside prony's; they come from other years and other
 * machines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/charts_internal.h"
#include "report/published.h"

enum { PUBLISHED_MAX = 60 };

static void add_published(const struct html_page *page, const struct published_row *row,
			  struct charts *charts, struct chart *chart)
{
	char text[FORMAT_BYTES];
	double rate = published_samples_per_second(row);
	struct chart_row *bar = chart_row(charts, chart, row->framework, row->framework,
					  html_colour(page, row->framework));
	bar->value = rate;
	bar->faint = true;
	format_rate(rate, NAN, text, sizeof text);
	bar->text = arena_strdup(&charts->arena, text);
}

static void add_heading(const char *text, struct charts *charts, struct chart *chart)
{
	chart_row(charts, chart, text, "", "#000000")->heading = true;
}

/* Whether a published row is about a cell of the comparison. */
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

/* Finds the published rows about a comparison; returns their number, at most `room`. */
static size_t find_published(const struct html_page *page, size_t comparison, size_t room,
			     const struct published_row **found)
{
	size_t count = 0;
	for (size_t i = 0; i < page->published.count && count < room; i++) {
		const struct published_row *row = &page->published.rows[i];
		bool about = false;
		for (size_t run = 0; run < page->count && !about; run++)
			about = isfinite(published_samples_per_second(row)) &&
				is_about(page, row, run, comparison);
		if (about)
			found[count++] = row;
	}
	return count;
}

/* Writes the conditions of a published row: "2018, Tesla K20m, batch 64, fp32". */
static void describe(const struct published_row *row, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s, %s, batch %lld, %s", row->year, row->hardware,
		 (long long)row->batch, row->precision);
}

/* Adds the published rows below headings, one for each year, machine, batch and precision, in order
 * of first appearance. */
static void add_theirs(const struct html_page *page, const struct published_row **rows,
		       size_t count, struct charts *charts, struct chart *chart)
{
	char heading[2 * CELL_WORD_BYTES], other[2 * CELL_WORD_BYTES];
	for (size_t i = 0; i < count; i++) {
		bool seen = false;
		describe(rows[i], heading, sizeof heading);
		for (size_t before = 0; before < i && !seen; before++) {
			describe(rows[before], other, sizeof other);
			seen = !strcmp(heading, other);
		}
		if (seen)
			continue;
		add_heading(heading, charts, chart);
		for (size_t k = i; k < count; k++) {
			describe(rows[k], other, sizeof other);
			if (!strcmp(heading, other))
				add_published(page, rows[k], charts, chart);
		}
	}
}

void charts_published(const struct html_page *page, size_t comparison, struct charts *charts)
{
	const struct published_row *theirs[PUBLISHED_MAX];
	size_t count = find_published(page, comparison, PUBLISHED_MAX, theirs), ours = 0;
	/* The charts of a study already show its published rows. */
	if (count == 0 || charts_is_study(page))
		return;
	struct chart *chart = charts_begin(
		page, comparison, "Published speeds",
		"Solid: measured here, with 95 % intervals. Faint: published, on other machines "
		"and versions, so without ranks.",
		CHART_BARS, html_row_count(page, comparison) + 1 + 2 * PUBLISHED_MAX, charts);
	chart->x = charts_axis(charts, FIGURE_SAMPLES);
	add_heading("here", charts, chart);
	for (size_t run = 0; run < page->count; run++) {
		size_t rows_count;
		const struct summary_row *rows = html_rows(page, run, comparison, &rows_count);
		for (size_t i = 0; i < rows_count; i++)
			if (rows[i].comparable && ++ours)
				charts_bar(page, run, &rows[i], FIGURE_SAMPLES, charts, chart);
	}
	if (ours == 0)
		charts_drop(charts);
	else
		add_theirs(page, theirs, count, charts, chart);
}
