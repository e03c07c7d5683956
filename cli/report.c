/* `prony report`: writes one self-contained page about runs, or their figures as files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "cli/show_nodes.h"
#include "report/charts.h"
#include "report/history.h"
#include "report/html.h"
#include "report/stream.h"

#define PAGE_BYTES_MAX ((size_t)256 << 20)

struct report_options {
	const char *store, *output, *charts, *width, *by;
	long long font_points;
	bool pdf, public;
} report_options = {.font_points = 8};

static const char *const views[] = {"node", NULL};

const struct option report_option_rows[] = {
	{.letter = 'o',
	 TEXT_OPTION(struct report_options, output, "output", "FILE",
		     "output file (default: report.html; - = standard output)")},
	{TEXT_OPTION(struct report_options, charts, "figures", "DIR",
		     "write every chart as SVG and CSV into this folder; without --output, no page "
		     "is written")},
	{TEXT_OPTION(struct report_options, width, "figure-width", "LENGTH",
		     "width of these figures in print, such as 84mm, 8.4cm, 3.3in or 239pt")},
	{CHOICE_OPTION(struct report_options, by, "by", views, "WHAT",
		       "with the runs that prony show --by node compares")},
	{INT_OPTION(struct report_options, font_points, "figure-font", 4, 24, "POINTS",
		    "size of the letters at that width")},
	{FLAG_OPTION(struct report_options, pdf, "figure-pdf",
		     "write these figures also as PDF, with rsvg-convert (Debian package "
		     "librsvg2-bin)")},
	CLI_OPTION_PUBLIC(struct report_options),
	CLI_OPTION_STORE(struct report_options),
	{.name = NULL},
};

/* Pages of runs with more processes leave their steps out: loading them would take minutes. */
enum { SHOWN_MAX = 3000 };

static enum prony_status load_for_page(struct store *store, const char *which,
				       struct stored_run *run, struct summary *summary,
				       struct error *err)
{
	struct store_reader *reader = NULL;
	int64_t processes = 0;
	enum prony_status status = store_count_processes(store, which, &processes, err);
	if (status == PRONY_OK && processes <= SHOWN_MAX) {
		status = results_load_from(store, which, STORE_INTERVALS | STORE_SERIES, run, err);
		if (status == PRONY_OK)
			summary_init(summary, run);
		return status;
	}
	if (status == PRONY_OK)
		status = store_reader_open(store, which, 0, &reader, err);
	if (status == PRONY_OK)
		status = stream_summary(reader, HTML_SECTIONS_MAX, run, summary, err);
	store_reader_close(reader);
	return status;
}

/* Histories of cells for a page. */
struct histories {
	struct history *items;
	struct stored_run **runs; /* of each item */
	size_t *run_counts;
	size_t count;
};

/* In larger runs nobody looks at a single cell's history. */
enum { CELLS_MAX = 64, RUNS_MAX = 50, PROCESSES_MAX = 1000 };

/* Whether one of the runs has a figure for that cell. */
static bool is_shown(const struct summary *const *summaries, size_t count, const char *hash)
{
	for (size_t run = 0; run < count; run++)
		for (size_t i = 0; i < summaries[run]->count; i++) {
			const struct summary_row *row = &summaries[run]->rows[i];
			if (row->step.n > 0 && row->cell->process_count > 0 &&
			    row->cell->process_count <= PROCESSES_MAX &&
			    !strcmp(row->cell->hash, hash))
				return true;
		}
	return false;
}

/* The newest run with that cell; one of them has it. */
static const struct run_meta *newest_shown(const struct summary *const *summaries, size_t count,
					   const char *hash)
{
	const struct run_meta *newest = NULL;
	for (size_t run = 0; run < count; run++) {
		const struct run_meta *meta = &summaries[run]->run->meta;
		if (is_shown(&summaries[run], 1, hash) &&
		    (!newest || meta->started_wall_ns > newest->started_wall_ns ||
		     (meta->started_wall_ns == newest->started_wall_ns && meta->id > newest->id)))
			newest = meta;
	}
	return newest;
}

static void release_runs(struct stored_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		stored_run_release(&runs[i]);
	free(runs);
}

/* Keeps the history if it reaches back before the newest shown run. */
static void keep(struct histories *histories, struct history *history, struct stored_run *runs,
		 size_t count)
{
	if (history->count < 2) {
		history_release(history);
		release_runs(runs, count);
		return;
	}
	histories->items[histories->count] = *history;
	histories->runs[histories->count] = runs;
	histories->run_counts[histories->count++] = count;
}

