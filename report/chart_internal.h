/* What the parts of drawing a chart share; only report/chart*.c use this. */
#ifndef PRONY_REPORT_CHART_INTERNAL_H
#define PRONY_REPORT_CHART_INTERNAL_H

#include "report/chart.h"

enum { SCALE_TICKS_MAX = 16, SCALE_LABEL_BYTES = 40 };

/* Values to pixels. */
struct scale {
	double low, high; /* values at `from` and `to`; high > low */
	double from, to;  /* pixels */
	bool logarithmic;
	double unit; /* a tick's label is the value over it */
	const char *unit_name;
};

/* A scale of the axis over what values there are, from 0 where it is not logarithmic. Intervals and
 * dots that lie farther out than `reach` times the largest value do not stretch it. */
void scale_init(struct scale *scale, const struct chart_axis *axis, double low, double high,
		double from, double to);
/* Where a value is; at the ends for those beyond. */
double scale_at(const struct scale *scale, double value);
/* Round values within the scale, at most `wanted` or so; how many. */
size_t scale_ticks(const struct scale *scale, size_t wanted, double ticks[SCALE_TICKS_MAX]);
void scale_label(const struct scale *scale, double tick, char out[SCALE_LABEL_BYTES]);
/* "time per step (ms)" */
void scale_title(const struct scale *scale, const struct chart_axis *axis, char *out,
		 size_t out_bytes);

/* How far an interval may stretch a scale beyond the largest value. */
#define CHART_REACH 1.6
/* The largest of what is drawn, and the smallest positive. */
struct extent {
	double low, high;
};
void extent_add(struct extent *extent, double value);
/* An end of an interval: as far as CHART_REACH allows once all values are in. */
void extent_stretch(struct extent *extent, double value);

/* Width of a text of the charts' size in pixels, from the columns it takes. */
double chart_text_width(const char *text);

enum chart_anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };
/* One line of text, cut with an ellipsis where it is wider than `room` pixels (0: never). */
void svg_text(struct strbuf *out, double x, double y, enum chart_anchor anchor, bool dim,
	      double room, const char *text);
void svg_line(struct strbuf *out, const char *class, const char *colour, double x1, double y1,
	      double x2, double y2);
/* An arrow head at an edge, where an interval goes on beyond: dx, dy its direction. */
void svg_beyond(struct strbuf *out, double x, double y, int dx, int dy);
/* A mark around a point: six shapes. */
void svg_mark(struct strbuf *out, size_t n, double x, double y, const char *colour);
/* Opening tag with what it shows in words. */
void svg_begin(const struct chart *chart, int width, double height, struct strbuf *out);

/* The height of a legend of these names, `width` pixels wide, and the legend itself. */
double legend_height(const struct chart *chart, int width);
void legend_draw(const struct chart *chart, int width, struct strbuf *out);

/* Bars, stacks and shades; curves. */
void bars_svg(const struct chart *chart, int width, struct strbuf *out);
void lines_svg(const struct chart *chart, int width, struct strbuf *out);

#endif
