/* Draws the split of a step with loaded batches into computing, copying and waiting. */
#include <math.h>

#include "report/charts_internal.h"
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
	double *cells = arena_array(&charts->arena, PARTS, sizeof *cells);
	struct chart_row *bar = charts_bar(page, run, row, FIGURE_STEP, charts, chart);
	for (size_t i = 0; i < PARTS; i++)
		cells[i] = values[i];
	bar->cells = cells;
	bar->cell_count = PARTS;
	bar->low = bar->high = NAN; /* the interval is that of the whole step; a stack has none */
}

void charts_input(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart =
		charts_begin(page, comparison, "Input",
			     "Parts of a step with input stream or native. Computing: the step on "
			     "resident batches, if the run has it; extra computing time beside the "
			     "loader is a separate part if the 95 % intervals show it. Then "
			     "copying. Waiting is divided like the loader's time per batch.",
			     CHART_STACKS, html_row_count(page, comparison), charts);
	chart->x = charts_axis(charts, FIGURE_STEP);
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
