/* `prony show`: prints the table of a stored run. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "cli/show_nodes.h"
#include "report/summary.h"

struct show_options {
	const char *store, *format, *by, *threshold;
	bool full;
} show_options = {.format = "table"};

static const char *const views[] = {"node", NULL};
static const char *const formats[] = {"table", "json", "csv", "md", NULL};

const struct option show_option_rows[] = {
	{FLAG_OPTION(struct show_options, full, "full",
		     "show a table for each value of a sweep, and one of undisturbed steps")},
	{CHOICE_OPTION(struct show_options, by, "by", views, "WHAT",
		       "compare the nodes that ran the same cells, in the last two runs of each")},
	{TEXT_OPTION(struct show_options, threshold, "threshold", "PERCENT",
		     "with --by: differences up to this size count as the same (default: 1%)")},
	CLI_OPTION_STORE(struct show_options),
	{CHOICE_OPTION(struct show_options, format, "format", formats, "FORMAT",
		       "output format (csv, md: with --by)")},
	{.name = NULL},
};

static void print_summary(const struct stored_run *run, const struct show_options *options)
{
	struct summary summary;
	summary_init(&summary, run);
	summary.full = options->full;
	if (!strcmp(options->format, "json")) {
		json_t *json = summary_to_json(&summary);
		cli_print_json(json);
		json_decref(json);
	} else {
		results_print(&summary);
	}
	summary_release(&summary);
}

static enum prony_status check(const struct show_options *options, size_t count, struct error *err)
{
	if (options->by)
		return PRONY_OK;
	if (count > 1)
		return error_set(err, PRONY_USAGE, "prony show takes one run, not %zu", count);
	if (options->threshold)
		return error_set(err, PRONY_USAGE, "--threshold needs --by node");
	if (!strcmp(options->format, "csv") || !strcmp(options->format, "md"))
		return error_set(err, PRONY_USAGE,
				 "--format %s needs --by node; prony export --format %s writes a "
				 "run so",
				 options->format, options->format);
	return PRONY_OK;
}

int command_show(const struct cli_call *call, struct error *err)
{
	struct stored_run run;
	const struct show_options *options = &show_options;
	bool json = !strcmp(options->format, "json");
	if (check(options, call->count, err) != PRONY_OK)
		return 0;
	if (options->by)
		return show_nodes(&(struct show_nodes_options){options->store, options->format,
							       options->threshold, options->full},
				  call->words, call->count, err);
	if (results_load_run(options->store, call->count ? call->words[0] : "",
			     json ? STORE_CHECKS : 0, &run, err) == PRONY_OK) {
		print_summary(&run, options);
		stored_run_release(&run);
	}
	return 0;
}
