/* Prints a sweep as one table: frameworks against the values of a numeric axis. */
#include "report/pivot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/figures.h"
#include "report/labels.h"
#include "report/names.h"
#include "report/text.h"

/*
 * LINES_MAX: the number of lines of each kind under a sweep, followed by one line for all others.
 */
enum { VALUES_MIN = 3, LINES_MAX = 3 };

static bool is_numeric(const struct axis *axis)
{
	return axis->type == AXIS_INT || axis->type == AXIS_REAL;
}

static size_t count_values(const struct summary *summary, enum axis_id id)
{
	struct names names = {.count = 0};
	char text[CELL_WORD_BYTES];

	for (size_t i = 0; i < summary->count; i++) {
		const struct cell *cell = &summary->rows[i].cell->cell;
		if (!axis_applies(&axes[id], cell))
			continue;
		axis_text(&axes[id], axis_value(&axes[id], cell), text);
		names_add(&names, text, strlen(text));
	}
	size_t count = names.count;
	names_release(&names);
	return count;
}

enum axis_id pivot_axis(const struct summary *summary)
{
	enum axis_id found = AXIS_COUNT;

	for (int id = 0; id < AXIS_COUNT; id++) {
		if (!is_numeric(&axes[id]) || count_values(summary, (enum axis_id)id) < VALUES_MIN)
			continue;
		if (found != AXIS_COUNT)
			return AXIS_COUNT;
		found = (enum axis_id)id;
	}
	return found;
}

/* Makes a key that is equal for comparisons that differ only in the axis. */
static size_t sweep_key(const struct cell *cell, enum axis_id id, char key[SUMMARY_KEY_BYTES])
{
	struct cell same = *cell;
	void *value = (char *)&same + axes[id].offset;

	if (axes[id].type == AXIS_INT)
		*(int64_t *)value = 0;
	else
		*(double *)value = 0;
	return summary_comparison_key(&same, key);
}

static double number_of(const struct cell *cell, enum axis_id id)
{
	const void *value = axis_value(&axes[id], cell);

	return axes[id].type == AXIS_INT ? (double)*(const int64_t *)value : *(const double *)value;
}

/* The cells of one sweep: rows by framework and value; NULL if there is none. */
struct sweep {
	const struct summary *summary;
	enum axis_id axis;
	struct names frameworks;
	const struct cell **cells; /* a cell for each value, in ascending order */
	size_t values;
	const struct summary_row **rows; /* [framework * values + value] */
};

struct numbered {
	double number;
	const struct cell *cell;
};

static int compare_numbers(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Finds the distinct values in the rows of the sweep. */
static void find_values(struct sweep *sweep, const struct summary_row *const *rows, size_t count)
{
	struct numbered *all = memory_alloc((count + 1) * sizeof *all);

	for (size_t i = 0; i < count; i++)
		all[i] = (struct numbered){number_of(&rows[i]->cell->cell, sweep->axis),
					   &rows[i]->cell->cell};
	qsort(all, count, sizeof *all, compare_numbers);
	sweep->cells = memory_alloc((count + 1) * sizeof *sweep->cells);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || all[i].number != all[i - 1].number)
			sweep->cells[sweep->values++] = all[i].cell;
	free(all);
}

static size_t find_value(const struct sweep *sweep, const struct cell *cell)
{
	double number = number_of(cell, sweep->axis);
	size_t at = 0;

	while (number_of(sweep->cells[at], sweep->axis) != number)
		at++;
	return at;
}

