/* `prony log`: the output of a cell's processes, and their sensor readings. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cli/cell_filter.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "report/series.h"
#include "report/text.h"

#define LOG_BYTES_MAX ((size_t)1 << 30)

struct log_options {
	const char *store, *run, *format;
	long long process;
} log_options = {.format = "table", .process = -1, .run = ""};

const struct option log_option_rows[] = {
	{TEXT_OPTION(struct log_options, run, "run", "RUN", "the run (default: the newest)")},
	{INT_OPTION(struct log_options, process, "process", 0, 1000000, "N",
		    "print only the log of this process, counted from 0")},
	CLI_OPTION_STORE(struct log_options),
	CLI_OPTION_FORMAT(struct log_options),
	{.name = NULL},
};

static bool has_process(const struct stored_cell *cell, long long process)
{
	for (size_t p = 0; p < cell->process_count; p++)
		if (process < 0 || cell->processes[p].replicate == process)
			return true;
	return process < 0;
}

static void add_log(const char *log, struct strbuf *out)
{
	if (!log || !*log) {
		strbuf_puts(out, "(nothing)\n");
		return;
	}
	/* Unchanged: cli_bytes makes it safe for a terminal. */
	strbuf_puts(out, log);
	if (log[strlen(log) - 1] != '\n')
		strbuf_putc(out, '\n');
}

/* Adds a single safe line. Only the logs themselves are printed unchanged. */
PRONY_PRINTF(2, 3) static void add_words(struct strbuf *out, const char *format, ...)
{
	struct strbuf words;
	va_list arguments;
	strbuf_init(&words, 0);
	va_start(arguments, format);
	strbuf_vprintf(&words, format, arguments);
	va_end(arguments);
	char *clean = text_line(strbuf_text(&words));
	strbuf_puts(out, clean);
	free(clean);
	strbuf_release(&words);
}

/* ": why", or nothing. */
static void add_reason(const char *reason, struct strbuf *out)
{
	add_words(out, "%s%s", reason && *reason ? ": " : "", reason ? reason : "");
	strbuf_putc(out, '\n');
}

/* Every figure of the gate with its bound. */
static void add_evidence(const json_t *evidence, struct strbuf *out)
{
	const json_t *check, *checks = json_object_get(evidence, "checks");
	size_t i;
	json_array_foreach(checks, i, check)
	{
		int64_t step = json_int_or(check, "step", -1);
		const char *tensor = json_string_or(check, "tensor", "");
		add_words(out, "%-6s %s%s%s",
			  json_bool_or(check, "passed", false) ? "passed" : "FAILED",
			  json_string_or(check, "what", "?"), *tensor ? " of " : "", tensor);
		if (step >= 0)
			strbuf_printf(out, " of step %lld", (long long)step + 1);
		strbuf_printf(out, ": off by %.3g, allowed %.3g", json_real_or(check, "value", NAN),
			      json_real_or(check, "bound", NAN));
		add_reason(json_string_or(check, "reason", ""), out);
	}
	if (*json_string_or(evidence, "error", "")) {
		strbuf_puts(out, "FAILED");
		add_reason(json_string_or(evidence, "error", ""), out);
	}
}

static void add_cell_text(const struct stored_cell *cell, long long process, struct strbuf *out)
{
	add_words(out, "== %s %s: %s", cell->hash, cell->key, cell_status_name(cell->status));
	add_reason(cell->reason, out);
	if (process < 0 && cell->evidence) {
		const char *kept = json_string_or(cell->evidence, "cached", "");
		strbuf_printf(out, "-- parity gate: %s", cell_status_name(cell->gate));
		if (*kept)
			add_words(out, ", in an earlier run on %s", kept);
		strbuf_puts(out, "\n");
		add_evidence(cell->evidence, out);
		strbuf_puts(out, "-- printed during the gate\n");
		add_log(cell->gate_log, out);
	}
	for (size_t p = 0; p < cell->process_count; p++) {
		const struct process_record *record = &cell->processes[p];
		if (process >= 0 && record->replicate != process)
			continue;
		add_words(out, "-- process %lld, round %lld: %s", (long long)record->replicate,
			  (long long)record->round, record->status);
		add_reason(record->error, out);
		add_log(record->log, out);
		series_text(record, out);
	}
}

