/* The charts of a study of several devices. For each case (network and data set) they show speed,
 * memory, power and the speed-up of each device. Frameworks are grouped by device; prony's
 * measurements come first, then the published ones. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/charts_internal.h"
#include "report/costs.h"
#include "report/published.h"

enum metric { METRIC_SPEED, METRIC_MEMORY, METRIC_POWER, METRIC_SPEED_UP, METRIC_COUNT };

static const struct {
	const char *name, *published, *caption;
	enum figure_id figure; /* the figure that gives the axis and the texts */
} metrics[METRIC_COUNT] = {
	[METRIC_SPEED] =
		{"Speed by device", "images_per_second",
		 "Samples per second. Solid: measured here, with 95 % intervals. Faint: published.",
		 FIGURE_SAMPLES},
	[METRIC_MEMORY] = {"Memory by device", "gpu_memory_mib",
			   "Published: memory of the GPUs. Measured here: memory in use on the GPU "
			   "less what was in use before; on a CPU the largest resident set of the "
			   "worker's process tree, which is not comparable.",
			   FIGURE_MEMORY},
	[METRIC_POWER] = {"Power by device", "gpu_power_w",
			  "Published: power of the GPUs (for a CPU: of its idle GPUs). Measured "
			  "here: power of the GPU in the window; for a CPU of the processor "
			  "packages, if they have counters.",
			  FIGURE_WATTS},
	[METRIC_SPEED_UP] =
		{"Speed-up by device", "images_per_second",
		 "Samples per second, divided by those of the same framework on the CPU.",
		 FIGURE_FLOOR},
};

static const struct chart_axis speed_up = {
	.title = "times as fast as on the CPU", .column = "speed_up", .measure = CHART_PLAIN};

/* The data of one case's charts. */
struct study {
	const struct html_page *page;
	const struct cell *cell; /* a cell of the case */
	const char *suite;
	enum metric metric;
	struct charts *charts;
	struct chart *chart;
	size_t known, theirs; /* number of values; number of published rows */
};

static bool is_of_case(const struct study *s, const struct cell *cell)
{
	return !strcmp(s->cell->network, cell->network) && s->cell->stage == cell->stage &&
	       !strcmp(s->cell->dataset, cell->dataset);
}

static void add_heading(struct study *s, const char *text)
{
	chart_row(s->charts, s->chart, text, "", "#000000")->heading = true;
}

static const char *value_text(struct study *s, double value)
{
	char text[FORMAT_BYTES];
	figure_format(figures[metrics[s->metric].figure].unit, value, NAN, text);
	return arena_strdup(&s->charts->arena, text);
}

/* Returns the row of the same framework on the CPU; NULL if none has figures. */
static const struct summary_row *find_on_cpu(const struct study *s, size_t run,
					     const char *framework)
{
	for (size_t c = 0; c < s->page->comparison_count; c++) {
		const struct cell *cell = s->page->comparisons[c];
		const struct summary_row *row = html_find(s->page, run, c, framework);
		if (row && row->step.n > 0 && device_is_cpu(cell->device) && is_of_case(s, cell))
			return row;
	}
	return NULL;
}

static double our_value(const struct study *s, size_t run, const struct summary_row *row)
{
	const struct cell *cell = &row->cell->cell;
	const struct summary_row *cpu;
	switch (s->metric) {
	case METRIC_SPEED:
		return figure_value(FIGURE_SAMPLES, row).value;
	case METRIC_MEMORY:
		return device_is_cpu(cell->device) ? row->rss_peak_bytes : row->costs.gpu_memory;
	case METRIC_POWER:
		return device_is_cpu(cell->device) ? replicates_median(row->cell, "power_mean_run")
						   : row->costs.gpu_watts;
	default:
		cpu = find_on_cpu(s, run, cell->framework);
		return cpu ? figure_value(FIGURE_SAMPLES, row).value /
				       figure_value(FIGURE_SAMPLES, cpu).value
			   : NAN;
	}
}