static enum prony_status load_one(struct store *store, const struct summary *const *summaries,
				  size_t count, const char *hash, struct histories *out,
				  struct error *err)
{
	struct stored_run *runs = NULL;
	struct history history;
	size_t loaded = 0;
	const struct run_meta *newest = newest_shown(summaries, count, hash);
	const struct history_request request = {
		.hash = hash, .place = newest->node, .until = newest->id, .most = RUNS_MAX};
	enum prony_status status = store_load_history(store, &request, &runs, &loaded, err);
	if (status != PRONY_OK)
		return status;
	history_init(&history, runs, loaded, &change_defaults);
	keep(out, &history, runs, loaded);
	return PRONY_OK;
}

static void histories_release(struct histories *histories)
{
	for (size_t i = 0; i < histories->count; i++) {
		history_release(&histories->items[i]);
		release_runs(histories->runs[i], histories->run_counts[i]);
	}
	free(histories->items);
	free(histories->runs);
	free(histories->run_counts);
}

/* Loads the histories, up to the newest of these runs, of cells that have a figure here and exist
 * in earlier runs of the store: the first CELLS_MAX such cells, each over its last RUNS_MAX runs.
 * After success call histories_release. */
static enum prony_status histories_load(struct store *store, const struct summary *const *summaries,
					size_t count, struct histories *out, struct error *err)
{
	struct histories found = {.count = 0};
	struct cell_name *cells = NULL;
	struct arena arena;
	size_t many = 0;
	arena_init(&arena, 0);
	found.items = memory_alloc(CELLS_MAX * sizeof *found.items);
	found.runs = memory_alloc(CELLS_MAX * sizeof *found.runs);
	found.run_counts = memory_alloc(CELLS_MAX * sizeof *found.run_counts);
	enum prony_status status = store_list_cells(store, &arena, &cells, &many, err);
	for (size_t i = 0; i < many && found.count < CELLS_MAX && status == PRONY_OK; i++)
		if (cells[i].runs > 1 && is_shown(summaries, count, cells[i].hash))
			status = load_one(store, summaries, count, cells[i].hash, &found, err);
	arena_release(&arena);
	if (status == PRONY_OK)
		*out = found;
	else
		histories_release(&found);
	return status;
}

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
	enum prony_status status = results_open(options->store, options->public, &store, err);
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		status = load_for_page(store, names[i], &out->runs[i], &out->summaries[i], err);
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

/* The size of figures: their width in pixels, and of a pixel in print (0: there is none). */
struct figure_size {
	int width;
	double pixel_mm;
};

/* Reads the options of figures. Letters are 12 pixels high. */
static enum prony_status read_size(const struct report_options *options, struct figure_size *size,
				   struct error *err)
{
	static const struct {
		const char *unit;
		double mm;
	} units[] = {{"mm", 1}, {"cm", 10}, {"in", 25.4}, {"pt", 25.4 / 72}};
	enum { LETTER = 12, LEAST = 240, MOST = 4000 };
	double mm = NAN, letter_mm = (double)options->font_points * 25.4 / 72;
	char *end = NULL;
	*size = (struct figure_size){.width = CHART_WIDE};
	if (!options->charts && (options->width || options->pdf))
		return error_set(err, PRONY_USAGE,
				 "--figure-width and --figure-pdf need --figures DIR");
	char *converter = options->pdf ? process_find("rsvg-convert") : NULL;
	if (options->pdf && !converter)
		return error_set(
			err, PRONY_MISSING,
			"--figure-pdf needs rsvg-convert, which is not on PATH: install it "
			"(Debian: apt install librsvg2-bin), or convert the SVG files with "
			"another program");
	free(converter);
	if (!options->width)
		return PRONY_OK;
	double number = strtod(options->width, &end);
	for (size_t i = 0; end && i < sizeof units / sizeof *units; i++)
		if (!strcmp(end, units[i].unit))
			mm = number * units[i].mm;
	if (!(mm > 0 && mm < 10000))
		return error_set(err, PRONY_USAGE,
				 "--figure-width takes a length such as 84mm, 8.4cm, 3.3in or "
				 "239pt, not \"%s\"",
				 options->width);
	size->pixel_mm = letter_mm / LETTER;
	size->width = (int)lround(fmin(mm / size->pixel_mm, MOST + 1));
	if (size->width < LEAST || size->width > MOST)
		return error_set(err, PRONY_USAGE,
				 "figures with letters of %lld points are %.0f to %.0f mm wide: "
				 "choose another --figure-width or --figure-font",
				 options->font_points, ceil(LEAST * size->pixel_mm),
				 floor(MOST * size->pixel_mm));
	size->pixel_mm = mm / size->width;
	return PRONY_OK;
}

