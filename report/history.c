/* Computes the step of a cell in the runs of a store, and where it changed. */
#include "report/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/figures.h"
#include "report/labels.h"
#include "report/program.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "report/table.h"
#include "report/text.h"

/* With fewer runs, the permutation test hardly ever reaches its 1 % (tests/unit/test_changes.c). */
enum { RUNS_FOR_A_CHANGE = 10 };

/* n = 0 if the cell has too few processes. */
static struct estimate estimate_of(const struct stored_run *run)
{
	struct arena arena;
	struct estimate step;

	arena_init(&arena, 0);
	struct replicates found = replicates_of(&arena, &run->cells[0]);
	bool suffice = replicates_suffice(&run->meta, &run->cells[0], found.all);
	replicates_estimate(&run->meta, found.means.means, suffice ? found.means.count : 0, &step);
	arena_release(&arena);
	return step;
}

/* Whether the two records are of machines with comparable results. */
static bool same_machine(const json_t *a, const json_t *b)
{
	const json_t *x = json_object_get(a, "must_match"), *y = json_object_get(b, "must_match");

	return (!x && !y) || (x && y && json_equal(x, y));
}

static void add_word(struct strbuf *out, const char *what, const char *before, const char *now)
{
	if (strcmp(before, now) != 0 && *before && *now)
		strbuf_printf(out, "%s%s %s -> %s", out->length ? ", " : "", what, before, now);
}

/* Adds another prony, and another library of native, for a cell of native. */
static void add_programs(struct strbuf *out, const struct stored_run *before, const json_t *was,
			 const struct stored_run *now, const json_t *is)
{
	const struct cell *cell = &now->cells[0].cell;
	char left[PROGRAM_BYTES], right[PROGRAM_BYTES];
	char *name = memory_printf("%s%s%s", cell->name, *cell->environment ? "@" : "",
				   cell->environment);
	const char *a = json_string_or(program_libraries(was), name, "");
	const char *b = json_string_or(program_libraries(is), name, "");

	program_text(&before->meta, was, left);
	program_text(&now->meta, is, right);
	add_word(out, "prony", left, right);
	if (*a && *b && strcmp(a, b) != 0)
		strbuf_printf(out, "%slibrary of %s sha256 %.*s -> %.*s", out->length ? ", " : "",
			      name, PROGRAM_HASH_SHOWN, a, PROGRAM_HASH_SHOWN, b);
	free(name);
}

/* Whether the machines differ in more than the prony that ran there, which is removed from both. */
static bool other_surroundings(const struct stored_run *before, json_t *was,
			       const struct stored_run *now, json_t *is)
{
	bool other = strcmp(before->meta.environment_hash, now->meta.environment_hash) != 0;
	const json_t *of_was = json_object_get(was, "should_match");
	const json_t *of_is = json_object_get(is, "should_match");
	bool same =
		json_equal(json_object_get(of_was, "program"), json_object_get(of_is, "program"));

	program_remove(was);
	program_remove(is);
	return other && (same || !same_machine(was, is) || !json_equal(of_was, of_is));
}

/* Returns possible causes of a change: another version of the framework or of prony, or other
 * conditions. */
static const char *different(struct arena *arena, const struct stored_run *before,
			     const struct stored_run *now)
{
	const struct stored_cell *a = &before->cells[0], *b = &now->cells[0];
	json_t *was = run_environment(before), *is = run_environment(now);
	struct strbuf words;

	strbuf_init(&words, 0);
	add_word(&words, a->cell.name, json_string_or(a->framework, "version", ""),
		 json_string_or(b->framework, "version", ""));
	add_programs(&words, before, was, now, is);
	add_word(&words, "effort", before->meta.effort, now->meta.effort);
	if (other_surroundings(before, was, now, is))
		strbuf_printf(&words, "%sother conditions (prony compare %lld %lld)",
			      words.length ? ", " : "", (long long)before->meta.id,
			      (long long)now->meta.id);
	const char *text = arena_strdup(arena, strbuf_text(&words));
	strbuf_release(&words);
	json_decref(was);
	json_decref(is);
	return text;
}

static void find_changes(struct history *history, const struct change_settings *settings)
{
	double *centers = memory_alloc((history->count + 1) * sizeof *centers);

	for (size_t i = 0; i < history->count; i++)
		centers[i] = history->points[i].step.center;
	history->change_count = changes_find(centers, history->count, settings, &history->changes);
	for (size_t i = 0; i < history->change_count; i++)
		history->points[history->changes[i].at].change = &history->changes[i];
	free(centers);
}

const char *run_place(const struct run_meta *meta)
{
	return *meta->node ? meta->node : meta->host;
}

const struct run_part *cell_part(const struct run_meta *meta, const struct stored_cell *cell)
{
	for (size_t i = 0; i < meta->part_count; i++)
		if (meta->parts[i].part == cell->part)
			return &meta->parts[i];
	return NULL;
}

