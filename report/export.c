/* Exports results as CSV and JSON. */
#include "report/export.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/figures.h"
#include "report/history.h"
#include "report/names.h"
#include "report/series.h"
#include "report/text.h"

#define NS_PER_MS 1e6

enum prony_status export_finish(const struct strbuf *out, struct error *err)
{
	if (!out->truncated)
		return PRONY_OK;
	return error_set(err, PRONY_IO,
			 "the export is larger than %zu MiB; export fewer runs at once",
			 out->limit_bytes >> 20);
}

static void add_text(const char *text, struct strbuf *out)
{
	char *clean = text_line(text);
	text_csv(clean, out);
	free(clean);
}

/* Adds the value of an axis as a CSV cell; empty if the axis does not apply. */
static void add_axis(enum axis_id id, const struct cell *cell, struct strbuf *out)
{
	char text[CELL_WORD_BYTES] = "";
	if (axis_applies(&axes[id], cell))
		axis_text(&axes[id], axis_value(&axes[id], cell), text);
	add_text(text, out);
}

/* A column about how a cell ended. */
struct cell_column {
	const char *name;
	void (*write)(const struct summary_row *row, struct strbuf *out);
};

static void write_version(const struct summary_row *row, struct strbuf *out)
{
	add_text(summary_version(row), out);
}

static void write_status(const struct summary_row *row, struct strbuf *out)
{
	add_text(cell_status_name(row->cell->status), out);
}

static void write_flags(const struct summary_row *row, struct strbuf *out)
{
	char text[CELL_FLAGS_BYTES];
	cell_flags_text(row->cell->flags, text, sizeof text);
	add_text(text, out);
}

static void write_reason(const struct summary_row *row, struct strbuf *out)
{
	add_text(summary_reason(row), out);
}

