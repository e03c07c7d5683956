/* `prony export`: writes a stored run for other programs. */
#include <string.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "report/export.h"
#include "report/stream.h"

#define EXPORT_BYTES_MAX ((size_t)4 << 30)

static const char *const formats[] = {"csv", "json", "jsonl",  "md",	      "latex",
				      "ms",  "bmf",  "github", "openmetrics", NULL};
static const char *const layouts[] = {"long", "cells", "wide", "ms", NULL};

struct export_options {
	const char *store, *output, *format, *layout;
	bool all, public;
} export_options = {.format = "csv"};

const struct option export_option_rows[] = {
	{CHOICE_OPTION(struct export_options, format, "format", formats, "FORMAT",
		       "output format; jsonl is complete, with intervals, logs and series; latex "
		       "uses booktabs; bmf, github and openmetrics are for Bencher, "
		       "github-action-benchmark and Prometheus")},
	{CHOICE_OPTION(struct export_options, layout, "layout", layouts, "LAYOUT",
		       "rows of CSV: long has one per process, cells one per cell, wide a column "
		       "per framework, ms one per ok cell")},
	{FLAG_OPTION(struct export_options, all, "all",
		     "export every run of the store, oldest first")},
	CLI_OPTION_PUBLIC(struct export_options),
	{.letter = 'o',
	 TEXT_OPTION(struct export_options, output, "output", "FILE",
		     "output file (default: standard output)")},
	CLI_OPTION_STORE(struct export_options),
	{.name = NULL},
};

/* One row per format and layout; layout NULL: the format has none. A run is loaded whole to a
 * depth, or, with `pieces`, one comparison after the other with these parts. */
static const struct {
	const char *format, *layout;
	enum prony_status (*write)(const struct summary *summary, struct strbuf *out,
				   struct error *err);
	unsigned parts;
	bool pieces;
	bool single; /* it cannot hold several runs */
} writers[] = {
	{"csv", "long", .write = export_csv_long, .pieces = true},
	{"csv", "cells", .write = export_csv_cells},
	{"csv", "wide", .write = export_csv_wide, .single = true},
	{"csv", "ms", .write = export_csv_ms},
	{"json", NULL, .write = export_json, .parts = STORE_CHECKS | STORE_SERIES},
	{"jsonl", NULL, .write = export_jsonl, .parts = STORE_ALL, .pieces = true},
	{"md", NULL, .write = export_markdown},
	{"latex", NULL, .write = export_latex},
	{"bmf", NULL, .write = export_bmf, .single = true},
	{"github", NULL, .write = export_github, .single = true},
	{"openmetrics", NULL, .write = export_openmetrics, .single = true},
};

/* Finds the row of the requested format and layout. */
static enum prony_status find_writer(const struct export_options *options, size_t *out,
				     struct error *err)
{
	bool ms = !strcmp(options->format,
			  "ms"); /* "ms" is another spelling of csv with that layout */
	const char *format = ms ? "csv" : options->format;
	const char *layout = options->layout ? options->layout : ms ? "ms" : "long";
	size_t row = 0;
	if (ms && strcmp(layout, "ms"))
		return error_set(err, PRONY_USAGE,
				 "--format ms means --format csv --layout ms: remove --layout %s",
				 layout);
	while (strcmp(writers[row].format, format) ||
	       (writers[row].layout && strcmp(writers[row].layout, layout)))
		row++;
	if (options->layout && !writers[row].layout)
		return error_set(err, PRONY_USAGE,
				 "--layout applies only to --format csv; %s has one layout",
				 options->format);
	*out = row;
	return PRONY_OK;
}

/* What to write, and with which row. */
struct job {
	const struct export_options *options;
	const char *const *which;
	size_t count, writer;
	struct store *store;
	struct file_writer *file; /* NULL: standard output */
};

static enum prony_status put(struct job *job, const char *text, struct error *err)
{
	if (!job->file)
		return cli_bytes(text, strlen(text), err);
	enum prony_status status = file_writer_add(job->file, text, strlen(text), err);
	if (status != PRONY_OK)
		job->file = NULL;
	return status;
}

/* Several runs still give one file: one header in CSV, a list in JSON. */
static enum prony_status put_joined(struct job *job, size_t run, const char *text,
				    struct error *err)
{
	const char *format = writers[job->writer].format, *before = "";
	if (job->count == 1)
		return put(job, text, err);
	if (!strcmp(format, "csv"))
		text = run > 0 ? strchr(text, '\n') + 1 : text;
	else if (!strcmp(format, "json"))
		before = run > 0 ? ",\n" : "[\n";
	else if (strcmp(format, "jsonl") != 0)
		before = run > 0 ? "\n" : "";
	enum prony_status status = put(job, before, err);
	return status == PRONY_OK ? put(job, text, err) : status;
}

