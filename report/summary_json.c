/* A summary as JSON; docs/exports.md describes every member. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/costs.h"
#include "report/latency.h"
#include "report/summary.h"
#include "report/summary_internal.h"
#include "report/text.h"

static json_t *integer_or_null(int64_t value)
{
	return value == RECORD_NONE ? json_null() : json_integer(value);
}

/* "" means that nothing is known. */
static json_t *utc(int64_t wall_ns)
{
	char text[32];
	if (wall_ns == RECORD_NONE)
		return json_null();
	clock_format_utc(wall_ns, text, sizeof text);
	return json_string(text);
}

/* JSON that was stored as text, or the text itself when it is none. */
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
	return run;
}

static json_t *estimate_to_json(const struct estimate *step)
{
	json_t *object = json_object();
	json_object_set_new(object, "processes", json_integer((json_int_t)step->n));
	json_object_set_new(object, "center_ns", json_number(step->center));
	json_object_set_new(object, "low_ns", json_number(step->low));
	json_object_set_new(object, "high_ns", json_number(step->high));
	json_object_set_new(object, "half_width", json_number(step->half_width));
	json_object_set_new(object, "mean_ns", json_number(step->mean));
	json_object_set_new(object, "median_ns", json_number(step->median));
	json_object_set_new(object, "sd_ns", json_number(step->sd));
	json_object_set_new(object, "mad_ns", json_number(step->mad));
	json_object_set_new(object, "min_ns", json_number(step->min));
	json_object_set_new(object, "max_ns", json_number(step->max));
	json_object_set_new(object, "cv_between", json_number(step->cv_between));
	json_object_set_new(object, "processes_needed",
			    step->needed ? json_integer((json_int_t)step->needed) : json_null());
	return object;
}

/* To native by undisturbed steps; null where there is none, or where it is itself. */
static json_t *undisturbed_floor_to_json(const struct summary_row *row)
{
	const struct contrast *contrast = &row->floor_undisturbed;
	if (isnan(contrast->ratio) || !strcmp(row->cell->cell.framework, "native"))
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:s}", "ratio", json_number(contrast->ratio),
			 "low", json_number(contrast->low), "high", json_number(contrast->high),
			 "half_width", json_number(contrast_half_width(contrast)), "paired",
			 contrast->paired, "order", order_word(row->undisturbed_order));
}

static json_t *undisturbed_to_json(const struct summary_row *row)
{
	const struct estimate *step = &row->undisturbed;
	json_t *object = json_object();
	json_object_set_new(object, "processes", json_integer((json_int_t)step->n));
	json_object_set_new(object, "center_ns", json_number(step->center));
	json_object_set_new(object, "low_ns", json_number(step->low));
	json_object_set_new(object, "high_ns", json_number(step->high));
	json_object_set_new(object, "half_width", json_number(step->half_width));
	json_object_set_new(object, "gap", json_number(row->gap));
	json_object_set_new(object, "gap_low", json_number(row->gap_low));
	json_object_set_new(object, "gap_high", json_number(row->gap_high));
	json_object_set_new(object, "floor", undisturbed_floor_to_json(row));
	return object;
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

/* To native: null where there is none, or where it is itself. */
static json_t *floor_order(const struct summary_row *row)
{
	bool none = isnan(row->floor_ratio) || !strcmp(row->cell->cell.framework, "native");
	return none ? json_null() : json_string(order_word(row->floor_order));
}

json_t *summary_cell_to_json(const struct summary_row *row)
{
	const struct stored_cell *cell = row->cell;
	json_t *object = json_object(), *floor = json_object();
	json_object_set_new(object, "key", text_json(cell->key));
	json_object_set_new(object, "hash", text_json(cell->hash));
	cell_axes_to_json(&cell->cell, object);
	json_object_set_new(object, "status", json_string(cell_status_name(cell->status)));
	json_object_set_new(object, "flags", flags_to_json(cell->flags));
	json_object_set_new(object, "reason", text_json_or_null(summary_reason(row)));
	json_object_set_new(object, "rank", row->rank > 0 ? json_integer(row->rank) : json_null());
	json_object_set_new(object, "rank_low",
			    row->comparable ? json_integer(row->rank_low) : json_null());
	json_object_set_new(object, "rank_high",
			    row->comparable ? json_integer(row->rank_high) : json_null());
	json_object_set_new(object, "tied", json_boolean(row->tied));
	json_object_set_new(object, "processes_to_rank",
			    row->processes_to_rank > 0
				    ? json_integer((json_int_t)row->processes_to_rank)
				    : json_null());
	json_object_set_new(object, "step", estimate_to_json(&row->step));
	json_object_set_new(object, "undisturbed", undisturbed_to_json(row));
	json_object_set_new(object, "latency", latency_to_json(row));
	json_object_set_new(object, "diagnoses", summary_diagnoses_to_json(row));
	json_object_set_new(object, "split", summary_components_to_json(row));
	json_object_set_new(object, "items_per_second", json_number(row->items_per_second));
	json_object_set_new(floor, "ratio", json_number(row->floor_ratio));
	json_object_set_new(floor, "low", json_number(row->floor_low));
	json_object_set_new(floor, "high", json_number(row->floor_high));
	json_object_set_new(floor, "half_width", json_number(row->floor_half_width));
	json_object_set_new(floor, "paired", json_boolean(row->floor_paired));
	json_object_set_new(floor, "order", floor_order(row));
	json_object_set_new(floor, "broken", json_boolean(summary_breaks_floor(row)));
	json_object_set_new(object, "floor", floor);
	json_object_set_new(object, "to_first_step_ns", json_number(row->to_first_step_ns));
	json_object_set_new(object, "rss_peak_bytes", json_number(row->rss_peak_bytes));
	json_object_set_new(object, "flops_per_second", json_number(row->flops));
	json_object_set_new(
		object, "precision_proved",
		text_json_or_null(json_string_or(cell->evidence, "precision_proved", "")));
	json_object_set_new(object, "peak", costs_peak_to_json(&row->costs));
	json_object_set_new(object, "energy", costs_energy_to_json(&row->costs));
	json_object_set_new(object, "details",
			    cell->framework ? json_incref(cell->framework) : json_null());
	json_object_set_new(object, "parity", parity_to_json(cell));
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
	return object;
}
