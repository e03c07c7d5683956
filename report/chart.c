/* Implementation of charts as data: rows, series, names, colours and a description in words. */
#include "report/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

/* Copies text from a framework or a file into the arena, on one line. */
static const char *keep(struct charts *charts, const char *text)
{
	char *line = text_line(text);
	const char *kept = arena_strdup(&charts->arena, line);
	free(line);
	return kept;
}

static bool has_name(const struct charts *charts, const char *name)
{
	for (size_t i = 0; i < charts->count; i++)
		if (!strcmp(charts->items[i]->name, name))
			return true;
	return false;
}

/* Makes a unique name of lower-case letters, digits and single hyphens. */
static const char *make_name(struct charts *charts, const char *name)
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
	const char *unique = arena_strdup(&charts->arena, clean);
	for (int n = 2; has_name(charts, unique); n++)
		unique = arena_printf(&charts->arena, "%s-%d", clean, n);
	return unique;
}

struct chart *charts_add(struct charts *charts, enum chart_kind kind, const char *name,
			 const char *title, const char *caption, size_t room)
{
	charts->items = arena_grow(&charts->arena, charts->items, charts->count, &charts->capacity,
				   sizeof(struct chart *));
	struct chart *chart = arena_alloc(&charts->arena, sizeof *chart);
	*chart = (struct chart){.kind = kind,
				.name = make_name(charts, name),
				.title = keep(charts, title),
				.caption = keep(charts, caption),
				.reference = NAN};
	if (kind == CHART_LINES)
		chart->series = arena_array(&charts->arena, room + 1, sizeof *chart->series);
	else
		chart->rows = arena_array(&charts->arena, room + 1, sizeof *chart->rows);
	charts->items[charts->count++] = chart;
	return chart;
}

void charts_drop(struct charts *charts)
{
	if (charts->count > 0)
		charts->count--;
}

void charts_release(struct charts *charts)
{
	if (!charts)
		return;
	arena_release(&charts->arena);
	*charts = (struct charts){.count = 0};
}

struct chart_row *chart_row(struct charts *charts, struct chart *chart, const char *label,
			    const char *group, const char *colour)
{
	struct chart_row *row = &chart->rows[chart->row_count++];
	*row = (struct chart_row){.label = keep(charts, label),
				  .group = keep(charts, group),
				  .colour = keep(charts, colour),
				  .text = "",
				  .value = NAN,
				  .low = NAN,
				  .high = NAN};
	return row;
}

struct chart_series *chart_series(struct charts *charts, struct chart *chart, const char *label,
				  const char *group, const char *colour, size_t room)
{
	struct chart_series *series = &chart->series[chart->series_count++];
	*series = (struct chart_series){.label = keep(charts, label),
					.group = keep(charts, group),
					.colour = keep(charts, colour),
					.joined = true};
	series->points = arena_array(&charts->arena, room + 1, sizeof *series->points);
	return series;
}

static void describe_rows(const struct chart *chart, struct strbuf *out)
{
	enum { TOLD = 12 };
	for (size_t i = 0; i < chart->row_count && i < TOLD; i++) {
		const struct chart_row *row = &chart->rows[i];
		strbuf_printf(out, "%s %s%s%s", i > 0 ? "," : "", row->label, *row->text ? " " : "",
			      row->text);
	}
	if (chart->row_count > TOLD)
		strbuf_printf(out, " and %zu more", chart->row_count - TOLD);
}

void chart_describe(const struct chart *chart, struct strbuf *out)
{
	static const char *const kinds[] = {[CHART_BARS] = "Bars",
					    [CHART_FOREST] = "Marks with intervals",
					    [CHART_STACKS] = "Stacked bars",
					    [CHART_LINES] = "Curves",
					    [CHART_HEAT] = "Shades"};
	strbuf_printf(out, "%s. %s of %s", chart->title, kinds[chart->kind],
		      chart->kind == CHART_LINES ? chart->y.title : chart->x.title);
	if (chart->kind == CHART_LINES)
		strbuf_printf(out, " over %s", chart->x.title);
	strbuf_puts(out, ":");
	if (chart->kind != CHART_LINES)
		describe_rows(chart, out);
	for (size_t i = 0; i < chart->series_count; i++)
		strbuf_printf(out, "%s %s", i > 0 ? "," : "", chart->series[i].label);
	strbuf_putc(out, '.');
}