static enum prony_status write_svg(struct chart *chart, const struct figure_size *size,
				   const char *path, struct error *err)
{
	struct strbuf text;
	strbuf_init(&text, PAGE_BYTES_MAX);
	chart->pixel_mm = size->pixel_mm;
	strbuf_puts(&text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	chart_svg(chart, size->width, &text);
	strbuf_putc(&text, '\n');
	enum prony_status status = file_write_atomic(path, strbuf_text(&text), text.length, err);
	strbuf_release(&text);
	return status;
}

static enum prony_status write_pdf(const char *svg, const char *path, struct error *err)
{
	enum { OUTPUT_BYTES = 2000 };
	const char *const words[] = {"rsvg-convert", "--format=pdf", "--output", path, svg, NULL};
	const struct process_spec spec = {.argv = words};
	struct process_end end;
	char *output = NULL;
	enum prony_status status =
		process_run(&spec, INT64_C(60000000000), OUTPUT_BYTES, &output, &end, err);
	if (status == PRONY_OK && (end.signalled || end.code != 0 || !file_exists(path)))
		status = error_set(err, PRONY_IO, "rsvg-convert cannot convert %s%s%s", svg,
				   *output ? ": " : "", output);
	free(output);
	return status;
}

static enum prony_status write_chart(struct chart *chart, const struct report_options *options,
				     const struct figure_size *size, struct error *err)
{
	struct strbuf csv;
	char *name = memory_printf("%s/%s", options->charts, chart->name);
	char *paths[] = {memory_printf("%s.svg", name), memory_printf("%s.csv", name),
			 memory_printf("%s.pdf", name)};
	strbuf_init(&csv, PAGE_BYTES_MAX);
	chart_csv(chart, &csv);
	enum prony_status status = write_svg(chart, size, paths[0], err);
	if (status == PRONY_OK)
		status = file_write_atomic(paths[1], strbuf_text(&csv), csv.length, err);
	if (status == PRONY_OK && options->pdf)
		status = write_pdf(paths[0], paths[2], err);
	strbuf_release(&csv);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		free(paths[i]);
	free(name);
	return status;
}

static enum prony_status write_charts(const struct report_runs *runs,
				      const struct report_options *options,
				      const struct figure_size *size, struct error *err)
{
	struct charts charts = {.count = 0};
	enum prony_status status = directory_make(options->charts, err);
	charts_of_runs(runs->borrowed, runs->count, runs->histories.items, runs->histories.count,
		       &charts);
	for (size_t i = 0; i < charts.count && status == PRONY_OK; i++)
		status = write_chart(charts.items[i], options, size, err);
	if (status == PRONY_OK)
		cli_say("figures: %zu in %s, each as SVG%s\n", charts.count, options->charts,
			options->pdf ? ", CSV and PDF" : " and CSV");
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
	struct figure_size size;
	enum prony_status status = read_size(options, &size, err);
	if (status == PRONY_OK && output)
		status = results_check_output(output, options->store, err);
	if (status != PRONY_OK)
		return status;
	status = load(options, names, count, &runs, err);
	if (status == PRONY_OK && output)
		status = write_page(&runs, output, err);
	if (status == PRONY_OK && options->charts)
		status = write_charts(&runs, options, &size, err);
	release(&runs);
	return status;
}

enum prony_status report_page(const char *store, const char *run, const char *output,
			      struct error *err)
{
	const struct report_options options = {.store = store, .output = output};
	return report(&options, &run, 1, err);
}

static enum prony_status report_nodes(const struct report_options *options,
				      const struct cli_call *call, struct error *err)
{
	struct store *store = NULL;
	struct arena arena;
	const char **uids;
	size_t count;
	arena_init(&arena, 0);
	enum prony_status status = store_open(options->store, true, &store, err);
	if (status == PRONY_OK)
		status = show_nodes_runs(store, call->words, call->count, &arena, &uids, &count,
					 err);
	store_close(store);
	if (status == PRONY_OK && count < 2)
		status = error_set(err, PRONY_BAD_INPUT,
				   "nothing to compare: one run; import the stores of other nodes");
	if (status == PRONY_OK)
		status = report(options, uids, count, err);
	arena_release(&arena);
	return status;
}

int command_report(const struct cli_call *call, struct error *err)
{
	const char *newest = "";
	if (report_options.by) {
		report_nodes(&report_options, call, err);
		return 0;
	}
	report(&report_options, call->count ? call->words : &newest, call->count ? call->count : 1,
	       err);
	return 0;
}