static void sweep_init(struct sweep *sweep, const struct summary *summary, enum axis_id axis,
		       const struct summary_row *const *rows, size_t count)
{
	*sweep = (struct sweep){.summary = summary, .axis = axis};
	find_values(sweep, rows, count);
	for (size_t i = 0; i < count; i++) {
		const char *name = rows[i]->cell->cell.framework;
		if (!rows[i]->folded)
			names_add(&sweep->frameworks, name, strlen(name) + 1);
	}
	size_t places = sweep->frameworks.count * sweep->values + 1;
	sweep->rows = memory_alloc(places * sizeof *sweep->rows);
	memset(sweep->rows, 0, places * sizeof *sweep->rows);
	for (size_t i = 0; i < count; i++) {
		const char *name = rows[i]->cell->cell.framework;
		size_t framework = names_find(&sweep->frameworks, name, strlen(name) + 1);
		if (framework != NAMES_NONE && !rows[i]->folded)
			sweep->rows[framework * sweep->values +
				    find_value(sweep, &rows[i]->cell->cell)] = rows[i];
	}
}

static void sweep_release(struct sweep *sweep)
{
	names_release(&sweep->frameworks);
	free(sweep->cells);
	free(sweep->rows);
}

static void entry_text(const struct summary_row *row, char out[64])
{
	char step[FORMAT_BYTES];

	if (!row || (row->cell->status == CELL_PENDING && row->step.n == 0)) {
		snprintf(out, 64, "-");
		return;
	}
	figure_text(FIGURE_STEP, row, step);
	if (row->step.n > 0)
		snprintf(out, 64, "%s%s", step,
			 row->rank == 1 ? "*"
			 : row->rank == 0 && (row->comparable || row->cell->status != CELL_OK)
				 ? "?"
				 : " ");
	else
		snprintf(out, 64, "%s", cell_status_name(row->cell->status));
}

static void value_text(const struct sweep *sweep, size_t value, char out[CELL_WORD_BYTES])
{
	const struct axis *axis = &axes[sweep->axis];

	axis_text(axis, axis_value(axis, sweep->cells[value]), out);
}

static const char *framework_name(const struct sweep *sweep, size_t framework)
{
	return sweep->frameworks.rows[framework].bytes;
}

/* Writes the name of a line or column of the table: frameworks or values. */
static void name_text(const struct sweep *sweep, bool framework, size_t at,
		      char out[CELL_WORD_BYTES])
{
	if (framework)
		snprintf(out, CELL_WORD_BYTES, "%s", framework_name(sweep, at));
	else
		value_text(sweep, at, out);
}

/* Prints the step times. The more numerous of frameworks and values stand below each other. */
static void render_sweep(const struct sweep *sweep, bool colour, int width, struct strbuf *out)
{
	size_t frameworks = sweep->frameworks.count, values = sweep->values;
	bool down = frameworks >= values; /* frameworks are lines, values columns */
	size_t lines = down ? frameworks : values, count = down ? values : frameworks;
	struct table_column *columns = memory_alloc((count + 1) * sizeof *columns);
	char(*titles)[CELL_WORD_BYTES] = memory_alloc((count + 1) * sizeof *titles);
	const char *axis = axes[sweep->axis].name;
	char text[CELL_WORD_BYTES];

	columns[0] = down ? (struct table_column){"framework", "framework", TABLE_LEFT}
			  : (struct table_column){axis, axis, TABLE_RIGHT};
	for (size_t i = 0; i < count; i++) {
		name_text(sweep, !down, i, titles[i]);
		columns[1 + i] = (struct table_column){titles[i], titles[i], TABLE_RIGHT};
	}
	struct table *table = table_new(columns, count + 1);
	for (size_t line = 0; line < lines; line++) {
		table_row(table);
		name_text(sweep, down, line, text);
		table_cell(table, text, NULL);
		for (size_t i = 0; i < count; i++) {
			entry_text(sweep->rows[down ? line * values + i : i * values + line], text);
			table_cell(table, text, NULL);
		}
	}
	table_render_text(table, colour, width, out);
	table_free(table);
	free(titles);
	free(columns);
}

