/* Parts shared by several kinds of charts: the title, the axis of a figure, the row and bar of a
 * framework. */
#include <stdio.h>
#include <string.h>

#include "report/charts_internal.h"

struct chart *charts_begin(const struct html_page *page, size_t comparison, const char *what,
			   const char *caption, enum chart_kind kind, size_t room,
			   struct charts *charts)
{
	char title[CELL_KEY_BYTES], name[CELL_KEY_BYTES + 64], head[CELL_KEY_BYTES + 64];
	summary_comparison_title(page->comparisons[comparison], title, sizeof title);
	snprintf(name, sizeof name, "%s %s", what, title);
	snprintf(head, sizeof head, "%s: %s", what, title);
	struct chart *chart = charts_add(charts, kind, name, head, caption, room);
	chart->heading = what;
	return chart;
}

struct chart_axis charts_axis(struct charts *charts, enum figure_id id)
{
	static const enum chart_measure measures[UNIT_COUNT] = {
		[UNIT_NS] = CHART_NS,
		[UNIT_BYTES] = CHART_BYTES,
		[UNIT_PER_SECOND] = CHART_PER_SECOND,
		[UNIT_FLOPS] = CHART_PLAIN,
		[UNIT_RATIO] = CHART_PLAIN,
		[UNIT_SHARE] = CHART_PLAIN,
		[UNIT_JOULES] = CHART_PLAIN,
		[UNIT_WATTS] = CHART_PLAIN,
		[UNIT_CORES] = CHART_PLAIN};
	const struct figure *figure = &figures[id];
	enum chart_measure measure = measures[figure->unit];
	const char *unit = measure == CHART_PLAIN ? figure_unit_name(figure->unit) : "";
	return (struct chart_axis){
		.title = arena_printf(&charts->arena, "%s%s%s%s, %s is better", figure->label,
				      *unit ? " (" : "", unit, *unit ? ")" : "",
				      figure_more_is_better(figure->unit) ? "more" : "less"),
		.column = figure->word,
		.measure = measure};
}

void charts_sign(const struct html_page *page, size_t run, const char *framework, unsigned *mark,
		 unsigned *style)
{
	size_t number = names_find(&page->coloured, framework, strlen(framework));
	*mark = (unsigned)(number % CHART_MARKS);
	*style = (unsigned)(run + number / CHART_MARKS * page->count);
}

struct chart_row *charts_row(const struct html_page *page, size_t run, const char *framework,
			     struct charts *charts, struct chart *chart)
{
	char label[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4];
	html_row_label(page, run, framework, label, sizeof label);
	struct chart_row *row =
		chart_row(charts, chart, label, framework, html_colour(page, framework));
	charts_sign(page, run, framework, &row->mark, &row->run);
	return row;
}

struct chart_row *charts_bar(const struct html_page *page, size_t run,
			     const struct summary_row *row, enum figure_id id,
			     struct charts *charts, struct chart *chart)
{
	struct figure_value known = figure_value(id, row);
	char text[FORMAT_BYTES];
	struct chart_row *bar = charts_row(page, run, row->cell->cell.framework, charts, chart);
	figure_text(id, row, text);
	bar->value = known.value;
	bar->low = known.low;
	bar->high = known.high;
	bar->text = arena_strdup(&charts->arena, text);
	return bar;
}
