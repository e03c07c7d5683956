/* `prony export`: a stored run for other programs. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "report/export.h"

#define EXPORT_BYTES_MAX ((size_t)4 << 30)

static const char *const formats[] = {"csv", "json", "jsonl", "md", "ms", NULL};
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
	 .help = "default csv; jsonl is complete, with intervals, logs and series; ms is csv in "
		 "layout ms"},
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
	{"csv", "long", export_csv_long, RESULTS_FIGURES},
	{"csv", "cells", export_csv_cells, RESULTS_FIGURES},
	{"csv", "wide", export_csv_wide, RESULTS_FIGURES},
	{"csv", "ms", export_csv_ms, RESULTS_FIGURES},
	{"json", NULL, export_json, RESULTS_SERIES},
	{"jsonl", NULL, export_jsonl, RESULTS_EVERYTHING},
	{"md", NULL, export_markdown, RESULTS_FIGURES},
};

static enum prony_status export_run(const struct export_options *options, const char *which,
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
	struct stored_run run;
	enum prony_status status = results_check_output(options->output, options->store, err);
	if (status == PRONY_OK)
		status = results_load_run(options->store, which, writers[row].depth, &run, err);
	if (status != PRONY_OK)
		return status;
	struct summary summary;
	struct strbuf text;
	strbuf_init(&text, EXPORT_BYTES_MAX);
	summary_init(&summary, &run);
	status = writers[row].write(&summary, &text, err);
	if (status == PRONY_OK)
		status = results_write(&text, options->output, err);
	summary_release(&summary);
	strbuf_release(&text);
	stored_run_release(&run);
	return status;
}

int command_export(const struct cli_command *command, int argc, char **argv)
{
	struct export_options options = {.format = "csv"};
	struct error err = ERROR_INIT;
	size_t count = 0;
	int exit_code = 0;
	const char **words = results_words(argc);
	if (cli_parse(command, argc, argv, &options, words, &count, &exit_code)) {
		if (count > 1)
			error_set(&err, PRONY_USAGE,
				  "prony export takes one run, not %zu; call it for each", count);
		else
			export_run(&options, count ? words[0] : "", &err);
		if (err.code)
			exit_code = cli_fail(&err);
	}
	results_words_free(words);
	return exit_code;
}