/* Adds why cells have no figures; cells of a framework with the same reason share a line. */
static void add_reasons(const struct sweep *sweep, int width, struct strbuf *out)
{
	char value[CELL_WORD_BYTES];

	for (size_t f = 0; f < sweep->frameworks.count; f++) {
		const struct summary_row *const *rows = &sweep->rows[f * sweep->values];
		for (size_t v = 0; v < sweep->values; v++) {
			const char *reason = rows[v] ? summary_note(rows[v]) : "";
			bool said = !*reason;
			struct strbuf line;
			for (size_t k = 0; k < v && !said; k++)
				said = rows[k] && !strcmp(summary_note(rows[k]), reason);
			if (said)
				continue;
			strbuf_init(&line, 0);
			strbuf_printf(&line, "%s, %s", framework_name(sweep, f),
				      axes[sweep->axis].name);
			for (size_t k = v; k < sweep->values; k++) {
				if (!rows[k] || strcmp(summary_note(rows[k]), reason) != 0)
					continue;
				value_text(sweep, k, value);
				strbuf_printf(&line, "%s %s", k > v ? "," : "", value);
			}
			strbuf_printf(&line, ": %s", reason);
			text_wrap(strbuf_text(&line), 2, width, "", "", out);
			strbuf_release(&line);
		}
	}
}

/* Returns the numbers of the comparisons of the sweep's values, in order; SIZE_MAX if a value has
 * no row. The caller frees. */
static size_t *comparisons_of(const struct sweep *sweep)
{
	size_t *numbers = memory_alloc((sweep->values + 1) * sizeof *numbers);

	for (size_t v = 0; v < sweep->values; v++) {
		numbers[v] = SIZE_MAX;
		for (size_t f = 0; f < sweep->frameworks.count; f++) {
			const struct summary_row *row = sweep->rows[f * sweep->values + v];
			if (row)
				numbers[v] = row->comparison;
		}
	}
	return numbers;
}

/* Adds "batch 1, 16: " and the line under the tables of these values. Equal lines are merged;
 * beyond LINES_MAX, a line refers to --full. */
static void add_verdict(const struct sweep *sweep, const size_t *comparisons, summary_verdict *say,
			int width, struct strbuf *out)
{
	struct strbuf *texts = memory_alloc((sweep->values + 1) * sizeof *texts), line;
	bool *said = memory_alloc((sweep->values + 1) * sizeof *said);
	size_t lines = 0;

	for (size_t v = 0; v < sweep->values; v++) {
		strbuf_init(&texts[v], 0);
		said[v] = comparisons[v] == SIZE_MAX ||
			  !say(sweep->summary, comparisons[v], &texts[v]);
	}
	for (size_t v = 0; v < sweep->values; v++) {
		bool last = lines == LINES_MAX;
		const char *comma = "";
		if (said[v])
			continue;
		strbuf_init(&line, 0);
		strbuf_printf(&line, "%s ", axes[sweep->axis].name);
		for (size_t k = v; k < sweep->values; k++) {
			char value[CELL_WORD_BYTES];
			if (said[k] ||
			    (!last && strcmp(strbuf_text(&texts[k]), strbuf_text(&texts[v])) != 0))
				continue;
			value_text(sweep, k, value);
			strbuf_printf(&line, "%s%s", comma, value);
			comma = ", ";
			said[k] = true;
		}
		strbuf_printf(&line, ": %s",
			      last ? "likewise: prony show --full" : strbuf_text(&texts[v]));
		text_wrap(strbuf_text(&line), 0, width, "", "", out);
		strbuf_release(&line);
		lines++;
	}
	for (size_t v = 0; v < sweep->values; v++)
		strbuf_release(&texts[v]);
	free(texts);
	free(said);
}

/* The widest interval with its row, and the narrowest half width. */
struct widths {
	double least, most;
	const struct summary_row *widest;
};

static struct widths find_widths(const struct sweep *sweep)
{
	struct widths widths = {INFINITY, 0, NULL};

	for (size_t i = 0; i < sweep->frameworks.count * sweep->values; i++) {
		const struct summary_row *row = sweep->rows[i];
		if (!row || isnan(row->step.half_width))
			continue;
		widths.least = fmin(widths.least, row->step.half_width);
		if (!widths.widest || row->step.half_width > widths.most) {
			widths.most = row->step.half_width;
			widths.widest = row;
		}
	}
	return widths;
}

