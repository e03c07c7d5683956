/* `prony show`: prints the table of a stored run. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "report/summary.h"

struct show_options {
	const char *store, *format;
	bool full;
} show_options = {.format = "table"};

const struct option show_option_rows[] = {
	{FLAG_OPTION(struct show_options, full, "full",
		     "show a table for each value of a sweep, and one of undisturbed steps")},
	CLI_OPTION_STORE(struct show_options),
	CLI_OPTION_FORMAT(struct show_options),
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

int command_show(const struct cli_call *call, struct error *err)
{
	struct stored_run run;
	bool json = !strcmp(show_options.format, "json");
	if (call->count > 1)
		error_set(err, PRONY_USAGE, "prony show takes one run, not %zu", call->count);
	else if (results_load_run(show_options.store, call->count ? call->words[0] : "",
				  json ? STORE_CHECKS : 0, &run, err) == PRONY_OK) {
		print_summary(&run, &show_options);
		stored_run_release(&run);
	}
	return 0;
}
