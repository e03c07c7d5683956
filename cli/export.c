/* `prony export`: a stored run for other programs. */
#include <string.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "report/export.h"

#define EXPORT_BYTES_MAX ((size_t)4 << 30)

static const char *const formats[] = {"csv", "json", "jsonl", "md", "latex", "ms", NULL};
static const char *const layouts[] = {"long", "cells", "wide", "ms", NULL};

struct export_options {
	const char *store, *output, *format, *layout;
};

const struct option export_option_rows[] = {
	{.name = "format",
	 .kind = OPTION_CHOICE,
	 .offset = offsetof(struct export_options, format),
	 .choices = formats,
	 .metavar = "FORMAT",
	 .help = "default csv; jsonl is complete, with intervals, logs and series; latex has "
		 "tables of booktabs"},
	{.name = "layout",
	 .kind = OPTION_CHOICE,
	 .offset = offsetof(struct export_options, layout),
	 .choices = layouts,
	 .metavar = "LAYOUT",
	 .help = "of csv: a row per process (default), a row per cell, a column per framework, or "
		 "a row per ok cell in ms"},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct export_options, output),
	 .metavar = "FILE",
	 .help = "where to write it (default: standard output)"},
	CLI_OPTION_STORE(struct export_options),
	{.name = NULL},
};

/* One row per format and layout; layout NULL: the format has none. */
static const struct {
	const char *format, *layout;
	enum prony_status (*write)(const struct summary *summary, struct strbuf *out,
				   struct error *err);
	enum results_depth depth;
} writers[] = {
	{"csv", "long", NULL, RESULTS_FIGURES}, /* in pieces */
	{"csv", "cells", export_csv_cells, RESULTS_FIGURES},
	{"csv", "wide", export_csv_wide, RESULTS_FIGURES},
	{"csv", "ms", export_csv_ms, RESULTS_FIGURES},
	{"json", NULL, export_json, RESULTS_SERIES},
	{"jsonl", NULL, export_jsonl, RESULTS_EVERYTHING},
	{"md", NULL, export_markdown, RESULTS_FIGURES},
	{"latex", NULL, export_latex, RESULTS_FIGURES},
};

static enum prony_status write_piece(void *context, const char *text, size_t length,
				     struct error *err)
{
	struct file_writer **writer = context;
	if (!*writer)
		return cli_bytes(text, length, err);
	enum prony_status status = file_writer_add(*writer, text, length, err);
	if (status != PRONY_OK)
		*writer = NULL;
	return status;
}

/* Runs, one after another, with one heading. */
static enum prony_status stream_runs(const struct export_options *options, const char *const *which,
				     size_t count, const struct export_sink *sink,
				     struct error *err)
{
	struct store *store = NULL;
	enum prony_status status = store_open(options->store, true, &store, err);
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		struct store_reader *reader = NULL;
		status = store_reader_open(store, which[i], 0, &reader, err);
		if (status == PRONY_OK)
			status = export_stream_long(reader, i == 0, sink, err);
		store_reader_close(reader);
	}
	store_close(store);
	return status;
}

/* What is a row per process goes out while it is read: there may be a million. */
static enum prony_status stream_out(const struct export_options *options, const char *const *which,
				    size_t count, struct error *err)
{
	struct file_writer *writer = NULL;
	const struct export_sink sink = {write_piece, &writer};
	bool to_file = options->output && strcmp(options->output, "-") != 0;
	enum prony_status status =
		to_file ? file_writer_open(options->output, &writer, err) : PRONY_OK;
	if (status == PRONY_OK)
		status = stream_runs(options, which, count, &sink, err);
	if (status == PRONY_OK && writer) {
		status = file_writer_finish(writer, err);
		writer = NULL;
	}
	file_writer_abandon(writer);
	return status;
}