static void add_our_row(struct study *s, size_t run, const struct summary_row *row)
{
	const char *name = row->cell->cell.framework;
	struct chart_row *bar =
		chart_row(s->charts, s->chart, name, name, html_colour(s->page, name));
	double value = row->step.n > 0 ? our_value(s, run, row) : NAN;
	if (!isfinite(value)) {
		bar->text = row->cell->status == CELL_OK ? "not measured"
							 : cell_status_name(row->cell->status);
		return;
	}
	bar->value = value;
	bar->text = row->comparable ? value_text(s, value)
				    : arena_printf(&s->charts->arena, "%s, not ranked",
						   value_text(s, value));
	if (s->metric == METRIC_SPEED) {
		bar->low = figure_value(FIGURE_SAMPLES, row).low;
		bar->high = figure_value(FIGURE_SAMPLES, row).high;
	}
	s->known++;
}

/* Returns ": not measured" and the reason. */
static const char *not_measured(const struct study *s, const struct summary_row *rows, size_t count)
{
	struct strbuf text;
	bool known = false;
	strbuf_init(&text, 0);
	strbuf_puts(&text, ": not measured, ");
	for (size_t i = 0; i < count && s->metric == METRIC_POWER && !known; i++)
		known = costs_power_reason(rows[i].cell, &text);
	const char *said =
		known ? arena_strdup(&s->charts->arena, strbuf_text(&text)) : ": not measured";
	strbuf_release(&text);
	return said;
}

/* Adds prony's rows of one device, or one line if nothing is known. */
static void add_our_device(struct study *s, size_t run, size_t comparison)
{
	size_t count, known = 0;
	const struct summary_row *rows = html_rows(s->page, run, comparison, &count);
	const struct cell *cell = s->page->comparisons[comparison];
	if (count == 0 || (s->metric == METRIC_SPEED_UP && device_is_cpu(cell->device)))
		return;
	for (size_t i = 0; i < count; i++)
		known += rows[i].step.n > 0 && isfinite(our_value(s, run, &rows[i]));
	add_heading(s, arena_printf(&s->charts->arena, "%s, %s, batch %lld%s", cell->device,
				    s->page->count > 1 ? s->page->labels[run] : "here",
				    (long long)cell->batch,
				    known == 0 ? not_measured(s, rows, count)
				    : s->metric == METRIC_MEMORY && device_is_cpu(cell->device)
					    ? ": main memory"
					    : ""));
	for (size_t i = 0; i < count && known > 0; i++)
		if (!rows[i].folded)
			add_our_row(s, run, &rows[i]);
}

static bool is_published(const struct study *s, const struct published_row *row)
{
	return !strcmp(row->suite, s->suite) && !strcmp(row->network, s->cell->network) &&
	       !strcmp(row->stage, stage_name(s->cell->stage)) &&
	       !strcmp(row->metric, metrics[s->metric].published);
}

/* Returns the published value of the same framework on the CPU; NaN if not available. */
static double published_on_cpu(const struct study *s, const struct published_row *of)
{
	const struct published *published = &s->page->published;
	for (size_t i = 0; i < published->count; i++) {
		const struct published_row *row = &published->rows[i];
		if (is_published(s, row) && device_is_cpu(row->device) &&
		    !strcmp(row->framework, of->framework))
			return row->value;
	}
	return NAN;
}

static void add_published_row(struct study *s, const struct published_row *row)
{
	double value = row->value;
	if (s->metric == METRIC_MEMORY)
		value *= 0x1p20;
	if (s->metric == METRIC_SPEED_UP)
		value /= published_on_cpu(s, row);
	struct chart_row *bar = chart_row(s->charts, s->chart, row->framework, row->framework,
					  html_colour(s->page, row->framework));
	bar->faint = true;
	bar->text = isfinite(value) ? value_text(s, value) : "not available";
	bar->value = value;
	s->known += isfinite(value) ? 1 : 0;
	s->theirs++;
}

