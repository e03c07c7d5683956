/* Draws bars or marks with intervals, stacked bars, and rows of shades. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart_internal.h"
#include "report/text.h"

#define INK "#1b1f24"
#define GRID "#d8dde3"
#define LABEL_SHARE 0.36 /* share of a wide chart's width for the row names */
#define GAP 8.0

#define FOREST_REACH 10.0 /* how far an interval may extend a logarithmic axis */

enum { HEAT_HEIGHT = 230, NARROW_BELOW = 480, AXIS_HEIGHT = 40, DENSE_FROM = 14 };

struct layout {
	int width;
	bool above; /* names are above their bars */
	double pitch, bar, label, left, right, top, bottom;
	struct scale scale;
};

/* Whether an interval ends above the axis; its text then gives the end. */
static bool is_beyond(const struct layout *layout, const struct chart_row *row)
{
	return row->high > layout->scale.high * (1 + 1e-9);
}

static bool is_before(const struct layout *layout, const struct chart_row *row)
{
	return row->low < layout->scale.low * (1 - 1e-9);
}

/* Extends the extent beyond the values, at most as far as the axis may reach. */
static void reach_out(struct extent *extent, double values, double value)
{
	/* fmin alone would return the finite argument if the other is NaN (unknown). */
	if (isfinite(value))
		extent_add(extent, fmin(value, values * CHART_REACH));
}

/* Returns what a logarithmic axis shows: the values, the reference, and, as far as it reaches, the
 * intervals and dots. */
static struct extent spread(const struct chart *chart)
{
	struct extent extent = {NAN, NAN};
	extent_add(&extent, chart->reference);
	for (size_t i = 0; i < chart->row_count; i++)
		extent_add(&extent, chart->rows[i].value);
	const struct extent most = {extent.low / FOREST_REACH, extent.high * FOREST_REACH};
	for (size_t i = 0; i < chart->row_count; i++) {
		const struct chart_row *row = &chart->rows[i];
		/* fmax alone would return the finite argument if the other is NaN (unknown). */
		if (isfinite(row->low) && isfinite(row->high)) {
			extent_add(&extent, fmax(row->low, most.low));
			extent_add(&extent, fmin(row->high, most.high));
		}
		for (size_t k = 0; k < row->cell_count; k++)
			extent_add(&extent, fmax(fmin(row->cells[k], most.high), most.low));
	}
	return extent;
}

/* Returns the largest value drawn: first the values, then intervals and dots beyond them. */
static double largest(const struct chart *chart)
{
	struct extent extent = {NAN, NAN};
	for (size_t i = 0; i < chart->row_count; i++)
		extent_add(&extent, chart->rows[i].value);
	if (chart->kind != CHART_BARS)
		return extent.high;
	extent_add(&extent, chart->reference);
	double values = extent.high;
	for (size_t i = 0; i < chart->row_count; i++) {
		const struct chart_row *row = &chart->rows[i];
		reach_out(&extent, values, row->high);
		for (size_t k = 0; k < row->cell_count; k++)
			reach_out(&extent, values, row->cells[k]);
	}
	return extent.high;
}

static void lay_out(const struct chart *chart, int width, struct layout *layout)
{
	double label = 0, text = 0;
	*layout = (struct layout){.width = width, .above = width < NARROW_BELOW};
	for (size_t i = 0; i < chart->row_count; i++) {
		if (!chart->rows[i].heading)
			label = fmax(label, chart_text_width(chart->rows[i].label));
		text = fmax(text, chart_text_width(chart->rows[i].text));
	}
	bool dense = chart->row_count > DENSE_FROM;
	layout->pitch = dense ? 21 : 30;
	layout->bar = dense ? 13 : 18;
	if (chart->kind == CHART_HEAT) {
		layout->above = false;
		/* Few rows become high, so that the image is about as high as one of curves. */
		layout->pitch = fmin(fmax(HEAT_HEIGHT / (double)chart->row_count, 13), 30);
		layout->bar = layout->pitch - 1;
	}
	if (layout->above)
		layout->pitch += 14;
	layout->label = fmin(label, LABEL_SHARE * width);
	layout->left = layout->above ? 1 : layout->label + GAP;
	/* Leave room for texts and for the arrow that marks a value outside the axis. */
	layout->right = width - (text > 0 ? text + 2 * GAP : GAP);
	layout->top = legend_height(chart, width) + 6;
	layout->bottom = layout->top + layout->pitch * (double)chart->row_count;
	struct extent extent = {NAN, chart->kind == CHART_HEAT ? chart->heat_end : largest(chart)};
	if (chart->kind == CHART_FOREST)
		extent = spread(chart);
	scale_init(&layout->scale, &chart->x, extent.low, extent.high, layout->left, layout->right);
	if (chart->kind == CHART_FOREST)
		return;
	layout->scale.logarithmic = false;
	layout->scale.low = 0;
}

