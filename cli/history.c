/* `prony history`: shows cells over the stored runs, and where they changed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cell_filter.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/compare_options.h"
#include "cli/results.h"
#include "report/history.h"

enum { RUNS = 100, RUNS_MAX = 400 }; /* the test for changes takes quadratic time */

struct history_options {
	const char *store, *format, *threshold, *by;
	long long runs;
} history_options = {.format = "table", .runs = RUNS};

static const char *const series[] = {"node", "kind", NULL};

const struct option history_option_rows[] = {
	{INT_OPTION(struct history_options, runs, "runs", 1, RUNS_MAX, "N",
		    "show the last N runs that contain the cell (default: 100)")},
	{TEXT_OPTION(struct history_options, threshold, "threshold", "PERCENT",
		     "ignore changes up to this size (default: 1%)")},
	{CHOICE_OPTION(struct history_options, by, "by", series, "WHAT",
		       "a series for each node (outside of jobs: each host), or for each kind of "
		       "machine (default: each node, and the kind outside of jobs)")},
	CLI_OPTION_STORE(struct history_options),
	CLI_OPTION_FORMAT(struct history_options),
	{.name = NULL},
};

static enum prony_status show_series(struct store *store, const struct history_request *request,
				     const struct history_options *options,
				     const struct change_settings *settings, json_t *all,
				     struct error *err)
{
	struct stored_run *runs = NULL;
	struct history history;
	size_t count = 0;
	enum prony_status status = store_load_history(store, request, &runs, &count, err);
	if (status != PRONY_OK)
		return status;
	history_init(&history, runs, count, settings);
	if (!strcmp(options->format, "json")) {
		json_array_append_new(all, history_to_json(&history));
	} else {
		struct strbuf text;
		strbuf_init(&text, 0);
		if (json_array_size(all))
			strbuf_putc(&text, '\n');
		history_render(&history, cli_colour(), cli_width(), &text);
		cli_page(strbuf_text(&text));
		strbuf_release(&text);
		json_array_append_new(all, json_null()); /* counts */
	}
	history_release(&history);
	for (size_t i = 0; i < count; i++)
		stored_run_release(&runs[i]);
	free(runs);
	return PRONY_OK;
}

static enum prony_status show_cell(struct store *store, const struct cell_name *cell,
				   const struct history_options *options,
				   const struct change_settings *settings, json_t *all,
				   struct error *err)
{
	struct history_request request = {.hash = cell->hash, .most = (size_t)options->runs};
	const char *any = NULL, **places = &any;
	size_t count = 1;
	struct arena arena;
	enum prony_status status = PRONY_OK;
	arena_init(&arena, 0);
	request.hosts = options->by && !strcmp(options->by, "node");
	if (!options->by || request.hosts)
		status = store_list_places(store, cell->hash, request.hosts, &arena, &places,
					   &count, err);
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		request.place = places[i];
		status = show_series(store, &request, options, settings, all, err);
	}
	arena_release(&arena);
	return status;
}

static enum prony_status show_cells(struct store *store, const struct history_options *options,
				    const char **words, size_t count, struct error *err)
{
	struct change_settings settings = change_defaults;
	struct cell_name *cells = NULL;
	size_t many = 0;
	struct arena arena;
	double threshold = NAN;
	json_t *all = json_array();
	arena_init(&arena, 0);
	enum prony_status status = threshold_parse(options->threshold, &threshold, err);
	if (!isnan(threshold))
		settings.threshold = threshold;
	if (status == PRONY_OK)
		status = store_list_cells(store, &arena, &cells, &many, err);
	for (size_t i = 0; i < many && status == PRONY_OK; i++)
		if (cell_filter_match(cells[i].key, cells[i].hash, words, count))
			status = show_cell(store, &cells[i], options, &settings, all, err);
	if (status == PRONY_OK && json_array_size(all) == 0) {
		char *wanted = cell_filter_text(words, count);
		status = error_set(err, PRONY_BAD_INPUT,
				   "no stored run has a cell that matches %.400s; 'prony log' "
				   "lists the cells of a run",
				   wanted);
		free(wanted);
	}
	if (status == PRONY_OK && !strcmp(options->format, "json"))
		cli_print_json(all);
	json_decref(all);
	arena_release(&arena);
	return status;
}

int command_history(const struct cli_call *call, struct error *err)
{
	struct store *store = NULL;
	if (call->count == 0)
		error_set(err, PRONY_USAGE,
			  "which cell? Give words of its key, for example: prony history native "
			  "lenet train");
	else if (store_open(history_options.store, true, &store, err) == PRONY_OK)
		show_cells(store, &history_options, call->words, call->count, err);
	store_close(store);
	return 0;
}
