/* A figure's numbers, in the units of the store. */
#include <math.h>

#include "report/figure_internal.h"
#include "report/format.h"
#include "report/text.h"

static void add_number(double value, struct strbuf *out)
{
	strbuf_putc(out, ',');
	format_real(value, out);
}

/* "Tesla K20m: caffe": with the heading that it stands below. */
static void add_label(const struct figure_row *row, const struct figure_row *heading,
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

static void bars_csv(const struct figure *figure, struct strbuf *out)
{
	const struct figure_row *heading = NULL;
	size_t dots = 0;
	for (size_t i = 0; i < figure->row_count; i++)
		dots = figure->rows[i].cell_count > dots ? figure->rows[i].cell_count : dots;
	strbuf_printf(out, "row,%s,low,high", figure->x.column);
	for (size_t k = 0; k < dots; k++)
		strbuf_printf(out, ",process_%zu", k);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < figure->row_count; i++) {
		const struct figure_row *row = &figure->rows[i];
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

static void parts_csv(const struct figure *figure, struct strbuf *out)
{
	strbuf_puts(out, "row");
	for (size_t k = 0; k < figure->part_count; k++) {
		strbuf_putc(out, ',');
		text_csv(figure->parts[k].name, out);
	}
	strbuf_printf(out, ",%s\n", figure->x.column);
	for (size_t i = 0; i < figure->row_count; i++) {
		const struct figure_row *row = &figure->rows[i];
		text_csv(row->label, out);
		for (size_t k = 0; k < figure->part_count; k++)
			add_number(k < row->cell_count ? row->cells[k] : NAN, out);
		add_number(row->value, out);
		strbuf_putc(out, '\n');
	}
}

static void heat_csv(const struct figure *figure, struct strbuf *out)
{
	strbuf_printf(out, "row,%s_begin,%s_end,%s\n", figure->x.column, figure->x.column,
		      figure->y.column);
	for (size_t i = 0; i < figure->row_count; i++) {
		const struct figure_row *row = &figure->rows[i];
		for (size_t k = 0; k < row->cell_count; k++) {
			double step = figure->heat_end / (double)row->cell_count;
			text_csv(row->label, out);
			add_number(step * (double)k, out);
			add_number(step * (double)(k + 1), out);
			add_number(row->cells[k], out);
			strbuf_putc(out, '\n');
		}
	}
}

static void lines_csv(const struct figure *figure, struct strbuf *out)
{
	strbuf_printf(out, "series,%s,%s,low,high\n", figure->x.column, figure->y.column);
	for (size_t i = 0; i < figure->series_count; i++)
		for (size_t k = 0; k < figure->series[i].count; k++) {
			const struct figure_point *point = &figure->series[i].points[k];
			text_csv(figure->series[i].label, out);
			add_number(point->x, out);
			add_number(point->y, out);
			add_number(point->low, out);
			add_number(point->high, out);
			strbuf_putc(out, '\n');
		}
}

void figure_csv(const struct figure *figure, struct strbuf *out)
{
	static void (*const writers[])(const struct figure *,
				       struct strbuf *) = {[FIGURE_BARS] = bars_csv,
							   [FIGURE_STACKS] = parts_csv,
							   [FIGURE_LINES] = lines_csv,
							   [FIGURE_HEAT] = heat_csv};
	writers[figure->kind](figure, out);
}