static void draw_grid(const struct chart *chart, const struct layout *layout, struct strbuf *out)
{
	double ticks[SCALE_TICKS_MAX];
	char label[SCALE_LABEL_BYTES], title[160];
	size_t wanted = layout->right - layout->left > 300 ? 6 : 4;
	size_t count = scale_ticks(&layout->scale, wanted, ticks);
	strbuf_puts(out, "<g class=\"grid\">");
	for (size_t i = 0; i < count; i++) {
		double x = scale_at(&layout->scale, ticks[i]);
		svg_line(out, "fg", GRID, x, layout->top, x, layout->bottom);
	}
	double minor[SCALE_MINOR_MAX];
	size_t minor_count = scale_minor_ticks(&layout->scale, minor);
	for (size_t i = 0; i < minor_count; i++) {
		double x = scale_at(&layout->scale, minor[i]);
		svg_line(out, "fg", GRID, x, layout->bottom - 5, x, layout->bottom);
	}
	if (isfinite(chart->reference)) {
		double x = scale_at(&layout->scale, chart->reference);
		strbuf_printf(out,
			      "<line class=\"fr\" stroke=\"" INK "\" stroke-dasharray=\"5 4\" "
			      "x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
			      x, layout->top, x, layout->bottom);
	}
	strbuf_printf(out, "</g>\n<g class=\"foot\" transform=\"translate(0 %.1f)\">",
		      layout->bottom);
	for (size_t i = 0; i < count; i++) {
		scale_label(&layout->scale, ticks[i], label);
		svg_text(out, scale_at(&layout->scale, ticks[i]), 15,
			 i == 0 && chart->kind != CHART_FOREST ? ANCHOR_START : ANCHOR_MIDDLE, true,
			 0, label);
	}
	scale_title(&layout->scale, &chart->x, title, sizeof title);
	double room = layout->width - layout->left;
	svg_text(out, chart_text_width(title) > room ? 1 : layout->left, 33, ANCHOR_START, true,
		 layout->width - 1, title);
	strbuf_puts(out, "</g>\n");
}

static void draw_interval(const struct layout *layout, const struct chart_row *row, double middle,
			  struct strbuf *out)
{
	double low = scale_at(&layout->scale, row->low), high = scale_at(&layout->scale, row->high);
	if (!isfinite(row->low) || !isfinite(row->high))
		return;
	svg_line(out, "fw", INK, low, middle, high, middle);
	if (is_before(layout, row))
		svg_beyond(out, low, middle, -1, 0);
	else
		svg_line(out, "fw", INK, low, middle - 4, low, middle + 4);
	if (is_beyond(layout, row))
		svg_beyond(out, high, middle, 1, 0);
	else
		svg_line(out, "fw", INK, high, middle - 4, high, middle + 4);
}

static void draw_dots(const struct layout *layout, const struct chart_row *row, double middle,
		      struct strbuf *out)
{
	enum { DOTS_MAX = 60 }; /* above DOTS_MAX dots, draw every stride-th */
	size_t stride = row->cell_count / DOTS_MAX + 1;
	for (size_t i = 0; i < row->cell_count; i += stride)
		strbuf_printf(out,
			      "<circle class=\"fdot\" fill=\"" INK
			      "\" fill-opacity=\"0.45\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\"/>",
			      scale_at(&layout->scale, row->cells[i]), middle);
}

static void draw_bar(const struct layout *layout, const struct chart_row *row, double middle,
		     struct strbuf *out)
{
	double end = scale_at(&layout->scale, row->value);
	if (!isfinite(row->value))
		return;
	strbuf_printf(
		out, "<rect fill=\"%s\"%s x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
		row->colour,
		row->faint ? " fill-opacity=\"0.35\" stroke=\"" INK "\" stroke-dasharray=\"3 2\""
			   : "",
		layout->left, middle - layout->bar / 2, fmax(end - layout->left, 0.5), layout->bar);
	draw_dots(layout, row, middle, out);
	draw_interval(layout, row, middle, out);
}

static void draw_mark(const struct layout *layout, const struct chart_row *row, double middle,
		      struct strbuf *out)
{
	if (!isfinite(row->value))
		return;
	draw_dots(layout, row, middle, out);
	draw_interval(layout, row, middle, out);
	svg_mark(out, row->mark, row->run, scale_at(&layout->scale, row->value), middle,
		 row->colour);
}

