/*
 * Figures: bars with intervals, stacked bars, curves, loads over time; as SVG that needs no script,
 * and as CSV. They know nothing of what they are about: report/figures.h makes them of results.
 */
#ifndef PRONY_REPORT_FIGURE_H
#define PRONY_REPORT_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/strbuf.h"

enum figure_kind {
	FIGURE_BARS,   /* a bar per row, with interval and the processes as dots */
	FIGURE_STACKS, /* a bar per row, made of parts */
	FIGURE_LINES,  /* points over an x axis, joined or not */
	FIGURE_HEAT    /* a row of shades per row over an x axis */
};

/* What an axis measures: chooses units and how its ticks are written. */
enum figure_measure { FIGURE_NS, FIGURE_BYTES, FIGURE_PER_SECOND, FIGURE_PLAIN };

struct figure_axis {
	const char *title;  /* without the unit */
	const char *column; /* in CSV, where values stand in ns, bytes, 1/s */
	enum figure_measure measure;
	bool logarithmic;
	bool ticks_at_values; /* of x: where the points are, not at round numbers */
};

/* A row of bars, stacks or shades. Texts and arrays live in the figures' arena. */
struct figure_row {
	const char *label, *group; /* group: what a reader hides and shows together */
	const char *colour;	   /* "#rrggbb" */
	const char *text;	   /* at the bar's end */
	double value, low, high;   /* low, high NaN: no interval is known */
	bool faint;		   /* not measured here */
	bool heading;		   /* no bar: what the rows below it have in common */
	const double *cells;	   /* dots of a bar; parts of a stack; shades from 0 to 1 */
	size_t cell_count;
};

struct figure_point {
	double x, y, low, high;
};

struct figure_series {
	const char *label, *group, *colour;
	bool joined, dashed;
	unsigned mark; /* which shape marks its points: the group's own, as its colour is */
	struct figure_point *points;
	size_t count;
};

struct figure_part {
	const char *name, *colour;
};

struct figure {
	enum figure_kind kind;
	const char *name;    /* of its files, without an ending: [a-z0-9-] */
	const char *title;   /* what it is about */
	const char *caption; /* how to read it */
	struct figure_axis x, y;
	struct figure_row *rows;
	size_t row_count;
	struct figure_part *parts;
	size_t part_count;
	struct figure_series *series;
	size_t series_count;
	double heat_end;  /* x of the end of the last shade; the first begins at 0 */
	double reference; /* a dashed line there; NaN: none */
	const char *reference_label;
};

/* All-zero: empty. Everything in it lives in the arena. */
struct figures {
	struct arena arena;
	struct figure **items;
	size_t count, capacity;
};

/* Adds an empty figure with room for rows, or series. Its name gets a number where another one has
 * it already. Texts are copied. */
struct figure *figures_add(struct figures *figures, enum figure_kind kind, const char *name,
			   const char *title, const char *caption, size_t room);
/* Takes the last one off again: it has nothing to show. */
void figures_drop(struct figures *figures);
void figures_release(struct figures *figures);

/* The next row or series, of those that there is room for. Texts are copied, made harmless. */
struct figure_row *figure_row(struct figures *figures, struct figure *figure, const char *label,
			      const char *group, const char *colour);
struct figure_series *figure_series(struct figures *figures, struct figure *figure,
				    const char *label, const char *group, const char *colour,
				    size_t room);

/* What a figure shows, in a sentence or two, for who cannot see it. */
void figure_describe(const struct figure *figure, struct strbuf *out);

/* An <svg> element `width` pixels wide, as high as it takes. Its colours are those of paper, as
 * attributes, so that every program shows it; a page's style sheet may set others. */
enum { FIGURE_WIDE = 620, FIGURE_NARROW = 340 };
void figure_svg(const struct figure *figure, int width, struct strbuf *out);
/* The same figures as CSV with a heading: what is not known is empty. */
void figure_csv(const struct figure *figure, struct strbuf *out);

#endif