const char *cell_place(const struct run_meta *meta, const struct stored_cell *cell)
{
	const struct run_part *part = cell_part(meta, cell);

	if (!part)
		return run_place(meta);
	return *part->node ? part->node : part->host;
}

void history_init(struct history *history, const struct stored_run *runs, size_t count,
		  const struct change_settings *settings)
{
	*history = (struct history){.count = 0};
	arena_init(&history->arena, 0);
	history->points = arena_array(&history->arena, count + 1, sizeof *history->points);
	json_t *newest = count ? run_environment(&runs[count - 1]) : NULL;
	for (size_t i = 0; i < count; i++) {
		json_t *environment = run_environment(&runs[i]);
		bool here = same_machine(environment, newest);
		json_decref(environment);
		history->cell = &runs[i].cells[0];
		struct estimate step = estimate_of(&runs[i]);
		if (!here || step.n == 0) {
			history->other_machines += !here;
			history->without += here;
			continue;
		}
		struct history_point *point = &history->points[history->count++];
		*point = (struct history_point){.run = &runs[i], .step = step, .different = ""};
		history->places =
			history->places || strcmp(run_place(&point->run->meta),
						  run_place(&history->points->run->meta)) != 0;
		if (history->count > 1)
			point->different = different(&history->arena, point[-1].run, point->run);
	}
	json_decref(newest);
	find_changes(history, settings);
}

void history_release(struct history *history)
{
	if (!history)
		return;
	free(history->changes);
	arena_release(&history->arena);
}

/* Adds a block character per point, scaled from the smallest to the largest (Unicode 2581 to 2588);
 * the last points that fit. */
static void sparkline(const struct history *history, int width, struct strbuf *out)
{
	enum { LEVELS = 8 };
	size_t from =
		width > 0 && history->count > (size_t)width ? history->count - (size_t)width : 0;
	double low = INFINITY, high = 0;

	for (size_t i = from; i < history->count; i++) {
		low = fmin(low, history->points[i].step.center);
		high = fmax(high, history->points[i].step.center);
	}
	for (size_t i = from; i < history->count; i++) {
		double share =
			high > low ? (history->points[i].step.center - low) / (high - low) : 0;
		int level = (int)(share * (LEVELS - 1) + 0.5);
		strbuf_printf(out, "\xe2\x96%c", (char)(0x81 + level));
	}
	strbuf_putc(out, '\n');
}

/* Writes a change with its interval: "+8.2 % (+5.1 to +11.4 %)". */
static void change_text(const struct change *change, char *out, size_t out_bytes)
{
	const struct contrast *c = &change->change;

	if (isnan(c->low))
		snprintf(out, out_bytes, "%+.1f %%", 100 * (c->ratio - 1));
	else
		snprintf(out, out_bytes, "%+.1f %% (%+.1f to %+.1f)", 100 * (c->ratio - 1),
			 100 * (c->low - 1), 100 * (c->high - 1));
}

/* A series of several nodes or hosts has a column more. */
enum { COLUMN_PLACE = 3 };

static void add_point(const struct history *history, const struct history_point *point,
		      struct table *table)
{
	const struct run_meta *meta = &point->run->meta;
	char texts[6][96];

	snprintf(texts[0], sizeof texts[0], "%lld", (long long)meta->id);
	snprintf(texts[1], sizeof texts[1], "%s", meta->name);
	clock_format_utc(meta->started_wall_ns, texts[2], sizeof texts[2]);
	figure_format(figures[FIGURE_STEP].unit, point->step.center, point->step.half_width,
		      texts[3]);
	format_percent(point->step.half_width, texts[4], sizeof texts[4]);
	texts[5][0] = '\0';
	if (point->change)
		change_text(point->change, texts[5], sizeof texts[5]);
	table_row(table);
	for (int i = 0; i < 6; i++) {
		if (i == COLUMN_PLACE && history->places)
			table_cell(table, run_place(meta), NULL);
		table_cell(table, texts[i], NULL);
	}
	if (*point->different)
		table_note(table, point->different);
}

static void render_table(const struct history *history, bool colour, int width, struct strbuf *out)
{
	const struct figure *step = &figures[FIGURE_STEP];
	struct table_column columns[] = {
		{"run", "run", TABLE_RIGHT},
		{"name", "name", TABLE_LEFT},
		{"started", "started", TABLE_LEFT},
		{"host", "place", TABLE_LEFT},
		{step->title, step->word, TABLE_RIGHT},
		{"+/-", "half_width", TABLE_RIGHT},
		{"change (95 %)", "change", TABLE_LEFT},
	};
	size_t count = sizeof columns / sizeof *columns;

	if (!history->places)
		memmove(&columns[COLUMN_PLACE], &columns[COLUMN_PLACE + 1],
			(--count - COLUMN_PLACE) * sizeof *columns);
	struct table *table = table_new(columns, count);
	for (size_t i = 0; i < history->count; i++)
		add_point(history, &history->points[i], table);
	table_render_text(table, colour, width, out);
	table_free(table);
}

