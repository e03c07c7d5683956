/* `prony compare`: compares two runs, or two frameworks of one run. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "cli/cell_filter.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/compare_options.h"
#include "cli/results.h"

static const char *const formats[] = {"table", "json", "csv", "md", NULL};

struct compare_options {
	const char *store, *format, *output, *threshold;
	bool force, full, public;
} compare_options = {.format = "table"};

const struct option compare_option_rows[] = {
	{TEXT_OPTION(struct compare_options, threshold, "threshold", "PERCENT",
		     "differences up to this size count as the same (default: 1%, or this "
		     "machine's noise)")},
	{FLAG_OPTION(struct compare_options, force, "force",
		     "also compare different machines, and judge disturbed cells")},
	{FLAG_OPTION(struct compare_options, full, "full",
		     "list each cell without a counterpart, and differences that every two runs "
		     "have")},
	{CHOICE_OPTION(struct compare_options, format, "format", formats, "FORMAT",
		       "output format")},
	{.letter = 'o',
	 TEXT_OPTION(struct compare_options, output, "output", "FILE",
		     "output file (default: standard output)")},
	CLI_OPTION_PUBLIC(struct compare_options),
	CLI_OPTION_STORE(struct compare_options),
	{.name = NULL},
};

/* A side as typed: RUN, or RUN:FRAMEWORK. */
struct side {
	char *word;	       /* name of the run; owned */
	const char *framework; /* NULL: all; points into the typed text */
	struct stored_run run;
	struct cell spelled; /* canonical spelling of the framework */
	bool loaded;
};

static void side_split(const char *text, struct side *side)
{
	const char *colon = strchr(text, ':');
	side->word = colon ? memory_printf("%.*s", (int)(colon - text), text) : memory_strdup(text);
	side->framework = colon ? colon + 1 : NULL;
}

/* The distinct names of the run's frameworks, borrowed; the caller frees the array. */
static const char **frameworks_of(const struct stored_run *run, size_t *count)
{
	const char **names = memory_alloc((run->cell_count + 1) * sizeof *names);
	*count = 0;
	for (size_t i = 0; i < run->cell_count; i++) {
		bool known = false;
		for (size_t k = 0; k < *count && !known; k++)
			known = !strcmp(names[k], run->cells[i].cell.framework);
		if (!known)
			names[(*count)++] = run->cells[i].cell.framework;
	}
	return names;
}

/* Checks that the run has the framework; the message lists those it has. */
static enum prony_status check_framework(struct side *side, struct error *err)
{
	size_t count = 0;
	bool found = false;
	enum prony_status status = cell_parse_framework(side->framework, &side->spelled, err);
	if (status != PRONY_OK)
		return status;
	const char **names = frameworks_of(&side->run, &count);
	struct strbuf list;
	strbuf_init(&list, 400);
	for (size_t i = 0; i < count; i++) {
		found = found || !strcmp(names[i], side->spelled.framework);
		strbuf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	}
	if (!found)
		status = error_set(
			err, PRONY_BAD_INPUT, "run %lld has no framework '%s'; it has %s",
			(long long)side->run.meta.id, side->framework, strbuf_text(&list));
	strbuf_release(&list);
	free(names);
	side->framework = side->spelled.framework;
	return status;
}

static enum prony_status side_load(const struct compare_options *options, struct side *side,
				   struct error *err)
{
	struct store *store = NULL;
	enum prony_status status = results_open(options->store, options->public, &store, err);
	if (status == PRONY_OK)
		status = results_load_from(store, side->word, 0, &side->run, err);
	store_close(store);
	side->loaded = status == PRONY_OK;
	return status == PRONY_OK && side->framework ? check_framework(side, err) : status;
}

struct words {
	const char **words;
	size_t count;
};

static bool is_wanted(const struct stored_cell *cell, void *context)
{
	const struct words *words = context;
	return cell_filter_match(cell->key, cell->hash, words->words, words->count);
}

static enum prony_status print(const struct compare *compare, const struct compare_options *options,
			       struct error *err)
{
	struct strbuf text;
	enum prony_status status = PRONY_OK;
	strbuf_init(&text, 0);
	if (!strcmp(options->format, "csv")) {
		compare_csv(compare, &text);
	} else if (!strcmp(options->format, "md")) {
		compare_markdown(compare, &text);
	} else if (!strcmp(options->format, "json")) {
		json_t *json = compare_to_json(compare);
		char *dumped = cli_json_text(json);
		strbuf_printf(&text, "%s\n", dumped);
		free(dumped);
		json_decref(json);
	} else {
		bool file = options->output && strcmp(options->output, "-") != 0;
		compare_render(compare, !file && cli_colour(), cli_width(), &text);
		if (!file) {
			cli_page(strbuf_text(&text));
			strbuf_release(&text);
			return PRONY_OK;
		}
	}
	status = results_write(&text, options->output, err);
	strbuf_release(&text);
	return status;
}

static enum prony_status check_sides(const struct side *a, const struct side *b, struct error *err)
{
	if (!a->framework != !b->framework)
		return error_set(err, PRONY_USAGE,
				 "only one of A and B names a framework; name one in both, for "
				 "example: prony compare latest:native latest:onnxruntime");
	bool same_run = !strcmp(a->run.meta.uid, b->run.meta.uid);
	bool same_framework = !a->framework || !strcmp(a->framework, b->framework);
	if (same_run && same_framework)
		return error_set(err, PRONY_USAGE, "A and B are the same: run %lld%s%s",
				 (long long)a->run.meta.id, a->framework ? " and " : "",
				 a->framework ? a->framework : "");
	return PRONY_OK;
}

static enum prony_status compare_sides(const struct compare_options *options, struct side *a,
				       struct side *b, const struct words *words, int *exit_code,
				       struct error *err)
{
	struct compare_settings settings = {
		.force = options->force, .wanted = is_wanted, .context = (void *)words};
	struct compare compare;
	enum prony_status status = threshold_parse(options->threshold, &settings.threshold, err);
	if (status == PRONY_OK)
		status = results_check_output(options->output, options->store, err);
	if (status == PRONY_OK)
		status = side_load(options, a, err);
	if (status == PRONY_OK)
		status = side_load(options, b, err);
	if (status == PRONY_OK)
		status = check_sides(a, b, err);
	if (status != PRONY_OK)
		return status;
	compare_init(&compare, &(struct compare_side){&a->run, a->framework},
		     &(struct compare_side){&b->run, b->framework}, &settings);
	compare.full = options->full;
	status = compare_allow(&compare, options->force, err);
	if (status == PRONY_OK)
		status = print(&compare, options, err);
	if (status == PRONY_OK)
		*exit_code = (int)compare_exit(&compare);
	compare_release(&compare);
	return status;
}

int command_compare(const struct cli_call *call, struct error *err)
{
	struct side a = {.word = NULL}, b = {.word = NULL};
	size_t count = call->count;
	int exit_code = 0;
	if (count < 1) {
		error_set(err, PRONY_USAGE,
			  "give two runs to compare: prony compare A B, each a run or "
			  "RUN:FRAMEWORK; 'prony list runs' shows the runs");
		return 0;
	}
	struct words rest = {call->words + 2, count > 2 ? count - 2 : 0};
	side_split(call->words[0], &a);
	side_split(count > 1 ? call->words[1] : "", &b);
	compare_sides(&compare_options, &a, &b, &rest, &exit_code, err);
	if (a.loaded)
		stored_run_release(&a.run);
	if (b.loaded)
		stored_run_release(&b.run);
	free(a.word);
	free(b.word);
	return exit_code;
}
