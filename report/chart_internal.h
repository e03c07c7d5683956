/* Drawing functions shared by the chart sources; private to report/chart*.c. */
#ifndef PRONY_REPORT_CHART_INTERNAL_H
#define PRONY_REPORT_CHART_INTERNAL_H

#include "report/chart.h"

enum { SCALE_TICKS_MAX = 16, SCALE_MINOR_MAX = 64, SCALE_LABEL_BYTES = 40 };

/* The mapping from values to pixels. */
struct scale {
	double low, high; /* values at `from` and `to`; high > low */
	double from, to;  /* pixels */
	bool logarithmic;
	double unit; /* a tick's label is the value divided by this */
	const char *unit_name;
};

/* Makes a scale for the axis and the values present. It starts at 0 unless it is logarithmic.
 * Intervals and dots further than `reach` times the largest value do not extend it. */
void scale_init(struct scale *scale, const struct chart_axis *axis, double low, double high,
		double from, double to);
/* Returns the pixel position of a value; values outside the scale are at its ends. */
double scale_at(const struct scale *scale, double value);
/* Writes round values within the scale, about `wanted` at most; returns their number. They are 1, 2
 * or 5 times powers of ten, or multiples of such a step if the scale is linear or short. */
size_t scale_ticks(const struct scale *scale, size_t wanted, double ticks[SCALE_TICKS_MAX]);
/* The same for marks without a label, at 1 to 9 times each power of ten of a logarithmic scale. */
size_t scale_minor_ticks(const struct scale *scale, double ticks[SCALE_MINOR_MAX]);
void scale_label(const struct scale *scale, double tick, char out[SCALE_LABEL_BYTES]);
/* "time per step (ms)", "time per step (ms, log)" */
void scale_title(const struct scale *scale, const struct chart_axis *axis, char *out,
		 size_t out_bytes);

/* How far an interval may extend a scale, relative to the largest value. */
#define CHART_REACH 1.6
/* The largest value drawn, and the smallest positive one. */
struct extent {
	double low, high;
};
void extent_add(struct extent *extent, double value);
/* Adds the end of an interval, limited by CHART_REACH. Call it after all values were added. */
void extent_stretch(struct extent *extent, double value);

/* Returns the width in pixels of a text at the charts' font size, from its number of columns. */
double chart_text_width(const char *text);

enum chart_anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };
/* Draws one line of text, cut with an ellipsis if wider than `room` pixels (0: never cut). */
void svg_text(struct strbuf *out, double x, double y, enum chart_anchor anchor, bool dim,
	      double room, const char *text);
void svg_line(struct strbuf *out, const char *class, const char *colour, double x1, double y1,
	      double x2, double y2);
/* Draws an arrow head at an edge that an interval crosses; dx, dy give its direction. */
void svg_beyond(struct strbuf *out, double x, double y, int dx, int dy);
/* Draws a mark around a point; there are six shapes, filled or hollow by the number of the run. */
void svg_mark(struct strbuf *out, size_t n, unsigned run, double x, double y, const char *colour);
/* Opens a polyline, dashed by the number of the run, up to its points. */
void svg_polyline(struct strbuf *out, unsigned run, const char *colour);
/* Writes the opening tag, with a description in words. */
void svg_begin(const struct chart *chart, int width, double height, struct strbuf *out);

/* The height of the legend at a width of `width` pixels, and the legend itself. */
double legend_height(const struct chart *chart, int width);
void legend_draw(const struct chart *chart, int width, struct strbuf *out);

/* Draw bars, stacks and shades; draw curves. */
void bars_svg(const struct chart *chart, int width, struct strbuf *out);
void lines_svg(const struct chart *chart, int width, struct strbuf *out);

#endif
