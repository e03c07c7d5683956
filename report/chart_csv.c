/* Writes a chart's numbers as CSV, in the units of the store. */
#include <math.h>

#include "report/chart_internal.h"
#include "report/format.h"
#include "report/text.h"

static void add_number(double value, struct strbuf *out)
{
	strbuf_putc(out, ',');
	format_real(value, out);
}

/* Adds the label with the heading above it: "Tesla K20m: caffe". */
static void add_label(const struct chart_row *row, const struct chart_row *heading,
		      struct strbuf *out)
{
	struct strbuf label;
	strbuf_init(&label, 0);
	if (heading)
		strbuf_printf(&label, "%s: ", heading->label);
	strbuf_puts(&label, row->label);
	text_csv(strbuf_text(&label), out);
	strbuf_release(&label);
}

static void bars_csv(const struct chart *chart, struct strbuf *out)
{
	const struct chart_row *heading = NULL;
	size_t dots = 0;
	for (size_t i = 0; i < chart->row_count; i++)
		dots = chart->rows[i].cell_count > dots ? chart->rows[i].cell_count : dots;
	strbuf_printf(out, "row,%s,low,high", chart->x.column);
	for (size_t k = 0; k < dots; k++)
		strbuf_printf(out, ",process_%zu", k);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < chart->row_count; i++) {
		const struct chart_row *row = &chart->rows[i];
		if (row->heading) {
			heading = row;
			continue;
		}
		add_label(row, heading, out);
		add_number(row->value, out);
		add_number(row->low, out);
		add_number(row->high, out);
		for (size_t k = 0; k < dots; k++)
			add_number(k < row->cell_count ? row->cells[k] : NAN, out);
		strbuf_putc(out, '\n');
	}
}

static void parts_csv(const struct chart *chart, struct strbuf *out)
{
	strbuf_puts(out, "row");
	for (size_t k = 0; k < chart->part_count; k++) {
		strbuf_putc(out, ',');
		text_csv(chart->parts[k].name, out);
	}
	strbuf_printf(out, ",%s\n", chart->x.column);
	for (size_t i = 0; i < chart->row_count; i++) {
		const struct chart_row *row = &chart->rows[i];
		text_csv(row->label, out);
		for (size_t k = 0; k < chart->part_count; k++)
			add_number(k < row->cell_count ? row->cells[k] : NAN, out);
		add_number(row->value, out);
		strbuf_putc(out, '\n');
	}
}

static void heat_csv(const struct chart *chart, struct strbuf *out)
{
	strbuf_printf(out, "row,%s_begin,%s_end,%s\n", chart->x.column, chart->x.column,
		      chart->y.column);
	for (size_t i = 0; i < chart->row_count; i++) {
		const struct chart_row *row = &chart->rows[i];
		for (size_t k = 0; k < row->cell_count; k++) {
			double step = chart->heat_end / (double)row->cell_count;
			text_csv(row->label, out);
			add_number(step * (double)k, out);
			add_number(step * (double)(k + 1), out);
			add_number(row->cells[k], out);
			strbuf_putc(out, '\n');
		}
	}
}

static void lines_csv(const struct chart *chart, struct strbuf *out)
{
	strbuf_printf(out, "series,%s,%s,low,high\n", chart->x.column, chart->y.column);
	for (size_t i = 0; i < chart->series_count; i++)
		for (size_t k = 0; k < chart->series[i].count; k++) {
			const struct chart_point *point = &chart->series[i].points[k];
			text_csv(chart->series[i].label, out);
			add_number(point->x, out);
			add_number(point->y, out);
			add_number(point->low, out);
			add_number(point->high, out);
			strbuf_putc(out, '\n');
		}
}

void chart_csv(const struct chart *chart, struct strbuf *out)
{
	static void (*const writers[])(const struct chart *,
				       struct strbuf *) = {[CHART_BARS] = bars_csv,
							   [CHART_FOREST] = bars_csv,
							   [CHART_STACKS] = parts_csv,
							   [CHART_LINES] = lines_csv,
							   [CHART_HEAT] = heat_csv};
	writers[chart->kind](chart, out);
}