static enum prony_status put_whole(struct job *job, size_t run, struct error *err)
{
	struct stored_run stored;
	struct summary summary;
	struct strbuf text;
	enum prony_status status = results_load_from(job->store, job->which[run],
						     writers[job->writer].parts, &stored, err);
	if (status != PRONY_OK)
		return status;
	strbuf_init(&text, EXPORT_BYTES_MAX);
	summary_init(&summary, &stored);
	status = writers[job->writer].write(&summary, &text, err);
	if (status == PRONY_OK)
		status = put_joined(job, run, strbuf_text(&text), err);
	summary_release(&summary);
	strbuf_release(&text);
	stored_run_release(&stored);
	return status;
}

struct piece {
	struct job *job;
	size_t run, number;
};

static enum prony_status put_piece(void *context, struct summary *summary, struct stored_run *run,
				   struct error *err)
{
	struct piece *piece = context;
	struct job *job = piece->job;
	struct strbuf text;
	(void)run;
	strbuf_init(&text, EXPORT_BYTES_MAX);
	enum prony_status status = writers[job->writer].write(summary, &text, err);
	/* The first line is the heading, or the run: only the first piece keeps it. */
	if (status == PRONY_OK)
		status = piece->number++ == 0 ? put_joined(job, piece->run, strbuf_text(&text), err)
					      : put(job, strchr(strbuf_text(&text), '\n') + 1, err);
	strbuf_release(&text);
	return status;
}

/* There may be a million processes: each comparison is written before the next is read. */
static enum prony_status put_pieces(struct job *job, size_t run, struct error *err)
{
	struct store_reader *reader = NULL;
	struct piece piece = {.job = job, .run = run};
	enum prony_status status = store_reader_open(job->store, job->which[run],
						     writers[job->writer].parts, &reader, err);
	if (status == PRONY_OK)
		status = stream_comparisons(reader, put_piece, &piece, err);
	store_reader_close(reader);
	return status;
}

static enum prony_status put_runs(struct job *job, struct error *err)
{
	const struct export_options *o = job->options;
	enum prony_status status = results_open(o->store, o->public, &job->store, err);
	for (size_t i = 0; i < job->count && status == PRONY_OK; i++)
		status = (writers[job->writer].pieces ? put_pieces : put_whole)(job, i, err);
	if (status == PRONY_OK && job->count > 1 && !strcmp(writers[job->writer].format, "json"))
		status = put(job, "]\n", err);
	store_close(job->store);
	return status;
}

static enum prony_status write_out(struct job *job, struct error *err)
{
	const char *output = job->options->output;
	bool to_file = output && strcmp(output, "-") != 0;
	enum prony_status status = to_file ? file_writer_open(output, &job->file, err) : PRONY_OK;
	if (status == PRONY_OK)
		status = put_runs(job, err);
	if (status == PRONY_OK && job->file) {
		status = file_writer_finish(job->file, err);
		job->file = NULL;
	}
	file_writer_abandon(job->file);
	return status;
}

static enum prony_status export_runs(const struct export_options *options, const char *const *which,
				     size_t count, struct error *err)
{
	struct job job = {.options = options, .which = which, .count = count};
	enum prony_status status = find_writer(options, &job.writer, err);
	if (status == PRONY_OK && count != 1 && writers[job.writer].single)
		status = error_set(err, PRONY_USAGE,
				   "%s shows one run: give one run, or use --layout cells",
				   options->layout ? "--layout wide" : options->format);
	if (status == PRONY_OK)
		status = results_check_output(options->output, options->store, err);
	return status == PRONY_OK ? write_out(&job, err) : status;
}

/* Exports every run of the store, oldest first. */
static enum prony_status export_all(const struct export_options *options, struct error *err)
{
	struct store *store = NULL;
	struct run_extent *runs = NULL;
	struct arena arena;
	size_t count = 0;
	arena_init(&arena, 0);
	enum prony_status status = store_open(options->store, true, &store, err);
	if (status == PRONY_OK)
		status = store_list_runs(store, NULL, &arena, &runs, &count, err);
	store_close(store);
	const char **which = arena_array(&arena, count + 1, sizeof *which);
	for (size_t i = 0; i < count; i++)
		which[count - 1 - i] = arena_printf(&arena, "%lld", (long long)runs[i].meta.id);
	if (status == PRONY_OK && count == 0)
		status = error_set(err, PRONY_BAD_INPUT, "the store has no runs yet");
	if (status == PRONY_OK)
		status = export_runs(options, which, count, err);
	arena_release(&arena);
	return status;
}

int command_export(const struct cli_call *call, struct error *err)
{
	const char *newest = "";
	if (export_options.all && call->count > 0)
		error_set(err, PRONY_USAGE, "--all exports every run: remove %s", call->words[0]);
	else if (export_options.all)
		export_all(&export_options, err);
	else
		export_runs(&export_options, call->count ? call->words : &newest,
			    call->count ? call->count : 1, err);
	return 0;
}