static const struct cell_column outcome[] = {
	{"version", write_version},
	{"status", write_status},
	{"flags", write_flags},
	{"reason", write_reason},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void add_axis_names(struct strbuf *out)
{
	for (int id = 0; id < AXIS_COUNT; id++)
		if (id != AXIS_FRAMEWORK)
			strbuf_printf(out, ",%s", axes[id].name);
}

static void add_axes(const struct cell *cell, struct strbuf *out)
{
	for (int id = 0; id < AXIS_COUNT; id++) {
		if (id == AXIS_FRAMEWORK)
			continue;
		strbuf_putc(out, ',');
		add_axis((enum axis_id)id, cell, out);
	}
}

static bool is_cell_column(const char *name)
{
	for (int id = 0; id < AXIS_COUNT; id++)
		if (!strcmp(axes[id].name, name))
			return true;
	for (size_t i = 0; i < COUNT(outcome); i++)
		if (!strcmp(outcome[i].name, name))
			return true;
	return false;
}

static void add_field(const struct process_record *record, const struct record_field *field,
		      struct strbuf *out)
{
	const char *member = (const char *)record + field->offset;
	int64_t integer;
	double real;
	switch (field->type) {
	case FIELD_TYPE_INT:
		memcpy(&integer, member, sizeof integer);
		if (integer != RECORD_NONE)
			strbuf_printf(out, "%" PRId64, integer);
		break;
	case FIELD_TYPE_REAL:
		memcpy(&real, member, sizeof real);
		format_real(real, out);
		break;
	case FIELD_TYPE_TEXT:
		add_text(member, out);
		break;
	}
}

static void add_cell_names(struct strbuf *out)
{
	strbuf_puts(out, "run,host,framework");
	add_axis_names(out);
	for (size_t i = 0; i < COUNT(outcome); i++)
		strbuf_printf(out, ",%s", outcome[i].name);
}

/* Adds the columns that begin each CSV row: the run, its host, the cell, how it ended. */
static void add_cell(const struct summary *summary, const struct summary_row *row,
		     struct strbuf *out)
{
	add_text(summary->run->meta.uid, out);
	strbuf_putc(out, ',');
	add_text(summary->run->meta.host, out);
	strbuf_putc(out, ',');
	add_axis(AXIS_FRAMEWORK, &row->cell->cell, out);
	add_axes(&row->cell->cell, out);
	for (size_t i = 0; i < COUNT(outcome); i++) {
		strbuf_putc(out, ',');
		outcome[i].write(row, out);
	}
}

/* Adds the last column of a row, the cell's node. */
static void add_node(const struct summary *summary, const struct summary_row *row,
		     struct strbuf *out)
{
	const struct run_part *part = cell_part(&summary->run->meta, row->cell);
	strbuf_putc(out, ',');
	add_text(part ? part->node : summary->run->meta.node, out);
	strbuf_putc(out, '\n');
}

/* Adds the rows of a cell; a cell that never ran has a row too. */
static void long_rows(const struct summary *summary, const struct summary_row *row,
		      struct strbuf *out)
{
	struct strbuf head;
	strbuf_init(&head, 0);
	add_cell(summary, row, &head);
	for (size_t p = 0; p < row->cell->process_count || p == 0; p++) {
		strbuf_add(out, strbuf_text(&head), head.length);
		for (size_t i = 0; i < process_field_count; i++) {
			strbuf_putc(out, ',');
			if (row->cell->process_count > 0)
				add_field(&row->cell->processes[p], &process_fields[i], out);
		}
		add_node(summary, row, out);
	}
	strbuf_release(&head);
}

enum prony_status export_csv_long(const struct summary *summary, struct strbuf *out,
				  struct error *err)
{
	add_cell_names(out);
	/* A process has its own status, flags and effective precision. */
	for (size_t i = 0; i < process_field_count; i++)
		strbuf_printf(out, ",%s%s",
			      is_cell_column(process_fields[i].name) ? "process_" : "",
			      process_fields[i].name);
	strbuf_puts(out, ",node\n");
	for (size_t i = 0; i < summary->count; i++)
		long_rows(summary, &summary->rows[i], out);
	return export_finish(out, err);
}

/* Adds the parts of figures in a row of layout cells; if row is NULL, their names. */
static void add_figures(const struct summary_row *row, struct strbuf *out)
{
	for (int id = 0; id < FIGURE_COUNT; id++) {
		struct figure_value known = {.value = NAN};
		if (row)
			known = figure_value((enum figure_id)id, row);
		for (int part = 0; part < PART_COUNT; part++) {
			char word[FIGURE_WORD_BYTES];
			if (!(figures[id].csv >> part & 1))
				continue;
			strbuf_putc(out, ',');
			figure_part_word(figures[id].word, (enum figure_part)part, word);
			if (row)
				format_real(figure_part_of(&known, (enum figure_part)part), out);
			else
				strbuf_puts(out, word);
		}
	}
}

enum prony_status export_csv_cells(const struct summary *summary, struct strbuf *out,
				   struct error *err)
{
	add_cell_names(out);
	strbuf_puts(out, ",rank,rank_low,rank_high,processes");
	add_figures(NULL, out);
	strbuf_puts(out, ",node\n");
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		add_cell(summary, row, out);
		strbuf_putc(out, ',');
		if (row->rank > 0)
			strbuf_printf(out, "%d", row->rank);
		if (row->comparable)
			strbuf_printf(out, ",%d,%d", row->rank_low, row->rank_high);
		else
			strbuf_puts(out, ",,");
		strbuf_printf(out, ",%zu", row->step.n);
		add_figures(row, out);
		add_node(summary, row, out);
	}
	return export_finish(out, err);
}

/* Finds the frameworks of the run, in order of first appearance. */
static void find_frameworks(const struct summary *summary, struct names *names)
{
	for (size_t i = 0; i < summary->run->cell_count; i++) {
		const char *name = summary->run->cells[i].cell.framework;
		names_add(names, name, strlen(name));
	}
}

/* Adds the figures of a comparison, each in the column of its framework. */
static void add_wide_row(const struct summary *summary, size_t comparison,
			 const struct names *frameworks, struct strbuf *out)
{
	const struct summary_row *rows = &summary->rows[summary->first[comparison]];
	size_t count = summary->first[comparison + 1] - summary->first[comparison];
	double *steps_ms = memory_alloc((frameworks->count + 1) * sizeof *steps_ms);
	for (size_t k = 0; k < frameworks->count; k++)
		steps_ms[k] = NAN;
	for (size_t i = 0; i < count; i++) {
		const char *name = rows[i].cell->cell.framework;
		if (rows[i].comparable || summary_only_loads(&rows[i]))
			steps_ms[names_find(frameworks, name, strlen(name))] =
				rows[i].step.center / NS_PER_MS;
	}
	add_text(summary->run->meta.uid, out);
	add_axes(&rows[0].cell->cell, out);
	for (size_t k = 0; k < frameworks->count; k++) {
		strbuf_putc(out, ',');
		format_real(steps_ms[k], out);
	}
	strbuf_putc(out, '\n');
	free(steps_ms);
}

