/* Writes the comparison of nodes: for a terminal, as CSV and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/compare.h"
#include "report/format.h"
#include "report/history.h"
#include "report/labels.h"
#include "report/nodes.h"
#include "report/summary.h"
#include "report/table.h"
#include "report/text.h"

/* So few nodes are all shown. */
enum { SHOWN_MAX = 8, TEXT_BYTES = 96 };

static const char *const round_words[NODE_ROUNDS] = {"before", "last"};

bool nodes_judged(const struct node_figure *figure)
{
	return !isnan(figure->contrast.low);
}

static const char *verdict_or(const struct node_figure *figure, const char *otherwise)
{
	return nodes_judged(figure) ? verdict_word(figure->verdict) : otherwise;
}

const char *nodes_failure(const struct node_figure *figure)
{
	if (!figure->cell)
		return "not run";
	return figure->step.n == 0 ? cell_status_name(figure->cell->status) : "";
}

bool nodes_stand_apart(const struct node_row *row)
{
	const struct node_figure *last = &row->rounds[ROUND_LAST];

	return row->broken || row->lasts != LASTS_NOT ||
	       (nodes_judged(last) && last->verdict == VERDICT_FASTER);
}

struct place_row {
	const char *place;
	const struct node_row *row;
};

/* The slowest first, those without a figure last. */
static int by_ratio(const void *a, const void *b)
{
	double x = ((const struct place_row *)a)->row->rounds[ROUND_LAST].contrast.ratio;
	double y = ((const struct place_row *)b)->row->rounds[ROUND_LAST].contrast.ratio;

	if (isnan(x) || isnan(y))
		return (isnan(x) ? 1 : 0) - (isnan(y) ? 1 : 0);
	return (x < y) - (x > y);
}

static double percent(double ratio)
{
	return 100 * (ratio - 1);
}

static void add_row(const struct nodes *nodes, const struct place_row *at, struct table *table)
{
	const struct node_figure *last = &at->row->rounds[ROUND_LAST];
	const struct node_figure *before = &at->row->rounds[ROUND_BEFORE];
	const struct contrast *c = &last->contrast;
	char step[TEXT_BYTES] = "", ratio[TEXT_BYTES] = "", range[TEXT_BYTES] = "", count[24] = "";

	if (last->step.n > 0) {
		format_duration_within(last->step.center, last->step.half_width, step, sizeof step);
		snprintf(count, sizeof count, "%zu", last->step.n);
	}
	if (!isnan(c->ratio))
		snprintf(ratio, sizeof ratio, "%+.1f %%", percent(c->ratio));
	if (nodes_judged(last))
		snprintf(range, sizeof range, "%+.1f to %+.1f", percent(c->low), percent(c->high));
	table_row(table);
	table_cell(table, at->place, NULL);
	table_cell(table, step, NULL);
	table_cell(table, ratio, NULL);
	table_cell(table, range, NULL);
	table_cell(table, count, NULL);
	table_cell(table, verdict_or(last, nodes_failure(last)), NULL);
	if (nodes->rounds > 1)
		table_cell(table, verdict_or(before, nodes_failure(before)), NULL);
	table_cell(table, node_lasts_word(at->row->lasts), NULL);
	if (*at->row->reasons)
		table_note(table, at->row->reasons);
	if (at->row->broken && last->cell->reason && *last->cell->reason)
		table_note(table, last->cell->reason);
}

/* Adds how many of the rows that are not shown are SAME, and how many INCONCLUSIVE. */
static void add_rest(const struct place_row *rows, size_t count, struct strbuf *out)
{
	size_t of[VERDICT_COUNT] = {0};
	double low = INFINITY, high = 0;

	for (size_t i = 0; i < count; i++) {
		const struct node_figure *last = &rows[i].row->rounds[ROUND_LAST];
		if (nodes_stand_apart(rows[i].row) || !nodes_judged(last))
			continue;
		of[last->verdict]++;
		low = fmin(low, last->contrast.ratio);
		high = fmax(high, last->contrast.ratio);
	}
	if (of[VERDICT_SAME] + of[VERDICT_INCONCLUSIVE] == 0)
		return;
	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
		if (of[verdict])
			strbuf_printf(out, "%zu node%s %s, ", of[verdict],
				      of[verdict] == 1 ? "" : "s",
				      verdict_word((enum verdict)verdict));
	strbuf_printf(out, "%+.1f to %+.1f %% from the median of the others\n", percent(low),
		      percent(high));
}

/* For a terminal, or Markdown. */
struct look {
	bool full, markdown, colour;
	int width;
};

