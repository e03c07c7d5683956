/* SVG elements shared by all charts: text, lines, marks, legends. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart_internal.h"
#include "report/text.h"

/* Estimated width of a proportional sans-serif letter, so that a page looks the same on every
 * machine. */
#define COLUMN_PIXELS 7.3
#define INK "#1b1f24"
#define DIM "#59626d"
#define ELLIPSIS "\xE2\x80\xA6"
enum { LEGEND_LINE = 18, LEGEND_MARK = 16, LEGEND_CURVE = 30, LEGEND_GAP = 14, DASHES = 4 };
static const char *const dashes[DASHES] = {"", "7 3", "2 2.5", "9 3 2 3"};

double chart_text_width(const char *text)
{
	return COLUMN_PIXELS * (double)text_columns(text);
}

void svg_text(struct strbuf *out, double x, double y, enum chart_anchor anchor, bool dim,
	      double room, const char *text)
{
	static const char *const anchors[] = {"start", "middle", "end"};
	char part[256];
	strbuf_printf(out,
		      "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\" text-anchor=\"%s\">",
		      dim ? "fd" : "ft", x, y, dim ? DIM : INK, anchors[anchor]);
	if (room > 0 && chart_text_width(text) > room) {
		size_t columns = room > 2 * COLUMN_PIXELS ? (size_t)(room / COLUMN_PIXELS) - 1 : 1;
		snprintf(part, sizeof part, "%.*s", (int)text_fit(text, columns), text);
		text_html(part, out);
		strbuf_puts(out, ELLIPSIS "<title>");
		text_html(text, out);
		strbuf_puts(out, "</title>");
	} else {
		text_html(text, out);
	}
	strbuf_puts(out, "</text>");
}

void svg_line(struct strbuf *out, const char *class, const char *colour, double x1, double y1,
	      double x2, double y2)
{
	strbuf_printf(out,
		      "<line class=\"%s\" stroke=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
		      "y2=\"%.1f\"/>",
		      class, colour, x1, y1, x2, y2);
}

void svg_beyond(struct strbuf *out, double x, double y, int dx, int dy)
{
	const double size = 5;
	strbuf_printf(out,
		      "<path class=\"fw-beyond\" fill=\"" INK "\" d=\"M%.1f %.1fL%.1f %.1fL%.1f "
		      "%.1fZ\"/>",
		      x + dx * size, y + dy * size, x - dy * size, y - dx * size, x + dy * size,
		      y + dx * size);
}

void svg_polyline(struct strbuf *out, unsigned run, const char *colour)
{
	strbuf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"", colour);
	if (run % DASHES > 0)
		strbuf_printf(out, " stroke-dasharray=\"%s\"", dashes[run % DASHES]);
	strbuf_puts(out, " points=\"");
}

void svg_mark(struct strbuf *out, size_t n, unsigned run, double x, double y, const char *colour)
{
	const double r = 3.6;
	/* With the dashes, eight runs differ. */
	if ((run + run / DASHES) % 2)
		strbuf_printf(out,
			      "<path class=\"fm\" fill=\"none\" stroke=\"%s\" "
			      "stroke-width=\"1.5\" d=\"",
			      colour);
	else
		strbuf_printf(out, "<path class=\"fm\" fill=\"%s\" d=\"", colour);
	switch (n % CHART_MARKS) {
	case 0:
		strbuf_printf(out, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0Z",
			      x - r, y, r, r, 2 * r, r, r, -2 * r);
		break;
	case 1:
		strbuf_printf(out, "M%.1f %.1fh%.1fv%.1fh%.1fZ", x - r, y - r, 2 * r, 2 * r,
			      -2 * r);
		break;
	case 2:
		strbuf_printf(out, "M%.1f %.1fL%.1f %.1fL%.1f %.1fZ", x, y - 1.2 * r, x + 1.2 * r,
			      y + r, x - 1.2 * r, y + r);
		break;
	case 3:
		strbuf_printf(out, "M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ", x, y - 1.3 * r,
			      x + 1.3 * r, y, x, y + 1.3 * r, x - 1.3 * r, y);
		break;
	case 4:
		strbuf_printf(out, "M%.1f %.1fL%.1f %.1fL%.1f %.1fZ", x, y + 1.2 * r, x + 1.2 * r,
			      y - r, x - 1.2 * r, y - r);
		break;
	default:
		strbuf_printf(
			out, "M%.1f %.1fh%.1fv%.1fh%.1fv%.1fh%.1fv%.1fh%.1fv%.1fh%.1fv%.1fh%.1fZ",
			x - r / 3, y - 1.2 * r, 2 * r / 3, 0.87 * r, 0.87 * r, 2 * r / 3, -0.87 * r,
			0.87 * r, -2 * r / 3, -0.87 * r, -0.87 * r, -2 * r / 3, 0.87 * r);
	}
	strbuf_puts(out, "\"/>");
}