/* The row of the format and layout that were asked for. */
static enum prony_status find_writer(const struct export_options *options, size_t *out,
				     struct error *err)
{
	bool ms = !strcmp(options->format, "ms"); /* a spelling of csv in that layout */
	const char *format = ms ? "csv" : options->format;
	const char *layout = options->layout ? options->layout : ms ? "ms" : "long";
	size_t row = 0;
	if (ms && strcmp(layout, "ms"))
		return error_set(err, PRONY_USAGE,
				 "--format ms is --format csv --layout ms: leave --layout %s out",
				 layout);
	while (strcmp(writers[row].format, format) ||
	       (writers[row].layout && strcmp(writers[row].layout, layout)))
		row++;
	if (options->layout && !writers[row].layout)
		return error_set(err, PRONY_USAGE,
				 "--layout is for --format csv; %s has one layout",
				 options->format);
	*out = row;
	return PRONY_OK;
}

/* Of several runs each format is still one file: one header in CSV, a list in JSON. */
static void join(const char *format, bool first, const char *text, struct strbuf *out)
{
	if (!strcmp(format, "csv") && !first)
		text = strchr(text, '\n') + 1;
	else if (!strcmp(format, "json"))
		strbuf_puts(out, first ? "[\n" : ",\n");
	else if (!first && strcmp(format, "jsonl") != 0)
		strbuf_putc(out, '\n');
	strbuf_puts(out, text);
}

static enum prony_status add_run(const struct export_options *options, size_t writer,
				 const char *which, bool alone, bool first, struct strbuf *out,
				 struct error *err)
{
	struct stored_run run;
	struct summary summary;
	struct strbuf text;
	enum prony_status status =
		results_load_run(options->store, which, writers[writer].depth, &run, err);
	if (status != PRONY_OK)
		return status;
	strbuf_init(&text, EXPORT_BYTES_MAX);
	summary_init(&summary, &run);
	status = writers[writer].write(&summary, &text, err);
	if (status == PRONY_OK && alone)
		strbuf_puts(out, strbuf_text(&text));
	else if (status == PRONY_OK)
		join(writers[writer].format, first, strbuf_text(&text), out);
	summary_release(&summary);
	strbuf_release(&text);
	stored_run_release(&run);
	return status;
}

static enum prony_status export_runs(const struct export_options *options, const char *const *which,
				     size_t count, struct error *err)
{
	struct strbuf text;
	size_t writer = 0;
	enum prony_status status = find_writer(options, &writer, err);
	if (status == PRONY_OK && count != 1 && writers[writer].write == export_csv_wide)
		status = error_set(err, PRONY_USAGE,
				   "--layout wide has the frameworks of one run as columns: name "
				   "one run, or take --layout cells");
	if (status == PRONY_OK)
		status = results_check_output(options->output, options->store, err);
	if (status != PRONY_OK)
		return status;
	if (!writers[writer].write)
		return stream_out(options, which, count, err);
	strbuf_init(&text, EXPORT_BYTES_MAX);
	for (size_t i = 0; i < count && status == PRONY_OK; i++)
		status = add_run(options, writer, which[i], count == 1, i == 0, &text, err);
	if (count > 1 && !strcmp(writers[writer].format, "json"))
		strbuf_puts(&text, "]\n");
	if (status == PRONY_OK)
		status = export_finish(&text, err);
	if (status == PRONY_OK)
		status = results_write(&text, options->output, err);
	strbuf_release(&text);
	return status;
}

int command_export(const struct cli_command *command, int argc, char **argv)
{
	struct export_options options = {.format = "csv"};
	struct error err = ERROR_INIT;
	size_t count = 0;
	int exit_code = 0;
	const char *newest = "";
	const char **words = results_words(argc);
	if (cli_parse(command, argc, argv, &options, words, &count, &exit_code) &&
	    export_runs(&options, count ? words : &newest, count ? count : 1, &err) != PRONY_OK)
		exit_code = cli_fail(&err);
	results_words_free(words);
	return exit_code;
}
