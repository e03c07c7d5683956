/* Figures as data: made row by row, named, coloured, described. */
#include "report/figure.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

/* A text of others, on one line, in the arena. */
static const char *keep(struct figures *figures, const char *text)
{
	char *line = text_line(text);
	const char *kept = arena_strdup(&figures->arena, line);
	free(line);
	return kept;
}

/* FNV-1a. */
static uint32_t hash_of(const char *text)
{
	uint32_t hash = 2166136261U;
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619U;
	return hash;
}

static bool has_name(const struct figures *figures, const char *name)
{
	for (size_t i = 0; i < figures->count; i++)
		if (!strcmp(figures->items[i]->name, name))
			return true;
	return false;
}

/* Lower case letters, digits and single hyphens; unique. */
static const char *make_name(struct figures *figures, const char *name)
{
	enum { NAME_BYTES = 120 };
	char clean[NAME_BYTES + 1];
	size_t length = 0;
	for (; *name && length < NAME_BYTES; name++) {
		char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			clean[length++] = c;
		else if (length > 0 && clean[length - 1] != '-')
			clean[length++] = '-';
	}
	while (length > 0 && clean[length - 1] == '-')
		length--;
	clean[length] = '\0';
	const char *unique = arena_strdup(&figures->arena, clean);
	for (int n = 2; has_name(figures, unique); n++)
		unique = arena_printf(&figures->arena, "%s-%d", clean, n);
	return unique;
}

struct figure *figures_add(struct figures *figures, enum figure_kind kind, const char *name,
			   const char *title, const char *caption, size_t room)
{
	if (figures->count == figures->capacity) {
		size_t capacity = figures->capacity > 0 ? 2 * figures->capacity : 16;
		struct figure **items =
			arena_array(&figures->arena, capacity, sizeof(struct figure *));
		if (figures->count > 0)
			memcpy(items, figures->items, figures->count * sizeof(struct figure *));
		figures->items = items;
		figures->capacity = capacity;
	}
	struct figure *figure = arena_alloc(&figures->arena, sizeof *figure);
	*figure = (struct figure){.kind = kind,
				  .name = make_name(figures, name),
				  .title = keep(figures, title),
				  .caption = keep(figures, caption),
				  .reference = NAN};
	if (kind == FIGURE_LINES)
		figure->series = arena_array(&figures->arena, room + 1, sizeof *figure->series);
	else
		figure->rows = arena_array(&figures->arena, room + 1, sizeof *figure->rows);
	figures->items[figures->count++] = figure;
	return figure;
}

void figures_drop(struct figures *figures)
{
	if (figures->count > 0)
		figures->count--;
}

void figures_release(struct figures *figures)
{
	if (!figures)
		return;
	arena_release(&figures->arena);
	*figures = (struct figures){.count = 0};
}

struct figure_row *figure_row(struct figures *figures, struct figure *figure, const char *label,
			      const char *group, const char *colour)
{
	struct figure_row *row = &figure->rows[figure->row_count++];
	*row = (struct figure_row){.label = keep(figures, label),
				   .group = keep(figures, group),
				   .colour = keep(figures, colour),
				   .text = "",
				   .value = NAN,
				   .low = NAN,
				   .high = NAN};
	return row;
}

struct figure_series *figure_series(struct figures *figures, struct figure *figure,
				    const char *label, const char *group, const char *colour,
				    size_t room)
{
	struct figure_series *series = &figure->series[figure->series_count++];
	*series = (struct figure_series){.label = keep(figures, label),
					 .group = keep(figures, group),
					 .colour = keep(figures, colour),
					 .joined = true,
					 .mark = hash_of(group)};
	series->points = arena_array(&figures->arena, room + 1, sizeof *series->points);
	return series;
}

static void describe_rows(const struct figure *figure, struct strbuf *out)
{
	enum { TOLD = 12 };
	for (size_t i = 0; i < figure->row_count && i < TOLD; i++) {
		const struct figure_row *row = &figure->rows[i];
		strbuf_printf(out, "%s %s%s%s", i > 0 ? "," : "", row->label, *row->text ? " " : "",
			      row->text);
	}
	if (figure->row_count > TOLD)
		strbuf_printf(out, " and %zu more", figure->row_count - TOLD);
}

void figure_describe(const struct figure *figure, struct strbuf *out)
{
	static const char *const kinds[] = {[FIGURE_BARS] = "Bars",
					    [FIGURE_STACKS] = "Stacked bars",
					    [FIGURE_LINES] = "Curves",
					    [FIGURE_HEAT] = "Shades"};
	strbuf_printf(out, "%s. %s of %s", figure->title, kinds[figure->kind],
		      figure->kind == FIGURE_LINES ? figure->y.title : figure->x.title);
	if (figure->kind == FIGURE_LINES)
		strbuf_printf(out, " over %s", figure->x.title);
	strbuf_puts(out, ":");
	if (figure->kind != FIGURE_LINES)
		describe_rows(figure, out);
	for (size_t i = 0; i < figure->series_count; i++)
		strbuf_printf(out, "%s %s", i > 0 ? "," : "", figure->series[i].label);
	strbuf_putc(out, '.');
}
