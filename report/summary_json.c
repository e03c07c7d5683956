/* Writes a summary as JSON; docs/exports.md describes every member. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/accuracy.h"
#include "report/figures.h"
#include "report/program.h"
#include "report/summary_internal.h"
#include "report/text.h"

static json_t *integer_or_null(int64_t value)
{
	return value == RECORD_NONE ? json_null() : json_integer(value);
}

static json_t *count_or_null(size_t count)
{
	return count > 0 ? json_integer((json_int_t)count) : json_null();
}

/* "" means unknown. */
static json_t *utc(int64_t wall_ns)
{
	char text[32];
	if (wall_ns == RECORD_NONE)
		return json_null();
	clock_format_utc(wall_ns, text, sizeof text);
	return json_string(text);
}

/* Parses JSON stored as text; returns the text itself if it is not JSON. */
static json_t *embedded(const char *text)
{
	json_t *value = text && *text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	return value ? value : text_json_or_null(text);
}

json_t *words_to_json(const char *words)
{
	json_t *array = json_array();
	for (const char *at = words ? words : ""; *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		char *word = memory_printf("%.*s", (int)length, at);
		json_array_append_new(array, text_json(word));
		free(word);
		at += length;
	}
	return array;
}

static json_t *parts_to_json(const struct run_meta *meta)
{
	json_t *array = json_array();
	for (size_t i = 0; i < meta->part_count; i++) {
		const struct run_part *part = &meta->parts[i];
		json_t *object = json_object();
		json_object_set_new(object, "part", json_integer(part->part));
		json_object_set_new(object, "of", json_integer(part->parts));
		json_object_set_new(object, "finished", utc(part->finished_wall_ns));
		json_object_set_new(object, "host", text_json(part->host));
		json_object_set_new(object, "node", text_json_or_null(part->node));
		json_object_set_new(object, "environment_hash", text_json(part->environment_hash));
		json_object_set_new(object, "environment", embedded(part->environment));
		json_array_append_new(array, object);
	}
	return array;
}

json_t *summary_run_to_json(const struct summary *summary)
{
	const struct run_meta *meta = &summary->run->meta;
	json_t *run = json_object();
	json_object_set_new(run, "id", json_integer(meta->id));
	json_object_set_new(run, "uid", text_json(meta->uid));
	json_object_set_new(run, "name", text_json_or_null(meta->name));
	json_object_set_new(run, "tags", words_to_json(meta->tags));
	json_object_set_new(run, "suite", text_json_or_null(meta->suite));
	json_object_set_new(run, "version", text_json(meta->version));
	json_object_set_new(run, "build",
			    text_json_or_null(program_part(summary->environment, "build")));
	json_object_set_new(run, "executable_sha256",
			    text_json_or_null(program_part(summary->environment, "sha256")));
	json_object_set_new(run, "effort", text_json(meta->effort));
	json_object_set_new(run, "statistic", text_json(meta->statistic));
	json_object_set_new(run, "seed", json_integer(meta->seed));
	json_object_set_new(run, "started", utc(meta->started_wall_ns));
	json_object_set_new(run, "finished", utc(meta->finished_wall_ns));
	json_object_set_new(run, "started_wall_ns", integer_or_null(meta->started_wall_ns));
	json_object_set_new(run, "finished_wall_ns", integer_or_null(meta->finished_wall_ns));
	json_object_set_new(run, "command", text_json_or_null(meta->command));
	json_object_set_new(run, "spec", text_json_or_null(meta->spec));
	json_object_set_new(run, "host", text_json_or_null(meta->host));
	json_object_set_new(run, "environment_hash", text_json_or_null(meta->environment_hash));
	json_object_set_new(run, "environment", embedded(meta->environment));
	if (meta->part_count > 0)
		json_object_set_new(run, "parts", parts_to_json(meta));
	json_object_set_new(run, "node", text_json_or_null(meta->node));
	return run;
}

/* Sets the member of a path such as "latency.p50.low_ns"; missing objects are created. */
static void set_member(json_t *object, const char *path, json_t *value)
{
	const char *dot;
	for (; (dot = strchr(path, '.')); path = dot + 1) {
		char *name = memory_printf("%.*s", (int)(dot - path), path);
		json_t *inner = json_object_get(object, name);
		if (!inner)
			json_object_set_new(object, name, inner = json_object());
		free(name);
		object = inner;
	}
	json_object_set_new(object, path, value);
}

static void set_figures(json_t *object, const struct summary_row *row)
{
	static const enum figure_part order[] = {PART_PROCESSES, PART_VALUE, PART_LOW, PART_HIGH,
						 PART_HALF_WIDTH};
	for (int id = 0; id < FIGURE_COUNT; id++) {
		struct figure_value known = figure_value((enum figure_id)id, row);
		for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
			char path[FIGURE_WORD_BYTES];
			double part = figure_part_of(&known, order[i]);
			if (!(figures[id].json >> order[i] & 1))
				continue;
			figure_part_word(figures[id].member, order[i], path);
			set_member(object, path,
				   order[i] == PART_PROCESSES ? json_integer((json_int_t)part)
							      : json_number(part));
		}
	}
}

/* Adds the order beside a ratio to native, which is null if there is none. */
static void set_order(json_t *object, const struct contrast *contrast, enum order order,
		      bool itself)
{
	bool none = isnan(contrast->ratio) || itself;
	json_object_set_new(object, "paired", json_boolean(contrast->paired));
	json_object_set_new(object, "order", none ? json_null() : json_string(order_word(order)));
}

