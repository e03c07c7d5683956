/* `prony report`: writes one self-contained page about runs, or their figures as files. */
#include <stdlib.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/histories.h"
#include "cli/results.h"
#include "report/charts.h"
#include "report/html.h"

#define PAGE_BYTES_MAX ((size_t)256 << 20)

struct report_options {
	const char *store, *output, *charts;
} report_options;

const struct option report_option_rows[] = {
	{.letter = 'o',
	 TEXT_OPTION(struct report_options, output, "output", "FILE",
		     "output file (default: report.html; - = standard output)")},
	{TEXT_OPTION(struct report_options, charts, "figures", "DIR",
		     "write every chart as SVG and CSV into this folder; without --output, no page "
		     "is written")},
	CLI_OPTION_STORE(struct report_options),
	{.name = NULL},
};

/* The loaded runs of a command line. */
struct report_runs {
	struct stored_run *runs;
	struct summary *summaries;
	const struct summary **borrowed;
	size_t count;
	struct histories histories;
};

static enum prony_status load(const struct report_options *options, const char **names,
			      size_t count, struct report_runs *out, struct error *err)
{
	*out = (struct report_runs){.runs = memory_alloc(count * sizeof *out->runs),
				    .summaries = memory_alloc(count * sizeof *out->summaries),
				    .borrowed = memory_alloc(count * sizeof *out->borrowed)};
	struct store *store = NULL;
	enum prony_status status = store_open(options->store, true, &store, err);
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		status = results_load_for_page(store, names[i], &out->runs[i], &out->summaries[i],
					       err);
		out->borrowed[i] = &out->summaries[i];
		out->count += status == PRONY_OK;
	}
	if (status == PRONY_OK)
		status = histories_load(store, out->borrowed, out->count, &out->histories, err);
	store_close(store);
	return status;
}

static void release(struct report_runs *runs)
{
	histories_release(&runs->histories);
	for (size_t i = 0; i < runs->count; i++) {
		summary_release(&runs->summaries[i]);
		stored_run_release(&runs->runs[i]);
	}
	free(runs->borrowed);
	free(runs->summaries);
	free(runs->runs);
}

static enum prony_status write_chart(const struct chart *chart, const char *folder, bool csv,
				     struct error *err)
{
	struct strbuf text;
	char *name = memory_printf("%s/%s.%s", folder, chart->name, csv ? "csv" : "svg");
	strbuf_init(&text, PAGE_BYTES_MAX);
	if (csv) {
		chart_csv(chart, &text);
	} else {
		strbuf_puts(&text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
		chart_svg(chart, CHART_WIDE, &text);
		strbuf_putc(&text, '\n');
	}
	enum prony_status status = file_write_atomic(name, strbuf_text(&text), text.length, err);
	strbuf_release(&text);
	free(name);
	return status;
}

static enum prony_status write_charts(const struct report_runs *runs, const char *folder,
				      struct error *err)
{
	struct charts charts = {.count = 0};
	enum prony_status status = directory_make(folder, err);
	charts_of_runs(runs->borrowed, runs->count, runs->histories.items, runs->histories.count,
		       &charts);
	for (size_t i = 0; i < 2 * charts.count && status == PRONY_OK; i++)
		status = write_chart(charts.items[i / 2], folder, i % 2 == 1, err);
	if (status == PRONY_OK)
		cli_say("figures: %zu in %s, each as SVG and CSV\n", charts.count, folder);
	charts_release(&charts);
	return status;
}

static enum prony_status write_page(const struct report_runs *runs, const char *output,
				    struct error *err)
{
	struct strbuf page;
	strbuf_init(&page, PAGE_BYTES_MAX);
	enum prony_status status = html_report(runs->borrowed, runs->count, runs->histories.items,
					       runs->histories.count, &page, err);
	if (status == PRONY_OK)
		status = results_write(&page, output, err);
	if (status == PRONY_OK)
		cli_say("report: %s\n", output);
	strbuf_release(&page);
	return status;
}

static enum prony_status report(const struct report_options *options, const char **names,
				size_t count, struct error *err)
{
	struct report_runs runs;
	const char *output = options->output || options->charts ? options->output : "report.html";
	enum prony_status status = PRONY_OK;
	if (output)
		status = results_check_output(output, options->store, err);
	if (status != PRONY_OK)
		return status;
	status = load(options, names, count, &runs, err);
	if (status == PRONY_OK && output)
		status = write_page(&runs, output, err);
	if (status == PRONY_OK && options->charts)
		status = write_charts(&runs, options->charts, err);
	release(&runs);
	return status;
}

int command_report(const struct cli_call *call, struct error *err)
{
	const char *newest = "";
	report(&report_options, call->count ? call->words : &newest, call->count ? call->count : 1,
	       err);
	return 0;
}
