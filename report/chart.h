/* Charts as data, drawn as SVG without a script and written as CSV: bars and marks with intervals,
 * stacked bars, curves, loads over time. This code is independent of benchmark results;
 * report/charts.h builds the charts from results. */
#ifndef PRONY_REPORT_CHART_H
#define PRONY_REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/strbuf.h"

enum chart_kind {
	CHART_BARS,   /* a bar per row, with its interval, and a dot per process */
	CHART_FOREST, /* the same with a mark for the bar, on a logarithmic axis */
	CHART_STACKS, /* a bar per row, divided into parts */
	CHART_LINES,  /* points over an x axis, joined or not */
	CHART_HEAT    /* a line of shades per row, over an x axis */
};

/* The quantity on an axis. It determines the unit and the tick labels. */
enum chart_measure { CHART_NS, CHART_BYTES, CHART_PER_SECOND, CHART_PLAIN };

struct chart_axis {
	const char *title;  /* without the unit */
	const char *column; /* column name in CSV, where values are in ns, bytes or 1/s */
	enum chart_measure measure;
	bool logarithmic;
	bool ticks_at_values; /* x axis only: ticks at the points, not at round numbers */
};

/* A row of bars, marks, stacks or shades. Texts and arrays live in the charts' arena. */
struct chart_row {
	const char *label, *group; /* group: the rows that a reader hides and shows together */
	const char *colour;	   /* "#rrggbb" */
	const char *text;	   /* at the bar's end */
	double value, low, high;   /* low, high NaN: the interval is unknown */
	bool faint;		   /* not measured here */
	bool heading;		   /* no bar: a heading for the rows below it */
	unsigned mark, run;	   /* as in struct chart_series */
	const char *attributes;	   /* of its SVG element, escaped; NULL: its group only */
	const double *cells;	   /* dots of a bar, parts of a stack, or shades from 0 to 1 */
	size_t cell_count;
};

struct chart_point {
	double x, y, low, high;
};

struct chart_series {
	const char *label, *group, *colour;
	bool joined;
	unsigned mark; /* index of the point shape, below CHART_MARKS */
	unsigned run;  /* its lines are dashed and its marks filled or hollow by this number */
	struct chart_point *points;
	size_t count;
};

struct chart_part {
	const char *name, *colour;
};

struct chart {
	enum chart_kind kind;
	const char *name;  /* base name of its files: [a-z0-9-] */
	const char *title; /* subject of the chart */
	const char
		*heading; /* the title where the text around it says the rest; NULL: as the title */
	const char *caption; /* how to read it */
	struct chart_axis x, y;
	struct chart_row *rows;
	size_t row_count;
	struct chart_part *parts;
	size_t part_count;
	struct chart_series *series;
	size_t series_count;
	double pixel_mm;  /* size of a pixel in print; 0: the image is in pixels */
	double heat_end;  /* x at the end of the last shade; the first shade begins at 0 */
	double reference; /* position of a dashed line; NaN: none */
	const char *reference_label;
};

/* A list of charts. A zeroed list is empty. All its data are in the arena. */
struct charts {
	struct arena arena;
	struct chart **items;
	size_t count, capacity;
};

/* Adds an empty chart with room for rows or series. If the name is already in use, a number is
 * appended. Texts are copied. */
struct chart *charts_add(struct charts *charts, enum chart_kind kind, const char *name,
			 const char *title, const char *caption, size_t room);
/* Removes the last chart; used when it has nothing to show. */
void charts_drop(struct charts *charts);
void charts_release(struct charts *charts);

/* Adds a row or a series if there is room. Texts are copied and made safe for output. */
struct chart_row *chart_row(struct charts *charts, struct chart *chart, const char *label,
			    const char *group, const char *colour);
struct chart_series *chart_series(struct charts *charts, struct chart *chart, const char *label,
				  const char *group, const char *colour, size_t room);

/* Describes the chart in one or two sentences, for readers who cannot see it. */
void chart_describe(const struct chart *chart, struct strbuf *out);

enum { CHART_MARKS = 6 };

/* Writes an <svg> element, `width` pixels wide and as high as needed. Colours are attributes, so
 * that every program shows them; the style sheet of a page may override them. */
enum { CHART_WIDE = 620, CHART_NARROW = 340 };
void chart_svg(const struct chart *chart, int width, struct strbuf *out);
/* Writes the chart's numbers as CSV with a heading; unknown values are empty. */
void chart_csv(const struct chart *chart, struct strbuf *out);

#endif