static json_t *flags_to_json(unsigned flags)
{
	json_t *array = json_array();
#define X(id, name, bit)                                                                           \
	if (flags & CELL_FLAG_##id)                                                                \
		json_array_append_new(array, json_string(name));
	CELL_FLAGS(X)
#undef X
	return array;
}

static json_t *parity_to_json(const struct stored_cell *cell)
{
	if (!cell->evidence)
		return json_null();
	json_t *object = json_object();
	json_object_set_new(object, "verdict", json_string(cell_status_name(cell->gate)));
	json_object_set(object, "evidence", cell->evidence);
	return object;
}

static json_t *break_even_to_json(const struct summary_row *row)
{
	if (isnan(row->break_even.steps))
		return json_null();
	return json_pack("{s:s, s:f, s:f, s:f}", "against", row->overtakes->cell.framework, "steps",
			 row->break_even.steps, "low", row->break_even.low, "high",
			 row->break_even.high);
}

json_t *summary_cell_to_json(const struct summary_row *row)
{
	const struct stored_cell *cell = row->cell;
	json_t *object = json_object();
	bool itself = !strcmp(cell->cell.framework, "native");
	json_object_set_new(object, "key", text_json(cell->key));
	json_object_set_new(object, "hash", text_json(cell->hash));
	if (cell->part > 0)
		json_object_set_new(object, "part", json_integer(cell->part));
	cell_axes_to_json(&cell->cell, object);
	json_object_set_new(object, "status", json_string(cell_status_name(cell->status)));
	json_object_set_new(object, "flags", flags_to_json(cell->flags));
	json_object_set_new(object, "reason", text_json_or_null(summary_reason(row)));
	json_object_set_new(object, "rank", count_or_null((size_t)row->rank));
	json_object_set_new(object, "rank_low", count_or_null((size_t)row->rank_low));
	json_object_set_new(object, "rank_high", count_or_null((size_t)row->rank_high));
	json_object_set_new(object, "tied", json_boolean(row->tied));
	json_object_set_new(object, "processes_to_rank", count_or_null(row->processes_to_rank));
	set_figures(object, row);
	json_t *step = json_object_get(object, "step"), *floor = json_object_get(object, "floor");
	json_t *undisturbed = json_object_get(object, "undisturbed");
	json_object_set_new(step, "processes_needed", count_or_null(row->step.needed));
	if (isnan(row->floor_undisturbed.ratio) || itself)
		json_object_set_new(undisturbed, "floor", json_null());
	else
		set_order(json_object_get(undisturbed, "floor"), &row->floor_undisturbed,
			  row->undisturbed_order, itself);
	set_order(floor, &row->floor, row->floor_order, itself);
	json_object_set_new(floor, "broken", json_boolean(summary_breaks_floor(row)));
	json_object_set_new(json_object_get(object, "energy"), "grade",
			    row->costs.joules_per_step.n > 0 ? json_string("B") : json_null());
	json_object_set_new(json_object_get(object, "gpu"), "grade",
			    text_json_or_null(row->costs.gpu_grade));
	accuracy_to_json(row, json_object_get(object, "target"));
	json_object_set_new(object, "diagnoses", summary_diagnoses_to_json(row));
	json_object_set_new(
		object, "precision_proved",
		text_json_or_null(json_string_or(cell->evidence, "precision_proved", "")));
	json_object_set_new(object, "details",
			    cell->framework ? json_incref(cell->framework) : json_null());
	json_object_set_new(object, "parity", parity_to_json(cell));
	json_object_set_new(object, "break_even", break_even_to_json(row));
	return object;
}

json_t *summary_to_json(const struct summary *summary)
{
	json_t *object = json_object(), *cells = json_array();
	for (size_t i = 0; i < summary->count; i++)
		json_array_append_new(cells, summary_cell_to_json(&summary->rows[i]));
	json_object_set_new(object, "run", summary_run_to_json(summary));
	json_object_set_new(object, "cells", cells);
	return object;
}

static json_t *ranks_to_json(const struct process_record *record)
{
	json_t *ranks = json_array();
	for (size_t i = 0; i < record->rank_count; i++) {
		const struct rank_record *rank = &record->rank_records[i];
		json_array_append_new(ranks,
				      json_pack("{s:o, s:o, s:o, s:o, s:o}", "begin_ns",
						integer_or_null(rank->begin_ns), "length_ns",
						integer_or_null(rank->length_ns), "rss_bytes",
						integer_or_null(rank->rss_bytes), "user_ns",
						integer_or_null(rank->user_ns), "system_ns",
						integer_or_null(rank->system_ns)));
	}
	return ranks;
}

json_t *summary_process_to_json(const struct process_record *record)
{
	json_t *object = json_object();
	for (size_t i = 0; i < process_field_count; i++) {
		const struct record_field *field = &process_fields[i];
		const char *member = (const char *)record + field->offset;
		int64_t integer;
		double real;
		json_t *value = NULL;
		switch (field->type) {
		case FIELD_TYPE_INT:
			memcpy(&integer, member, sizeof integer);
			value = integer_or_null(integer);
			break;
		case FIELD_TYPE_REAL:
			memcpy(&real, member, sizeof real);
			value = json_number(real);
			break;
		case FIELD_TYPE_TEXT:
			value = text_json_or_null(member);
			break;
		}
		json_object_set_new(object, field->name, value);
	}
	if (record->rank_count > 0)
		json_object_set_new(object, "rank_records", ranks_to_json(record));
	return object;
}
