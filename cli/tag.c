/* `prony tag`: names and tags runs. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/results.h"
#include "cli/run_text.h"

struct tag_options {
	const char *store, *format, *name;
	bool remove;
} tag_options = {.format = "table"};

const struct option tag_option_rows[] = {
	{TEXT_OPTION(struct tag_options, name, "name", "NAME",
		     "name the run; the name must be unique; \"\" removes the name")},
	{FLAG_OPTION(struct tag_options, remove, "remove", "remove the tags")},
	CLI_OPTION_STORE(struct tag_options),
	CLI_OPTION_FORMAT(struct tag_options),
	{.name = NULL},
};

/* One transaction: all changes or none. */
static enum prony_status change(struct store *store, const struct tag_options *options, int64_t run,
				const char **tags, size_t count, struct error *err)
{
	enum prony_status status = store_batch_begin(store, err);
	if (status != PRONY_OK)
		return status;
	if (options->name)
		status = store_run_name(store, run, options->name, false, err);
	for (size_t i = 0; i < count && status == PRONY_OK; i++)
		status = options->remove ? store_run_untag(store, run, tags[i], err)
					 : store_run_tag(store, run, tags[i], err);
	return store_batch_end(store, status, err);
}

static enum prony_status tag_run(const struct tag_options *options, const char **words,
				 size_t count, int64_t *run, struct error *err)
{
	struct store *store = NULL;
	struct run_extent extent;
	enum prony_status status = results_open_existing(options->store, &store, err);
	if (status == PRONY_OK)
		status = store_find_run(store, words[0], &extent, err);
	if (status == PRONY_OK) {
		*run = extent.meta.id;
		status = change(store, options, *run, words + 1, count - 1, err);
	}
	store_close(store);
	return status;
}

/* Prints the run with its current name and tags. */
static void print_run(const struct tag_options *options, int64_t run, struct error *err)
{
	json_t *rows = run_rows(options->store, NULL, err), *chosen = json_array(), *row;
	size_t i;
	json_array_foreach(rows, i, row)
	{
		if (json_integer_value(json_object_get(row, "id")) == run)
			json_array_append(chosen, row);
	}
	if (rows && !strcmp(options->format, "json"))
		cli_print_json(json_array_get(chosen, 0));
	else if (rows)
		listing_print(run_columns, chosen);
	json_decref(chosen);
	json_decref(rows);
}

int command_tag(const struct cli_call *call, struct error *err)
{
	int64_t run = 0;
	if (call->count == 0)
		error_set(err, PRONY_USAGE,
			  "which run? prony tag RUN [TAG...] [--name NAME]; 'prony list runs' "
			  "shows the runs");
	else if (tag_run(&tag_options, call->words, call->count, &run, err) == PRONY_OK)
		print_run(&tag_options, run, err);
	return 0;
}