/*
 * Adds all published rows of the device of row `first`, unless an earlier row already added them.
 */
static void add_published_device(struct study *s, size_t first)
{
	const struct published *published = &s->page->published;
	const struct published_row *row = &published->rows[first];
	for (size_t i = 0; i < first; i++)
		if (is_published(s, &published->rows[i]) &&
		    !strcmp(published->rows[i].device, row->device))
			return;
	if (s->metric == METRIC_SPEED_UP && device_is_cpu(row->device))
		return;
	add_heading(s, arena_printf(&s->charts->arena, "%s, %s, batch %lld%s", row->year,
				    row->hardware, (long long)row->batch,
				    s->metric == METRIC_POWER && device_is_cpu(row->device)
					    ? ": its GPU, idle"
					    : ""));
	for (size_t i = first; i < published->count; i++)
		if (is_published(s, &published->rows[i]) &&
		    !strcmp(published->rows[i].device, row->device))
			add_published_row(s, &published->rows[i]);
}

/* Returns the largest number of rows and headings that a chart may get. */
static size_t room_of(const struct html_page *page)
{
	size_t room = 2 * page->published.count;
	for (size_t c = 0; c < page->comparison_count; c++)
		room += html_row_count(page, c) + page->count;
	return room;
}

static void add_chart(struct study *s)
{
	const struct html_page *page = s->page;
	struct strbuf name, caption;
	strbuf_init(&name, 0);
	strbuf_init(&caption, 0);
	strbuf_printf(&name, "%s: %s, %s", metrics[s->metric].name, s->cell->network,
		      s->cell->dataset);
	strbuf_puts(&caption, metrics[s->metric].caption);
	for (size_t run = 0; run < page->count; run++)
		if (!strcmp(page->summaries[run]->run->meta.effort, "quick")) {
			strbuf_puts(&caption,
				    " The measured ones are from a quick run with less work.");
			break;
		}
	s->chart = charts_add(s->charts, CHART_BARS, strbuf_text(&name), strbuf_text(&name),
			      strbuf_text(&caption), room_of(page));
	s->chart->x = s->metric == METRIC_SPEED_UP
			      ? speed_up
			      : charts_axis(s->charts, metrics[s->metric].figure);
	s->known = s->theirs = 0;
	for (size_t c = 0; c < page->comparison_count; c++)
		for (size_t run = 0; run < page->count && is_of_case(s, page->comparisons[c]);
		     run++)
			add_our_device(s, run, c);
	for (size_t i = 0; i < page->published.count; i++)
		if (is_published(s, &page->published.rows[i]))
			add_published_device(s, i);
	if (s->known == 0 || s->theirs == 0)
		charts_drop(s->charts);
	strbuf_release(&name);
	strbuf_release(&caption);
}

bool charts_is_study(const struct html_page *page)
{
	const struct published *published = &page->published;
	const char *suite = page->count > 0 ? page->summaries[0]->run->meta.suite : "";
	for (size_t i = 0; i < published->count; i++)
		if (!strcmp(published->rows[i].suite, suite) &&
		    !strcmp(published->rows[i].metric, metrics[METRIC_MEMORY].published))
			return true;
	return false;
}

void charts_study(const struct html_page *page, struct charts *charts)
{
	struct study s = {.page = page, .charts = charts};
	if (!charts_is_study(page))
		return;
	s.suite = page->summaries[0]->run->meta.suite;
	for (size_t c = 0; c < page->comparison_count; c++) {
		bool seen = false;
		s.cell = page->comparisons[c];
		for (size_t before = 0; before < c; before++)
			seen |= is_of_case(&s, page->comparisons[before]);
		for (int metric = 0; metric < METRIC_COUNT && !seen; metric++) {
			s.metric = (enum metric)metric;
			add_chart(&s);
		}
	}
}
