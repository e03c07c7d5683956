/* Steps whose batches arrive: what computing, copying and waiting take of each. */
#include <math.h>
#include <stdio.h>

#include "report/charts_internal.h"
#include "report/format.h"
#include "report/input.h"

static const struct chart_part parts[] = {
	{"computing", "#808690"},
	{"slower beside the loader", "#d0312d"},
	{"copying", "#3d9140"},
	{"waiting for storage", "#1f7fc4"},
	{"waiting for decoding", "#b57600"},
	{"waiting for its own loader", "#a35fb0"},
};
enum { PARTS = sizeof parts / sizeof *parts };

static void add_row(const struct html_page *page, size_t run, const struct summary_row *row,
		    const struct input_split *split, struct charts *charts, struct chart *chart)
{
	const double values[PARTS] = {split->computing, split->slowed,	 split->copying,
				      split->storage,	split->decoding, split->loader};
	char label[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4], text[FORMAT_BYTES];
	const char *name = row->cell->cell.framework;
	double *cells = arena_array(&charts->arena, PARTS, sizeof *cells);
	html_row_label(page, run, name, label, sizeof label);
	struct chart_row *bar = chart_row(charts, chart, label, name, html_colour(page, name));
	for (size_t i = 0; i < PARTS; i++)
		cells[i] = values[i];
	bar->cells = cells;
	bar->cell_count = PARTS;
	bar->value = row->step.center;
	format_duration_within(row->step.center, row->step.half_width, text, sizeof text);
	bar->text = arena_strdup(&charts->arena, text);
}

void charts_input(const struct html_page *page, size_t comparison, struct charts *charts)
{
	char title[CELL_KEY_BYTES], name[CELL_KEY_BYTES + 16];
	summary_comparison_title(page->comparisons[comparison], title, sizeof title);
	snprintf(name, sizeof name, "Input: %s", title);
	struct chart *chart = charts_add(
		charts, CHART_STACKS, name, name,
		"What a step whose batches arrive is made of: computing (as with resident batches, "
		"where the run has them; what it takes longer beside the loader is a part of its "
		"own, where the 95 % intervals tell it), copying, and waiting, "
		"shared out as prony's loader spends its time on a batch.",
		html_row_count(page, comparison));
	chart->x = (struct chart_axis){
		.title = "time per step, less is better", .column = "step_ns", .measure = CHART_NS};
	chart->parts = arena_array(&charts->arena, PARTS, sizeof *chart->parts);
	chart->part_count = PARTS;
	for (size_t i = 0; i < PARTS; i++)
		chart->parts[i] = parts[i];
	for (size_t run = 0; run < page->count; run++) {
		size_t count;
		const struct summary_row *rows = html_rows(page, run, comparison, &count);
		for (size_t i = 0; i < count; i++) {
			struct input_split split;
			if (input_split(page->summaries[run], &rows[i], &split))
				add_row(page, run, &rows[i], &split, charts, chart);
		}
	}
	if (chart->row_count == 0)
		charts_drop(charts);
}