static void add_title(const struct node_cell *cell, const struct look *look, struct strbuf *out)
{
	struct labels none = {.varies = {false}};
	char title[CELL_KEY_BYTES];

	label_common(&none, &cell->cell->cell, title, sizeof title);
	char *heading = memory_printf("%s: %s", cell->cell->cell.framework, title);
	strbuf_putc(out, '\n');
	if (look->markdown) {
		strbuf_puts(out, "## ");
		text_markdown(heading, out);
		strbuf_puts(out, "\n\n");
	} else {
		text_wrap(heading, 0, look->width, look->colour ? TEXT_BOLD : "",
			  look->colour ? TEXT_PLAIN : "", out);
	}
	free(heading);
}

static void render_cell(const struct nodes *nodes, const struct node_cell *cell,
			const struct look *look, struct strbuf *out)
{
	struct table_column columns[] = {
		{"node", "node", TABLE_LEFT},
		{"step", "step", TABLE_RIGHT},
		{"vs median", "ratio", TABLE_RIGHT},
		{"95 % interval", "interval", TABLE_RIGHT},
		{"n", "n", TABLE_RIGHT},
		{"verdict", "verdict", TABLE_LEFT},
		{"before", "before", TABLE_LEFT},
		{"lasts", "lasts", TABLE_LEFT},
	};
	enum { BEFORE = 6 };
	size_t count = sizeof columns / sizeof *columns, shown = 0;
	struct place_row *rows = memory_alloc((nodes->compared + 1) * sizeof *rows);

	if (nodes->rounds == 1)
		columns[BEFORE] = columns[--count];
	struct table *table = table_new(columns, count);
	for (size_t n = 0; n < nodes->compared; n++)
		rows[n] = (struct place_row){nodes->nodes[n].place, &cell->rows[n]};
	qsort(rows, nodes->compared, sizeof *rows, by_ratio);
	bool all = look->full || nodes->compared <= SHOWN_MAX;
	for (size_t n = 0; n < nodes->compared; n++)
		if (all || nodes_stand_apart(rows[n].row)) {
			add_row(nodes, &rows[n], table);
			shown++;
		}
	add_title(cell, look, out);
	if (shown > 0 && look->markdown)
		table_render_markdown(table, out);
	else if (shown > 0)
		table_render_text(table, look->colour, look->width, out);
	if (look->markdown && shown > 0)
		strbuf_putc(out, '\n');
	if (!all)
		add_rest(rows, nodes->compared, out);
	table_free(table);
	free(rows);
}

static void add_line(struct strbuf *line, int width, struct strbuf *out)
{
	text_wrap(strbuf_text(line), 0, width, "", "", out);
	strbuf_clear(line);
}

/* Adds how many comparisons of the newest round could not exclude a slow node. */
static void add_inconclusive(const struct nodes *nodes, struct strbuf *line)
{
	size_t all = 0, open = 0;

	for (size_t i = 0; i < nodes->cell_count; i++)
		for (size_t n = 0; n < nodes->compared; n++) {
			const struct node_figure *newest =
				&nodes->cells[i].rows[n].rounds[ROUND_LAST];
			all += nodes_judged(newest);
			open += nodes_judged(newest) && newest->verdict == VERDICT_INCONCLUSIVE;
		}
	if (open > 0)
		strbuf_printf(line,
			      "; %zu of %zu comparisons are INCONCLUSIVE: measure longer "
			      "(--rigorous) on quiet nodes",
			      open, all);
}

void nodes_conclusions(const struct nodes *nodes, int width, struct strbuf *out)
{
	static const char *const said[] = {
		[LASTS_UNKNOWN] = "may be slow: SLOWER in its only round; run it again",
		[LASTS_ONCE] = "was slow for a while: SLOWER in one round of two",
		[LASTS_PERSISTENT] = "is slow: SLOWER in both rounds",
	};
	struct strbuf line;

	strbuf_init(&line, 0);
	for (int lasts = LASTS_PERSISTENT; lasts > LASTS_NOT; lasts--)
		for (size_t n = 0; n < nodes->compared; n++) {
			size_t cells = 0;
			if (nodes->nodes[n].lasts != (enum node_lasts)lasts)
				continue;
			for (size_t i = 0; i < nodes->cell_count; i++)
				cells += nodes->cells[i].rows[n].lasts == (enum node_lasts)lasts;
			strbuf_printf(&line, "%s %s (%zu of %zu cells)", nodes->nodes[n].place,
				      said[lasts], cells, nodes->cell_count);
			add_line(&line, width, out);
		}
	for (size_t n = 0; n < nodes->compared; n++) {
		size_t broken = 0;
		for (size_t i = 0; i < nodes->cell_count; i++)
			broken += nodes->cells[i].rows[n].broken;
		if (broken == 0)
			continue;
		strbuf_printf(&line, "%s: %zu of %zu cells %s not ok, but on other nodes",
			      nodes->nodes[n].place, broken, nodes->cell_count,
			      broken == 1 ? "is" : "are");
		add_line(&line, width, out);
	}
	if (nodes->slow + nodes->undecided == 0) {
		strbuf_puts(&line, nodes->rounds > 1 ? "no node is slow in both rounds"
						     : "no node was found slow");
		add_inconclusive(nodes, &line);
		add_line(&line, width, out);
	}
	for (size_t n = nodes->compared; n < nodes->count; n++) {
		strbuf_printf(&line, "not compared, another machine: %s, ", nodes->nodes[n].place);
		if (!compare_machines(nodes->nodes[0].environment, nodes->nodes[n].environment,
				      &line))
			strbuf_puts(&line, "unknown");
		add_line(&line, width, out);
	}
	strbuf_release(&line);
}