static json_t *cell_json(const struct stored_cell *cell, long long process)
{
	json_t *processes = json_array();
	for (size_t p = 0; p < cell->process_count; p++) {
		const struct process_record *record = &cell->processes[p];
		if (process >= 0 && record->replicate != process)
			continue;
		json_t *row = json_object();
		json_object_set_new(row, "replicate", json_integer(record->replicate));
		json_object_set_new(row, "status", text_json(record->status));
		json_object_set_new(row, "error",
				    *record->error ? text_json(record->error) : json_null());
		json_object_set_new(row, "log", text_json(record->log));
		json_object_set_new(row, "sensors", series_to_json(record, false));
		json_array_append_new(processes, row);
	}
	json_t *object = json_object();
	json_object_set_new(object, "hash", text_json(cell->hash));
	json_object_set_new(object, "key", text_json(cell->key));
	json_object_set_new(object, "status", json_string(cell_status_name(cell->status)));
	json_object_set_new(object, "reason", text_json(cell->reason));
	json_object_set(object, "evidence", cell->evidence);
	json_object_set_new(object, "gate_log", text_json(cell->gate_log));
	json_object_set_new(object, "processes", processes);
	return object;
}

/* Lists the cells that can be named. */
static void print_cells(const struct stored_run *run, const char *format)
{
	static const struct table_column columns[] = {
		{"cell", "hash", TABLE_LEFT},
		{"status", "status", TABLE_LEFT},
		{"processes", "processes", TABLE_RIGHT},
		{"key", "key", TABLE_LEFT},
	};
	struct table *table = table_new(columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct stored_cell *cell = &run->cells[i];
		char count[24];
		snprintf(count, sizeof count, "%zu", cell->process_count);
		table_row(table);
		table_cell(table, cell->hash, NULL);
		table_cell(table, cell_status_name(cell->status), NULL);
		table_cell(table, count, json_integer((json_int_t)cell->process_count));
		table_cell(table, cell->key, NULL);
	}
	cli_print_table(table, format);
	table_free(table);
}

static enum prony_status print_logs(const struct stored_run *run, const char **words, size_t count,
				    const struct log_options *options, struct error *err)
{
	struct strbuf text;
	json_t *array = json_array();
	size_t found = 0;
	bool as_json = !strcmp(options->format, "json");
	strbuf_init(&text, LOG_BYTES_MAX);
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct stored_cell *cell = &run->cells[i];
		if (!cell_filter_match(cell->key, cell->hash, words, count) ||
		    !has_process(cell, options->process))
			continue;
		found++;
		if (as_json)
			json_array_append_new(array, cell_json(cell, options->process));
		else
			add_cell_text(cell, options->process, &text);
	}
	enum prony_status status = PRONY_OK;
	if (found == 0) {
		char *wanted = cell_filter_text(words, count);
		status = error_set(
			err, PRONY_BAD_INPUT,
			"run %lld has no cell%s%.400s; 'prony log --run %lld' lists its cells",
			(long long)run->meta.id, count ? " that matches " : "", wanted,
			(long long)run->meta.id);
		free(wanted);
	} else if (as_json)
		cli_print_json(array);
	else
		status = results_write(&text, NULL, err);
	json_decref(array);
	strbuf_release(&text);
	return status;
}

int command_log(const struct cli_call *call, struct error *err)
{
	bool lists = call->count == 0 && log_options.process < 0;
	struct stored_run run;
	if (results_load_run(log_options.store, log_options.run,
			     lists ? 0 : STORE_CHECKS | STORE_SERIES | STORE_LOGS, &run,
			     err) != PRONY_OK)
		return 0;
	if (lists)
		print_cells(&run, log_options.format);
	else
		print_logs(&run, call->words, call->count, &log_options, err);
	stored_run_release(&run);
	return 0;
}
