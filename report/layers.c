#include "report/layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/figures.h"
#include "report/format.h"
#include "report/names.h"
#include "report/text.h"

enum { WORD_BYTES = 96 };

struct layer_name {
	char network[CELL_WORD_BYTES], what[WORD_BYTES];
	int times;
};

/* Takes "resnet50.03.x4.Conv1.64x56x56.onnx@1234abcd" apart. */
static bool parse(const char *name, struct layer_name *out)
{
	const char *dot = strchr(name, '.');
	int number, length = 0;

	if (!dot || sscanf(dot, ".%d.x%d.%n", &number, &out->times, &length) != 2 || length == 0)
		return false;
	/* A long name is cut before the digest. */
	const char *what = dot + length, *end = strstr(what, ".onnx@");
	end = end ? end : strchr(what, '@');
	if (!end)
		return false;
	snprintf(out->network, sizeof out->network, "%.*s", (int)(dot - name), name);
	snprintf(out->what, sizeof out->what, "%02d %.*s", number, (int)(end - what), what);
	return true;
}

static const struct cell *cell_of(const struct summary *summary, size_t comparison)
{
	return &summary->rows[summary->first[comparison]].cell->cell;
}

/* Whether the comparison is of a layer of the network, in the same settings. */
static bool is_layer_of(const struct cell *layer, const struct cell *whole, struct layer_name *name)
{
	char a[SUMMARY_KEY_BYTES], b[SUMMARY_KEY_BYTES];
	struct cell same = *layer;

	if (!parse(layer->network, name) || strcmp(name->network, whole->network) != 0)
		return false;
	snprintf(same.network, sizeof same.network, "%s", whole->network);
	snprintf(same.dataset, sizeof same.dataset, "%s", whole->dataset);
	same.sequence = whole->sequence;
	size_t bytes = summary_comparison_key(&same, a);
	return bytes == summary_comparison_key(whole, b) && !memcmp(a, b, bytes);
}

static bool has_layers(const struct summary *summary, size_t whole)
{
	struct layer_name name;

	for (size_t i = 0; i < summary->comparison_count; i++)
		if (is_layer_of(cell_of(summary, i), cell_of(summary, whole), &name))
			return true;
	return false;
}

bool layers_known(const struct summary *summary)
{
	for (size_t i = 0; i < summary->comparison_count; i++)
		if (has_layers(summary, i))
			return true;
	return false;
}

static const struct summary_row *row_of(const struct summary *summary, size_t comparison,
					const char *framework)
{
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++)
		if (!strcmp(summary->rows[i].cell->cell.framework, framework))
			return &summary->rows[i];
	return NULL;
}

static void step_text(const struct summary_row *row, char out[WORD_BYTES])
{
	char step[FORMAT_BYTES];

	if (!row || row->step.n == 0) {
		snprintf(out, WORD_BYTES, "%s", row ? cell_status_name(row->cell->status) : "-");
		return;
	}
	figure_text(FIGURE_STEP, row, step);
	snprintf(out, WORD_BYTES, "%s%s", step, row->rank == 1 ? "*" : " ");
}

/* Of a framework: the sum of its layers, as often as the network has them. */
struct total {
	double ns, square; /* square of its interval's half width, layers being independent */
	bool known;	   /* it has a step of each layer */
};

static void add_step(struct total *total, const struct summary_row *row, int times)
{
	if (!row || row->step.n == 0) {
		total->known = false;
		return;
	}
	total->ns += times * row->step.center;
	total->square += pow(times * row->step.center * row->step.half_width, 2);
}

static void add_total(const struct total *total, struct table *table)
{
	char text[FORMAT_BYTES] = "-";

	if (total->known)
		format_duration_within(total->ns, sqrt(total->square) / total->ns, text,
				       sizeof text);
	table_cell(table, text, NULL);
}

/* "92 % +/- 3 %": the sum of the layers relative to the step of the network. */
static void add_share(const struct total *total, const struct summary_row *whole,
		      struct table *table)
{
	char text[WORD_BYTES] = "-", share[FORMAT_BYTES], width[FORMAT_BYTES];