void nodes_heading(const struct nodes *nodes, int width, struct strbuf *out)
{
	int64_t from = INT64_MAX, to = INT64_MIN;
	size_t runs = 0;
	char first[32], last[32], threshold[FORMAT_BYTES];
	struct strbuf line;

	for (size_t n = 0; n < nodes->compared; n++)
		for (int round = 0; round < NODE_ROUNDS; round++) {
			const struct stored_run *run = nodes->nodes[n].runs[round];
			int64_t started = run ? run->meta.started_wall_ns : from;
			from = started < from ? started : from;
			to = run && started > to ? started : to;
			runs += run ? 1 : 0;
		}
	clock_format_utc(from, first, sizeof first);
	clock_format_utc(to, last, sizeof last);
	format_percent(nodes->threshold, threshold, sizeof threshold);
	strbuf_init(&line, 0);
	const char *suite = nodes->nodes[0].runs[ROUND_LAST]->meta.suite;
	strbuf_printf(&line,
		      "%zu nodes, %zu runs%s%s, %s to %s; each node against the median of the "
		      "others, differences up to %s are the same",
		      nodes->compared, runs, *suite ? " of " : "", suite, first, last, threshold);
	add_line(&line, width, out);
	strbuf_release(&line);
}

void nodes_render(const struct nodes *nodes, bool full, bool colour, int width, struct strbuf *out)
{
	const struct look look = {.full = full, .colour = colour, .width = width};

	nodes_heading(nodes, width, out);
	for (size_t i = 0; i < nodes->cell_count; i++)
		render_cell(nodes, &nodes->cells[i], &look, out);
	strbuf_putc(out, '\n');
	nodes_conclusions(nodes, width, out);
}

void nodes_markdown(const struct nodes *nodes, bool full, struct strbuf *out)
{
	const struct look look = {.full = full, .markdown = true};
	struct strbuf lines;

	strbuf_init(&lines, 0);
	strbuf_puts(out, "# Nodes\n\n");
	nodes_conclusions(nodes, 0, &lines);
	nodes_heading(nodes, 0, &lines);
	char *text = strbuf_take(&lines);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (*line) {
			text_markdown(line, out);
			strbuf_puts(out, "\n\n");
		}
	free(text);
	for (size_t i = 0; i < nodes->cell_count; i++)
		render_cell(nodes, &nodes->cells[i], &look, out);
}

static void add_csv_row(const struct node *node, const struct node_cell *cell,
			const struct node_row *row, int round, struct strbuf *out)
{
	const struct node_figure *figure = &row->rounds[round];
	const struct contrast *c = &figure->contrast;
	const bool known = nodes_judged(figure);
	const double reals[] = {figure->step.n ? figure->step.center : NAN,
				figure->step.n ? figure->step.low : NAN,
				figure->step.n ? figure->step.high : NAN,
				c->ratio,
				c->low,
				c->high,
				known ? figure->p_adjusted : NAN};
	const char *texts[] = {verdict_or(figure, ""), node_lasts_word(row->lasts), row->reasons};

	text_csv(node->place, out);
	strbuf_putc(out, ',');
	text_csv(figure->cell->key, out);
	strbuf_printf(out, ",%s,%s,%s,%s,%zu", cell->cell->hash, round_words[round],
		      node->runs[round]->meta.uid, cell_status_name(figure->cell->status),
		      figure->step.n);
	for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
		strbuf_putc(out, ',');
		format_real(reals[i], out);
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		strbuf_putc(out, ',');
		text_csv(texts[i], out);
	}
	strbuf_putc(out, '\n');
}

