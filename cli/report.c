/* `prony report`: one self-contained page for one or several runs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "report/html.h"

#define PAGE_BYTES_MAX ((size_t)256 << 20)

struct report_options {
	const char *store, *output;
};

const struct option report_option_rows[] = {
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct report_options, output),
	 .metavar = "FILE",
	 .help = "where to write the page (default: report.html; - = standard output)"},
	CLI_OPTION_STORE(struct report_options),
	{.name = NULL},
};

static enum prony_status make_page(const struct report_options *options, const char **names,
				   size_t count, struct strbuf *page, struct error *err)
{
	struct stored_run *runs = memory_alloc(count * sizeof *runs);
	struct summary *summaries = memory_alloc(count * sizeof *summaries);
	const struct summary **borrowed = memory_alloc(count * sizeof *borrowed);
	enum prony_status status = PRONY_OK;
	size_t loaded = 0;
	for (; loaded < count && status == PRONY_OK; loaded += status == PRONY_OK) {
		status = results_load_run(options->store, names[loaded], RESULTS_FIGURES,
					  &runs[loaded], err);
		if (status != PRONY_OK)
			break;
		summary_init(&summaries[loaded], &runs[loaded]);
		borrowed[loaded] = &summaries[loaded];
	}
	if (status == PRONY_OK)
		status = html_report(borrowed, count, page, err);
	for (size_t i = 0; i < loaded; i++) {
		summary_release(&summaries[i]);
		stored_run_release(&runs[i]);
	}
	free(borrowed);
	free(summaries);
	free(runs);
	return status;
}

int command_report(const struct cli_command *command, int argc, char **argv)
{
	struct report_options options = {.output = "report.html"};
	struct error err = ERROR_INIT;
	size_t count = 0;
	int exit_code = 0;
	const char **names = results_words(argc);
	if (cli_parse(command, argc, argv, &options, names, &count, &exit_code)) {
		struct strbuf page;
		strbuf_init(&page, PAGE_BYTES_MAX);
		if (count == 0)
			names[count++] = "";
		if (results_check_output(options.output, options.store, &err) == PRONY_OK &&
		    make_page(&options, names, count, &page, &err) == PRONY_OK &&
		    results_write(&page, options.output, &err) == PRONY_OK)
			cli_say("report: %s\n", options.output);
		if (err.code)
			exit_code = cli_fail(&err);
		strbuf_release(&page);
	}
	results_words_free(names);
	return exit_code;
}
