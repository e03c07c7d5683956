/* Draws curves and clouds of points, with intervals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/chart_internal.h"
#include "report/text.h"

#define INK "#1b1f24"
#define GRID "#d8dde3"

enum { PLOT_HEIGHT = 230, FOOT = 42, MARKED_MAX = 40, MARKED_OF_MANY = 4, REFERENCE_GAP = 6 };

struct plot {
	int width;
	double top, bottom, left, right;
	struct scale x, y;
	bool marks; /* there are few enough points to mark each */
};

static void find_extents(const struct chart *chart, struct extent *x, struct extent *y)
{
	*x = *y = (struct extent){NAN, NAN};
	for (size_t i = 0; i < chart->series_count; i++)
		for (size_t k = 0; k < chart->series[i].count; k++) {
			extent_add(x, chart->series[i].points[k].x);
			extent_add(y, chart->series[i].points[k].y);
		}
	extent_add(y, chart->reference);
	struct extent values = *y;
	for (size_t i = 0; i < chart->series_count; i++)
		for (size_t k = 0; k < chart->series[i].count; k++) {
			const struct chart_point *point = &chart->series[i].points[k];
			struct extent stretched = values;
			extent_stretch(&stretched, point->high);
			extent_stretch(&stretched, point->low);
			extent_add(y, stretched.high);
			extent_add(y, stretched.low);
		}
}

/* Returns the distinct x of all points in ascending order, if there are few; the caller frees. */
static size_t distinct_x(const struct chart *chart, double ticks[SCALE_TICKS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < chart->series_count; i++)
		for (size_t k = 0; k < chart->series[i].count; k++) {
			double x = chart->series[i].points[k].x;
			size_t at = 0;
			while (at < count && ticks[at] < x)
				at++;
			if (at < count && ticks[at] == x)
				continue;
			if (count == SCALE_TICKS_MAX)
				return 0;
			memmove(&ticks[at + 1], &ticks[at], (count - at) * sizeof *ticks);
			ticks[at] = x;
			count++;
		}
	return count;
}

static size_t x_ticks(const struct chart *chart, const struct plot *plot, double *ticks)
{
	size_t count = chart->x.ticks_at_values ? distinct_x(chart, ticks) : 0;
	return count > 0 ? count : scale_ticks(&plot->x, plot->width < 480 ? 4 : 7, ticks);
}

static void lay_out(const struct chart *chart, int width, struct plot *plot)
{
	struct extent x, y;
	double ticks[SCALE_TICKS_MAX], widest = 0;
	char label[SCALE_LABEL_BYTES];
	size_t points = 0;
	find_extents(chart, &x, &y);
	*plot = (struct plot){.width = width, .right = width - 12};
	/* The label stands outside, where no mark can cover it. */
	if (chart->reference_label)
		plot->right = width - REFERENCE_GAP - chart_text_width(chart->reference_label);
	plot->top = legend_height(chart, width) + 26;
	plot->bottom = plot->top + PLOT_HEIGHT;
	scale_init(&plot->y, &chart->y, y.low, y.high, plot->bottom, plot->top);
	size_t count = scale_ticks(&plot->y, 6, ticks);
	for (size_t i = 0; i < count; i++) {
		scale_label(&plot->y, ticks[i], label);
		widest = fmax(widest, chart_text_width(label));
	}
	plot->left = widest + 8;
	scale_init(&plot->x, &chart->x, x.low, x.high, plot->left, plot->right);
	/* For run numbers and similar axes, the scale does not begin at zero. */
	if (chart->x.ticks_at_values && !plot->x.logarithmic && x.low < x.high)
		plot->x.low = x.low;
	for (size_t i = 0; i < chart->series_count; i++)
		points = chart->series[i].count > points ? chart->series[i].count : points;
	plot->marks = points <= MARKED_MAX;
}

static void draw_minor_ticks(const struct chart *chart, const struct plot *plot, struct strbuf *out)
{
	double ticks[SCALE_MINOR_MAX];
	size_t count = scale_minor_ticks(&plot->y, ticks);
	for (size_t i = 0; i < count; i++) {
		double y = scale_at(&plot->y, ticks[i]);
		svg_line(out, "fg", GRID, plot->left, y, plot->left + 5, y);
	}
	count = chart->x.ticks_at_values ? 0 : scale_minor_ticks(&plot->x, ticks);
	for (size_t i = 0; i < count; i++) {
		double x = scale_at(&plot->x, ticks[i]);
		svg_line(out, "fg", GRID, x, plot->bottom - 5, x, plot->bottom);
	}
}