static void draw_stack(const struct chart *chart, const struct layout *layout,
		       const struct chart_row *row, double middle, struct strbuf *out)
{
	double sum = 0;
	for (size_t i = 0; i < row->cell_count && i < chart->part_count; i++) {
		if (!(row->cells[i] > 0))
			continue;
		double from = scale_at(&layout->scale, sum);
		sum += row->cells[i];
		strbuf_printf(out,
			      "<rect fill=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			      "height=\"%.1f\"/>",
			      chart->parts[i].colour, from, middle - layout->bar / 2,
			      scale_at(&layout->scale, sum) - from, layout->bar);
	}
}

/* Rounds a shade to a tenth; equal neighbours then share a rectangle. */
static double shade(double value)
{
	return value > 0 ? round(fmin(value, 1) * 10) / 10 : 0;
}

static void draw_shades(const struct chart *chart, const struct layout *layout,
			const struct chart_row *row, double middle, struct strbuf *out)
{
	double each = chart->heat_end / (double)row->cell_count;
	for (size_t i = 0, next; i < row->cell_count; i = next) {
		double value = shade(row->cells[i]);
		for (next = i + 1; next < row->cell_count && shade(row->cells[next]) == value;)
			next++;
		double from = scale_at(&layout->scale, each * (double)i);
		double to = scale_at(&layout->scale, each * (double)next);
		if (value > 0)
			strbuf_printf(out,
				      "<rect shape-rendering=\"crispEdges\" fill=\"%s\" "
				      "fill-opacity=\"%.1f\" x=\"%.1f\" y=\"%.1f\" "
				      "width=\"%.1f\" height=\"%.1f\"/>",
				      row->colour, value, from, middle - layout->bar / 2, to - from,
				      layout->bar);
	}
}

/* Draws the text after the bar, and after its interval and dots if they reach further; the texts of
 * marks stand below each other, at the end of the axis. */
static void draw_text(const struct chart *chart, const struct layout *layout,
		      const struct chart_row *row, double middle, struct strbuf *out)
{
	double end =
		fmax(isfinite(row->value) ? row->value : 0, isfinite(row->high) ? row->high : 0);
	for (size_t i = 0; i < row->cell_count; i++)
		end = fmax(end, row->cells[i]);
	if (chart->kind == CHART_FOREST)
		end = layout->scale.high;
	/* Beyond the arrow of an interval. */
	double gap = chart->kind == CHART_FOREST ? 1.5 * GAP : GAP;
	if (*row->text)
		svg_text(out, scale_at(&layout->scale, end) + gap, middle + 4, ANCHOR_START, false,
			 0, row->text);
}

static void draw_row(const struct chart *chart, const struct layout *layout, size_t i,
		     struct strbuf *out)
{
	const struct chart_row *row = &chart->rows[i];
	double middle = layout->above ? layout->pitch - layout->bar / 2 - 3 : layout->pitch / 2;
	strbuf_puts(out, "<g class=\"row\"");
	if (row->attributes) {
		strbuf_puts(out, row->attributes);
	} else {
		strbuf_puts(out, " data-framework=\"");
		text_html(row->group, out);
		strbuf_putc(out, '"');
	}
	strbuf_printf(out, " transform=\"translate(0 %.1f)\">",
		      layout->top + layout->pitch * (double)i);
	if (row->heading) {
		strbuf_puts(out, "<g font-weight=\"600\">");
		svg_text(out, 1, layout->pitch - 6, ANCHOR_START, false, layout->width - 2,
			 row->label);
		strbuf_puts(out, "</g></g>\n");
		return;
	}
	if (layout->above)
		svg_text(out, 1, 13, ANCHOR_START, false, layout->width - 2, row->label);
	else
		svg_text(out, layout->label, middle + 4, ANCHOR_END, false, layout->label,
			 row->label);
	if (chart->kind == CHART_HEAT)
		draw_shades(chart, layout, row, middle, out);
	else if (chart->kind == CHART_STACKS)
		draw_stack(chart, layout, row, middle, out);
	else if (chart->kind == CHART_FOREST)
		draw_mark(layout, row, middle, out);
	else
		draw_bar(layout, row, middle, out);
	draw_text(chart, layout, row, middle, out);
	strbuf_puts(out, "</g>\n");
}

void bars_svg(const struct chart *chart, int width, struct strbuf *out)
{
	struct layout layout;
	lay_out(chart, width, &layout);
	svg_begin(chart, width, layout.bottom + AXIS_HEIGHT, out);
	if (chart->part_count > 0)
		legend_draw(chart, width, out);
	/* The script that hides rows moves the rows below them up. */
	strbuf_printf(out, "<g class=\"rows\" data-top=\"%.1f\" data-pitch=\"%.1f\">", layout.top,
		      layout.pitch);
	draw_grid(chart, &layout, out);
	for (size_t i = 0; i < chart->row_count; i++)
		draw_row(chart, &layout, i, out);
	strbuf_puts(out, "</g></svg>");
}