	if (total->known && whole && whole->step.n > 0) {
		double ratio = total->ns / whole->step.center;
		double relative = sqrt(total->square / total->ns / total->ns +
				       pow(whole->step.half_width, 2));
		format_percent(ratio, share, sizeof share);
		format_percent(ratio * relative, width, sizeof width);
		snprintf(text, sizeof text, isfinite(relative) ? "%s +/- %s" : "%s", share, width);
	}
	table_cell(table, text, NULL);
}

static void render(const struct summary *summary, size_t whole, bool colour, int width,
		   struct strbuf *out)
{
	size_t first = summary->first[whole], count = summary->first[whole + 1] - first;
	struct table_column *columns = memory_alloc((count + 2) * sizeof *columns);
	struct total *totals = memory_alloc((count + 1) * sizeof *totals);
	struct layer_name name;
	char text[WORD_BYTES];

	columns[0] = (struct table_column){"layer", "layer", TABLE_LEFT};
	columns[1] = (struct table_column){"times", "times", TABLE_RIGHT};
	for (size_t f = 0; f < count; f++) {
		const char *framework = summary->rows[first + f].cell->cell.framework;
		columns[2 + f] = (struct table_column){framework, framework, TABLE_RIGHT};
		totals[f] = (struct total){.known = true};
	}
	struct table *table = table_new(columns, count + 2);
	for (size_t i = 0; i < summary->comparison_count; i++) {
		if (!is_layer_of(cell_of(summary, i), cell_of(summary, whole), &name))
			continue;
		table_row(table);
		table_cell(table, name.what, NULL);
		snprintf(text, sizeof text, "%d", name.times);
		table_cell(table, text, NULL);
		for (size_t f = 0; f < count; f++) {
			const struct summary_row *row = row_of(summary, i, columns[2 + f].title);
			add_step(&totals[f], row, name.times);
			step_text(row, text);
			table_cell(table, text, NULL);
		}
	}
	static const char *const lines[] = {"sum of the layers", "the network", "sum / network"};
	for (int line = 0; line < 3; line++) {
		table_row(table);
		table_cell(table, lines[line], NULL);
		table_cell(table, "", NULL);
		for (size_t f = 0; f < count; f++) {
			const struct summary_row *row = &summary->rows[first + f];
			step_text(row, text);
			if (line == 0)
				add_total(&totals[f], table);
			else if (line == 1)
				table_cell(table, text, NULL);
			else
				add_share(&totals[f], row, table);
		}
	}
	table_render_text(table, colour, width, out);
	table_free(table);
	free(totals);
	free(columns);
}

/* Whether an earlier row of the framework gave the same reason. */
static bool was_said(const struct summary *summary, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (!strcmp(summary->rows[i].cell->cell.framework,
			    summary->rows[row].cell->cell.framework) &&
		    !strcmp(summary_note(&summary->rows[i]), summary_note(&summary->rows[row])))
			return true;
	return false;
}

/* Adds why layers of the network have no figures, the same reason once for each framework. */
static void add_reasons(const struct summary *summary, size_t whole, int width, struct strbuf *out)
{
	struct layer_name name;

	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (!*summary_note(row) || was_said(summary, i) ||
		    !is_layer_of(&row->cell->cell, cell_of(summary, whole), &name))
			continue;
		char *line = memory_printf("%s, %s: %s", row->cell->cell.framework, name.what,
					   summary_note(row));
		text_wrap(line, 2, width, "", "", out);
		free(line);
	}
}

void layers_render(const struct summary *summary, bool colour, int width, struct strbuf *out)
{
	for (size_t i = 0; i < summary->comparison_count; i++) {
		char title[CELL_KEY_BYTES];
		if (!has_layers(summary, i))
			continue;
		summary_comparison_title(cell_of(summary, i), title, sizeof title);
		strbuf_putc(out, '\n');
		text_wrap(title, 0, width, "", "", out);
		render(summary, i, colour, width, out);
		add_reasons(summary, i, width, out);
	}
	text_wrap("*: first, or shares the first place. A layer alone finds its input in the "
		  "caches more often than in the network, and pays for its own call and for the "
		  "layout of its input and output. The sum is without layers that read more than "
		  "the batch. prony show --full has each layer's table",
		  0, width, colour ? TEXT_DIM : "", colour ? TEXT_PLAIN : "", out);
}