enum prony_status export_csv_wide(const struct summary *summary, struct strbuf *out,
				  struct error *err)
{
	struct names frameworks = {.count = 0};
	find_frameworks(summary, &frameworks);
	strbuf_puts(out, "run");
	add_axis_names(out);
	for (size_t k = 0; k < frameworks.count; k++) {
		strbuf_putc(out, ',');
		add_text(frameworks.rows[k].bytes, out);
	}
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < summary->comparison_count && !out->truncated; i++)
		add_wide_row(summary, i, &frameworks, out);
	names_release(&frameworks);
	return export_finish(out, err);
}

/* Returns this layout's word for a stage; NULL if it has none. */
static const char *bench_stage(enum stage stage)
{
	return stage == STAGE_FORWARD ? "eval" : stage == STAGE_TRAIN ? "train" : NULL;
}

enum prony_status export_csv_ms(const struct summary *summary, struct strbuf *out,
				struct error *err)
{
	char when[32];
	clock_format_utc(summary->run->meta.started_wall_ns, when, sizeof when);
	strbuf_puts(out, "Timestamp,Framework,Algorithm,BenchStage,Precision,Result\n");
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		const char *stage = bench_stage(row->cell->cell.stage);
		if (!stage || !row->comparable)
			continue;
		strbuf_printf(out, "%s,", when);
		add_axis(AXIS_FRAMEWORK, &row->cell->cell, out);
		strbuf_putc(out, ',');
		add_axis(AXIS_NETWORK, &row->cell->cell, out);
		strbuf_printf(out, ",%s,", stage);
		add_axis(AXIS_PRECISION, &row->cell->cell, out);
		strbuf_printf(out, ",%.6g\n", row->step.center / NS_PER_MS);
	}
	return export_finish(out, err);
}

static void add_json(json_t *json, size_t flags, struct strbuf *out)
{
	char *text = text_of_json(json, flags);
	strbuf_puts(out, text);
	strbuf_putc(out, '\n');
	free(text);
	json_decref(json);
}

enum prony_status export_json(const struct summary *summary, struct strbuf *out, struct error *err)
{
	json_t *document = summary_to_json(summary), *cells = json_object_get(document, "cells");
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		json_t *processes = json_array();
		for (size_t p = 0; p < cell->process_count; p++) {
			const struct process_record *record = &cell->processes[p];
			json_t *process = summary_process_to_json(record);
			json_object_set_new(process, "sensors", series_to_json(record, false));
			json_array_append_new(processes, process);
		}
		json_object_set_new(json_array_get(cells, i), "processes", processes);
	}
	/* Rounded as in other commands; the complete export has every bit. */
	add_json(document, JSON_INDENT(2) | JSON_REAL_PRECISION(15), out);
	return export_finish(out, err);
}

/* Returns {"type": ..., followed by the members of `body`}. The type is first, so that a reader of
 * lines sees it at once. */
static json_t *typed_line(const char *type, const char *run, json_t *body)
{
	json_t *line = json_object();
	json_object_set_new(line, "type", json_string(type));
	if (run)
		json_object_set_new(line, "run", text_json(run));
	json_object_update(line, body);
	json_decref(body);
	return line;
}

static json_t *process_line(const struct summary *summary, const struct stored_cell *cell,
			    const struct process_record *record)
{
	json_t *line =
		typed_line("process", summary->run->meta.uid, summary_process_to_json(record));
	json_t *intervals = record->intervals ? json_array() : json_null();
	for (size_t i = 0; i < record->interval_count && record->intervals; i++)
		json_array_append_new(intervals,
				      json_pack("[I, I]", (json_int_t)record->intervals[i].begin_ns,
						(json_int_t)record->intervals[i].end_ns));
	json_object_set_new(line, "cell", text_json(cell->hash));
	json_object_set_new(line, "intervals", intervals);
	json_object_set_new(line, "log", text_json(record->log));
	json_object_set_new(line, "sensors", series_to_json(record, true));
	return line;
}

enum prony_status export_jsonl(const struct summary *summary, struct strbuf *out, struct error *err)
{
	add_json(typed_line("run", NULL, summary_run_to_json(summary)), JSON_COMPACT, out);
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		json_t *line = typed_line("cell", summary->run->meta.uid,
					  summary_cell_to_json(&summary->rows[i]));
		json_object_set_new(line, "gate_log", text_json(cell->gate_log));
		add_json(line, JSON_COMPACT, out);
		for (size_t p = 0; p < cell->process_count; p++)
			add_json(process_line(summary, cell, &cell->processes[p]), JSON_COMPACT,
				 out);
	}
	return export_finish(out, err);
}