static void add_widths(const struct sweep *sweep, int width, struct strbuf *out)
{
	struct widths widths = find_widths(sweep);
	char least[FORMAT_BYTES], most[FORMAT_BYTES], value[CELL_WORD_BYTES], text[256];

	if (!widths.widest)
		return;
	const struct cell *cell = &widths.widest->cell->cell;
	format_percent(widths.least, least, sizeof least);
	format_percent(widths.most, most, sizeof most);
	axis_text(&axes[sweep->axis], axis_value(&axes[sweep->axis], cell), value);
	bool same = !strcmp(least, most);
	snprintf(text, sizeof text, "+/- %s%s%s (%s, %s %s, has the widest)", same ? "" : least,
		 same ? "" : " to ", most, cell->framework, axes[sweep->axis].name, value);
	text_wrap(text, 0, width, "", "", out);
}

/* Adds the lines under the tables for all comparisons of the sweep. */
static void add_below(const struct sweep *sweep, int width, struct strbuf *out)
{
	size_t *comparisons = comparisons_of(sweep);
	struct strbuf line;

	add_widths(sweep, width, out);
	for (size_t k = 0; k < summary_verdict_count; k++)
		if (summary_verdicts[k] != summary_undecided && summary_verdicts[k] != summary_led)
			add_verdict(sweep, comparisons, summary_verdicts[k], width, out);
	strbuf_init(&line, 0);
	strbuf_puts(&line, "?: ");
	if (summary_undecided_among(sweep->summary, comparisons, sweep->values, &line))
		text_wrap(strbuf_text(&line), 0, width, "", "", out);
	strbuf_release(&line);
	free(comparisons);
}

static void render_group(const struct summary *summary, enum axis_id axis,
			 const struct summary_row *const *rows, size_t count, bool colour,
			 int width, struct strbuf *out)
{
	struct labels labels = {.varies = {false}};
	char title[CELL_KEY_BYTES];
	struct sweep sweep;

	labels.varies[axis] = true;
	label_common(&labels, &rows[0]->cell->cell, title, sizeof title);
	strbuf_putc(out, '\n');
	text_wrap(title, 0, width, colour ? TEXT_BOLD : "", colour ? TEXT_PLAIN : "", out);
	sweep_init(&sweep, summary, axis, rows, count);
	if (sweep.frameworks.count > 0)
		render_sweep(&sweep, colour, width, out);
	add_reasons(&sweep, width, out);
	if (sweep.frameworks.count > 0)
		add_below(&sweep, width, out);
	sweep_release(&sweep);
}

bool pivot_render(const struct summary *summary, enum axis_id axis, pivot_usual *usual, bool colour,
		  int width, struct strbuf *out)
{
	const struct summary_row **rows = memory_alloc((summary->count + 1) * sizeof *rows);
	size_t *of_row = memory_alloc((summary->count + 1) * sizeof *of_row);
	struct names groups = {.count = 0};
	char key[SUMMARY_KEY_BYTES];
	bool any_usual = false;

	for (size_t i = 0; i < summary->count; i++)
		of_row[i] =
			names_add(&groups, key, sweep_key(&summary->rows[i].cell->cell, axis, key));
	for (size_t group = 0; group < groups.count; group++) {
		size_t count = 0;
		for (size_t i = 0; i < summary->count; i++)
			if (of_row[i] == group)
				rows[count++] = &summary->rows[i];
		/* If the axis does not apply, the rows differ in no other axis: they are one
		 * comparison. */
		if (axis_applies(&axes[axis], &rows[0]->cell->cell)) {
			render_group(summary, axis, rows, count, colour, width, out);
		} else {
			usual(summary, rows[0]->comparison, colour, width, out);
			any_usual = true;
		}
	}
	names_release(&groups);
	free(of_row);
	free(rows);
	return any_usual;
}