void history_changes(const struct history *history, struct strbuf *out)
{
	for (size_t i = 0; i < history->change_count; i++) {
		const struct history_point *point = &history->points[history->changes[i].at];
		char text[96];
		change_text(point->change, text, sizeof text);
		strbuf_printf(out, "%srun %lld: %s%s%s", i > 0 ? "; " : "",
			      (long long)point->run->meta.id, text, *point->different ? ", " : "",
			      point->different);
	}
}

void history_words(const struct history *history, struct strbuf *out)
{
	strbuf_printf(out, "%zu run%s, %zu change%s", history->count,
		      history->count == 1 ? "" : "s", history->change_count,
		      history->change_count == 1 ? "" : "s");
	if (history->count < RUNS_FOR_A_CHANGE)
		strbuf_printf(out, " (with fewer than %d runs, few changes can be found)",
			      RUNS_FOR_A_CHANGE);
	if (history->other_machines)
		strbuf_printf(out, "; %zu run%s on other machines not shown",
			      history->other_machines, history->other_machines == 1 ? "" : "s");
	if (history->without)
		strbuf_printf(out, "; %zu run%s unfinished or without a figure, not shown",
			      history->without, history->without == 1 ? "" : "s");
}

void history_render(const struct history *history, bool colour, int width, struct strbuf *out)
{
	char title[CELL_KEY_BYTES];
	struct labels none = {.varies = {false}};

	if (!history->cell)
		return;
	label_common(&none, &history->cell->cell, title, sizeof title);
	const char *place = history->count ? run_place(&history->points->run->meta) : "";
	bool on = *place && !history->places;
	char *heading = memory_printf("%s: %s%s%s", history->cell->cell.framework, title,
				      on ? ", on " : "", on ? place : "");
	text_wrap(heading, 0, width, colour ? TEXT_BOLD : "", colour ? TEXT_PLAIN : "", out);
	free(heading);
	if (history->count > 0) {
		sparkline(history, width, out);
		render_table(history, colour, width, out);
	}
	struct strbuf line;
	strbuf_init(&line, 0);
	history_words(history, &line);
	text_wrap(strbuf_text(&line), 0, width, "", "", out);
	strbuf_release(&line);
}

static json_t *point_to_json(const struct history_point *point)
{
	const struct run_meta *meta = &point->run->meta;
	json_t *object = json_object();
	char when[32];

	clock_format_utc(meta->started_wall_ns, when, sizeof when);
	json_object_set_new(object, "run", json_integer(meta->id));
	json_object_set_new(object, "uid", text_json(meta->uid));
	json_object_set_new(object, "name", *meta->name ? text_json(meta->name) : json_null());
	json_object_set_new(object, "started", json_string(when));
	json_object_set_new(object, "started_wall_ns", json_integer(meta->started_wall_ns));
	json_object_set_new(object, "processes", json_integer((json_int_t)point->step.n));
	json_object_set_new(object, "center_ns", json_number(point->step.center));
	json_object_set_new(object, "low_ns", json_number(point->step.low));
	json_object_set_new(object, "high_ns", json_number(point->step.high));
	json_object_set_new(object, "environment_hash", text_json(meta->environment_hash));
	json_object_set_new(object, "different",
			    *point->different ? text_json(point->different) : json_null());
	json_object_set_new(object, "change", json_boolean(point->change != NULL));
	json_object_set_new(object, "host", text_json_or_null(meta->host));
	json_object_set_new(object, "node", text_json_or_null(meta->node));
	return object;
}

static json_t *change_to_json(const struct history *history, const struct change *change)
{
	json_t *object = json_object();

	json_object_set_new(object, "run", json_integer(history->points[change->at].run->meta.id));
	json_object_set_new(object, "point", json_integer((json_int_t)change->at));
	json_object_set_new(object, "p", json_number(change->p));
	json_object_set_new(object, "ratio", json_number(change->change.ratio));
	json_object_set_new(object, "low", json_number(change->change.low));
	json_object_set_new(object, "high", json_number(change->change.high));
	return object;
}

json_t *history_to_json(const struct history *history)
{
	json_t *object = json_object(), *points = json_array(), *changes = json_array();

	for (size_t i = 0; i < history->count; i++)
		json_array_append_new(points, point_to_json(&history->points[i]));
	for (size_t i = 0; i < history->change_count; i++)
		json_array_append_new(changes, change_to_json(history, &history->changes[i]));
	if (history->cell) {
		json_object_set_new(object, "key", text_json(history->cell->key));
		json_object_set_new(object, "hash", text_json(history->cell->hash));
		cell_axes_to_json(&history->cell->cell, object);
	}
	json_object_set_new(object, "points", points);
	json_object_set_new(object, "changes", changes);
	json_object_set_new(object, "other_machines",
			    json_integer((json_int_t)history->other_machines));
	json_object_set_new(object, "without_figures", json_integer((json_int_t)history->without));
	return object;
}