static void draw_axes(const struct chart *chart, const struct plot *plot, struct strbuf *out)
{
	double ticks[SCALE_TICKS_MAX], last = -1e9;
	char label[SCALE_LABEL_BYTES], title[160];
	size_t count = scale_ticks(&plot->y, 6, ticks);
	strbuf_puts(out, "<g class=\"grid\">");
	draw_minor_ticks(chart, plot, out);
	for (size_t i = 0; i < count; i++) {
		double y = scale_at(&plot->y, ticks[i]);
		svg_line(out, "fg", GRID, plot->left, y, plot->right, y);
		scale_label(&plot->y, ticks[i], label);
		svg_text(out, plot->left - 5, y + 4, ANCHOR_END, true, 0, label);
	}
	count = x_ticks(chart, plot, ticks);
	for (size_t i = 0; i < count; i++) {
		double x = scale_at(&plot->x, ticks[i]);
		svg_line(out, "fg", GRID, x, plot->bottom, x, plot->bottom + 4);
		scale_label(&plot->x, ticks[i], label);
		if (x - last < chart_text_width(label) + 6)
			continue;
		bool fits = x + chart_text_width(label) / 2 <= plot->width;
		svg_text(out, x, plot->bottom + 17, fits ? ANCHOR_MIDDLE : ANCHOR_END, true, 0,
			 label);
		last = x + chart_text_width(label) / 2;
	}
	scale_title(&plot->y, &chart->y, title, sizeof title);
	svg_text(out, 0, plot->top - 10, ANCHOR_START, true, plot->width, title);
	scale_title(&plot->x, &chart->x, title, sizeof title);
	svg_text(out, plot->right, plot->bottom + 35, ANCHOR_END, true, plot->width, title);
	if (isfinite(chart->reference)) {
		double y = scale_at(&plot->y, chart->reference);
		strbuf_printf(out,
			      "<line class=\"fr\" stroke=\"" INK "\" stroke-dasharray=\"5 4\" "
			      "x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
			      plot->left, y, plot->right, y);
		if (chart->reference_label)
			svg_text(out, plot->right + REFERENCE_GAP, y + 4, ANCHOR_START, true, 0,
				 chart->reference_label);
	}
	strbuf_puts(out, "</g>\n");
}

static void draw_whisker(const struct plot *plot, const struct chart_point *point,
			 const char *colour, struct strbuf *out)
{
	if (!isfinite(point->low) || !isfinite(point->high))
		return;
	double x = scale_at(&plot->x, point->x), low = scale_at(&plot->y, point->low),
	       high = scale_at(&plot->y, point->high);
	svg_line(out, "fc", colour, x, low, x, high);
	if (point->high > plot->y.high)
		svg_beyond(out, x, high, 0, -1);
	else
		svg_line(out, "fc", colour, x - 3, high, x + 3, high);
	if (plot->y.logarithmic && point->low < plot->y.low)
		svg_beyond(out, x, low, 0, 1);
	else
		svg_line(out, "fc", colour, x - 3, low, x + 3, low);
}

static void draw_series(const struct chart *chart, const struct plot *plot, size_t i,
			struct strbuf *out)
{
	const struct chart_series *series = &chart->series[i];
	strbuf_puts(out, "<g class=\"series\" data-framework=\"");
	text_html(series->group, out);
	strbuf_puts(out, "\">");
	if (series->joined && series->count > 1) {
		svg_polyline(out, series->run, series->colour);
		for (size_t k = 0; k < series->count; k++)
			strbuf_printf(out, "%s%.1f,%.1f", k > 0 ? " " : "",
				      scale_at(&plot->x, series->points[k].x),
				      scale_at(&plot->y, series->points[k].y));
		strbuf_puts(out, "\"/>");
	}
	/* Of many points some have a mark; those of several series are not side by side. */
	size_t stride = plot->marks || !series->joined ? 1 : series->count / MARKED_OF_MANY + 1;
	for (size_t k = 0; k < series->count; k++) {
		draw_whisker(plot, &series->points[k], series->colour, out);
		if ((k + 3 * i) % stride == 0)
			svg_mark(out, series->mark, series->run,
				 scale_at(&plot->x, series->points[k].x),
				 scale_at(&plot->y, series->points[k].y), series->colour);
	}
	strbuf_puts(out, "</g>\n");
}

void lines_svg(const struct chart *chart, int width, struct strbuf *out)
{
	struct plot plot;
	lay_out(chart, width, &plot);
	svg_begin(chart, width, plot.bottom + FOOT, out);
	legend_draw(chart, width, out);
	draw_axes(chart, &plot, out);
	for (size_t i = 0; i < chart->series_count; i++)
		draw_series(chart, &plot, i, out);
	strbuf_puts(out, "</svg>");
}