void nodes_csv(const struct nodes *nodes, struct strbuf *out)
{
	strbuf_puts(out, "node,cell,hash,round,run,status,processes,step_center_ns,step_low_ns,"
			 "step_high_ns,ratio,low,high,p_adjusted,verdict,lasts,reasons\n");
	for (size_t i = 0; i < nodes->cell_count; i++)
		for (size_t n = 0; n < nodes->compared; n++)
			for (int round = 0; round < NODE_ROUNDS; round++)
				if (nodes->cells[i].rows[n].rounds[round].cell)
					add_csv_row(&nodes->nodes[n], &nodes->cells[i],
						    &nodes->cells[i].rows[n], round, out);
}

static json_t *figure_to_json(const struct stored_run *run, const struct node_figure *figure)
{
	const struct contrast *c = &figure->contrast;
	const bool any = figure->step.n > 0, known = nodes_judged(figure);
	json_t *object = json_object();

	if (!figure->cell)
		return json_decref(object), json_null();
	json_object_set_new(object, "run", json_integer(run->meta.id));
	json_object_set_new(object, "uid", text_json(run->meta.uid));
	json_object_set_new(object, "status", json_string(cell_status_name(figure->cell->status)));
	json_object_set_new(object, "reason", text_json_or_null(figure->cell->reason));
	json_object_set_new(object, "processes", json_integer((json_int_t)figure->step.n));
	json_object_set_new(object, "center_ns", json_number(any ? figure->step.center : NAN));
	json_object_set_new(object, "low_ns", json_number(any ? figure->step.low : NAN));
	json_object_set_new(object, "high_ns", json_number(any ? figure->step.high : NAN));
	json_object_set_new(object, "ratio", json_number(c->ratio));
	json_object_set_new(object, "low", json_number(c->low));
	json_object_set_new(object, "high", json_number(c->high));
	json_object_set_new(object, "p_adjusted", json_number(known ? figure->p_adjusted : NAN));
	json_object_set_new(object, "verdict",
			    known ? json_string(verdict_word(figure->verdict)) : json_null());
	return object;
}

static json_t *cell_to_json(const struct nodes *nodes, const struct node_cell *cell)
{
	json_t *object = json_object(), *rows = json_array();

	json_object_set_new(object, "key", text_json(cell->cell->key));
	json_object_set_new(object, "hash", text_json(cell->cell->hash));
	cell_axes_to_json(&cell->cell->cell, object);
	for (size_t n = 0; n < nodes->compared; n++) {
		const struct node_row *at = &cell->rows[n];
		json_t *row = json_object();
		json_object_set_new(row, "node", text_json(nodes->nodes[n].place));
		for (int round = 0; round < NODE_ROUNDS; round++)
			json_object_set_new(
				row, round_words[round],
				figure_to_json(nodes->nodes[n].runs[round], &at->rounds[round]));
		json_object_set_new(row, "lasts", text_json_or_null(node_lasts_word(at->lasts)));
		json_object_set_new(row, "reasons", text_json_or_null(at->reasons));
		json_array_append_new(rows, row);
	}
	json_object_set_new(object, "nodes", rows);
	return object;
}

static json_t *node_to_json(const struct nodes *nodes, const struct node *node)
{
	json_t *object = json_object();
	struct strbuf differs;

	strbuf_init(&differs, 0);
	json_object_set_new(object, "node", text_json(node->place));
	json_object_set_new(object, "host", text_json_or_null(node->runs[ROUND_LAST]->meta.host));
	json_object_set_new(object, "compared", json_boolean(node->compared));
	json_object_set_new(object, "lasts", text_json_or_null(node_lasts_word(node->lasts)));
	if (!node->compared)
		compare_machines(nodes->nodes[0].environment, node->environment, &differs);
	json_object_set_new(object, "other_machine", text_json_or_null(strbuf_text(&differs)));
	strbuf_release(&differs);
	return object;
}

json_t *nodes_to_json(const struct nodes *nodes)
{
	json_t *object = json_object(), *list = json_array(), *cells = json_array();

	for (size_t n = 0; n < nodes->count; n++)
		json_array_append_new(list, node_to_json(nodes, &nodes->nodes[n]));
	for (size_t i = 0; i < nodes->cell_count; i++)
		json_array_append_new(cells, cell_to_json(nodes, &nodes->cells[i]));
	json_object_set_new(object, "threshold", json_number(nodes->threshold));
	json_object_set_new(object, "slow", json_integer((json_int_t)nodes->slow));
	json_object_set_new(object, "undecided", json_integer((json_int_t)nodes->undecided));
	json_object_set_new(object, "broken", json_integer((json_int_t)nodes->broken));
	json_object_set_new(object, "nodes", list);
	json_object_set_new(object, "cells", cells);
	return object;
}
