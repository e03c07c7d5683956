/*
 * Charts: bars with intervals, stacked bars, curves, loads over time; as SVG that needs no script,
 * and as CSV. They know nothing of what they are about: report/charts.h makes them of results.
 */
#ifndef PRONY_REPORT_CHART_H
#define PRONY_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/strbuf.h"

enum chart_kind {
	CHART_BARS,   /* a bar per row, with interval and the processes as dots */
	CHART_STACKS, /* a bar per row, made of parts */
	CHART_LINES,  /* points over an x axis, joined or not */
	CHART_HEAT    /* a row of shades per row over an x axis */
};

/* What an axis measures. It decides the unit and how ticks are written. */
enum chart_measure { CHART_NS, CHART_BYTES, CHART_PER_SECOND, CHART_PLAIN };

struct chart_axis {
	const char *title;  /* without the unit */
	const char *column; /* in CSV, where values stand in ns, bytes, 1/s */
	enum chart_measure measure;
	bool logarithmic;
	bool ticks_at_values; /* of x: where the points are, not at round numbers */
};

/* A row of bars, stacks or shades. Texts and arrays live in the charts' arena. */
struct chart_row {
	const char *label, *group; /* group: what a reader hides and shows together */
	const char *colour;	   /* "#rrggbb" */
	const char *text;	   /* at the bar's end */
	double value, low, high;   /* low, high NaN: no interval is known */
	bool faint;		   /* not measured here */
	bool heading;		   /* no bar: what the rows below it have in common */
	const double *cells;	   /* dots of a bar; parts of a stack; shades from 0 to 1 */
	size_t cell_count;
};

struct chart_point {
	double x, y, low, high;
};

struct chart_series {
	const char *label, *group, *colour;
	bool joined, dashed;
	unsigned mark; /* which shape marks its points: the group's own, as its colour is */
	struct chart_point *points;
	size_t count;
};

struct chart_part {
	const char *name, *colour;
};

struct chart {
	enum chart_kind kind;
	const char *name;    /* of its files, without an ending: [a-z0-9-] */
	const char *title;   /* what it is about */
	const char *caption; /* how to read it */
	struct chart_axis x, y;
	struct chart_row *rows;
	size_t row_count;
	struct chart_part *parts;
	size_t part_count;
	struct chart_series *series;
	size_t series_count;
	double heat_end;  /* x of the end of the last shade; the first begins at 0 */
	double reference; /* a dashed line there; NaN: none */
	const char *reference_label;
};

/* A list of charts; zeroed, it is empty. Everything in it lives in the arena. */
struct charts {
	struct arena arena;
	struct chart **items;
	size_t count, capacity;
};

/* Adds an empty chart with room for rows, or series. Its name gets a number where another one has
 * it already. Texts are copied. */
struct chart *charts_add(struct charts *charts, enum chart_kind kind, const char *name,
			 const char *title, const char *caption, size_t room);
/* Removes the last chart, which has nothing to show. */
void charts_drop(struct charts *charts);
void charts_release(struct charts *charts);

/* Adds a row or a series, as far as there is room. Texts are copied and made harmless. */
struct chart_row *chart_row(struct charts *charts, struct chart *chart, const char *label,
			    const char *group, const char *colour);
struct chart_series *chart_series(struct charts *charts, struct chart *chart, const char *label,
				  const char *group, const char *colour, size_t room);

/* Describes the chart in one or two sentences, for readers who cannot see it. */
void chart_describe(const struct chart *chart, struct strbuf *out);

/* An <svg> element, `width` pixels wide and as high as needed. Colours are attributes, so that
 * every program shows them; a page's style sheet may change them. */
enum { CHART_WIDE = 620, CHART_NARROW = 340 };
void chart_svg(const struct chart *chart, int width, struct strbuf *out);
/* The chart's numbers as CSV with a heading; unknown values are empty. */
void chart_csv(const struct chart *chart, struct strbuf *out);

#endif