void svg_begin(const struct chart *chart, int width, double height, struct strbuf *out)
{
	double pixel = chart->pixel_mm > 0 ? chart->pixel_mm : 1;
	const char *unit = chart->pixel_mm > 0 ? "mm" : "";
	struct strbuf words;
	strbuf_init(&words, 0);
	chart_describe(chart, &words);
	strbuf_printf(out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
		      "width=\"%.6g%s\" height=\"%.6g%s\" font-family=\"system-ui, "
		      "'DejaVu Sans', sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"",
		      width, height, width * pixel, unit, round(height) * pixel, unit);
	text_html(strbuf_text(&words), out);
	strbuf_puts(out, "\"><title>");
	text_html(chart->title, out);
	strbuf_puts(out, "</title>\n");
	strbuf_release(&words);
}

static size_t legend_count(const struct chart *chart)
{
	return chart->kind == CHART_LINES ? chart->series_count : chart->part_count;
}

static const char *legend_label(const struct chart *chart, size_t i)
{
	return chart->kind == CHART_LINES ? chart->series[i].label : chart->parts[i].name;
}

/* Returns the width of what stands before an entry's label: a mark, or a mark on a line. */
static double legend_sign(const struct chart *chart, size_t i)
{
	return chart->kind == CHART_LINES && chart->series[i].joined ? LEGEND_CURVE : LEGEND_MARK;
}

/* Finds the position of the next entry; false if it begins a new line. */
static bool legend_fits(const char *label, double sign, int width, double *x)
{
	double wide = sign + chart_text_width(label) + LEGEND_GAP;
	bool fits = *x == 0 || *x + wide - LEGEND_GAP <= width;
	*x = (fits ? *x : 0) + wide;
	return fits;
}

double legend_height(const struct chart *chart, int width)
{
	size_t lines = legend_count(chart) > 0;
	double x = 0;
	for (size_t i = 0; i < legend_count(chart); i++)
		lines += !legend_fits(legend_label(chart, i), legend_sign(chart, i), width, &x);
	return LEGEND_LINE * (double)lines;
}

void legend_draw(const struct chart *chart, int width, struct strbuf *out)
{
	double x = 0, y = 12;
	strbuf_puts(out, "<g class=\"legend\">");
	for (size_t i = 0; i < legend_count(chart); i++) {
		const char *label = legend_label(chart, i);
		double sign = legend_sign(chart, i);
		if (!legend_fits(label, sign, width, &x))
			y += LEGEND_LINE;
		double at = x - LEGEND_GAP - sign - chart_text_width(label);
		if (chart->kind == CHART_LINES) {
			strbuf_puts(out, "<g data-framework=\"");
			text_html(chart->series[i].group, out);
			strbuf_puts(out, "\">");
			if (chart->series[i].joined) {
				svg_polyline(out, chart->series[i].run, chart->series[i].colour);
				strbuf_printf(out, "%.1f,%.1f %.1f,%.1f\"/>", at, y - 4,
					      at + sign - 5, y - 4);
			}
			svg_mark(out, chart->series[i].mark, chart->series[i].run,
				 at + (sign - 5) / 2, y - 4, chart->series[i].colour);
		} else {
			strbuf_printf(out,
				      "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" "
				      "fill=\"%s\"/>",
				      at, y - 9, chart->parts[i].colour);
		}
		svg_text(out, at + sign, y, ANCHOR_START, false, width - at - sign, label);
		strbuf_puts(out, "</g>");
	}
	strbuf_puts(out, "</g>\n");
}
