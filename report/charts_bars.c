/* Charts of one comparison whose rows are frameworks: step time, start-up, memory, power. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/charts_internal.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Phases up to the end of the first step, in order. The last one is the time that no other phase
 * covers, so that the bar ends at the whole start-up time. */
static const struct {
	const char *field;
	struct chart_part part;
} phases[] = {
	{"spawn_ns", {"start process", "#808690"}}, {"import_ns", {"load framework", "#1f7fc4"}},
	{"open_ns", {"open device", "#0f8f8f"}},    {"build_ns", {"build and compile", "#b57600"}},
	{"feed_ns", {"feed batches", "#3d9140"}},   {"first_step_ns", {"first step", "#d0312d"}},
	{NULL, {"between requests", "#a35fb0"}},
};

/* Step time of a framework's fastest run; infinite when it has no rank in any. */
static double best_step(const struct html_page *page, size_t comparison, size_t framework)
{
	double best = INFINITY;
	for (size_t run = 0; run < page->count; run++) {
		const struct summary_row *row =
			html_find(page, run, comparison, page->frameworks[framework]);
		if (row && row->comparable && row->step.center < best)
			best = row->step.center;
	}
	return best;
}

/* Frameworks sorted by their best step; those without a step come last. The caller frees. */
static size_t *order_frameworks(const struct html_page *page, size_t comparison)
{
	size_t *order = memory_alloc((page->framework_count + 1) * sizeof *order);
	double *best = memory_alloc((page->framework_count + 1) * sizeof *best);
	for (size_t i = 0; i < page->framework_count; i++) {
		best[i] = best_step(page, comparison, i);
		size_t at = i;
		for (; at > 0 && best[i] < best[order[at - 1]]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	free(best);
	return order;
}

/* Called for the rows of a comparison that have figures, the fastest framework first, each one's
 * runs side by side. */
typedef void visit_row(const struct html_page *page, size_t run, const struct summary_row *row,
		       struct charts *charts, struct chart *chart);

static struct chart *draw_rows(const struct html_page *page, size_t comparison,
			       struct charts *charts, struct chart *chart, visit_row *visit)
{
	size_t *order = order_frameworks(page, comparison);
	for (size_t i = 0; i < page->framework_count; i++) {
		const char *name = page->frameworks[order[i]];
		for (size_t run = 0; run < page->count; run++) {
			const struct summary_row *row = html_find(page, run, comparison, name);
			if (row && row->step.n > 0)
				visit(page, run, row, charts, chart);
		}
	}
	free(order);
	if (chart->row_count > 0)
		return chart;
	charts_drop(charts);
	return NULL;
}

static struct chart *start(const struct html_page *page, size_t comparison, const char *what,
			   const char *caption, enum chart_kind kind, struct charts *charts)
{
	return charts_begin(page, comparison, what, caption, kind,
			    page->framework_count * page->count, charts);
}

/* Returns the step means of the ok processes, in the arena. */
static const double *step_means(struct arena *arena, const struct stored_cell *cell, size_t *count)
{
	double *means = arena_array(arena, cell->process_count + 1, sizeof *means);
	*count = 0;
	for (size_t i = 0; i < cell->process_count; i++) {
		const struct process_record *process = &cell->processes[i];
		if (!strcmp(process->status, "ok") && isfinite(process->step_mean_ns) &&
		    process->step_mean_ns > 0)
			means[(*count)++] = process->step_mean_ns;
	}
	return means;
}

static void add_step_row(const struct html_page *page, size_t run, const struct summary_row *row,
			 struct charts *charts, struct chart *chart)
{
	char percent[FORMAT_BYTES];
	struct chart_row *bar = charts_bar(page, run, row, FIGURE_STEP, charts, chart);
	bool sure = isfinite(row->step.half_width);
	format_percent(row->step.half_width, percent, sizeof percent);
	bar->cells = step_means(&charts->arena, row->cell, &bar->cell_count);
	bar->text = arena_printf(&charts->arena, "%s%s%s%s", bar->text, sure ? " \xC2\xB1" : "",
				 sure ? percent : "", row->comparable ? "" : ", not ranked");
}

void charts_steps(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart =
		start(page, comparison, "Step time",
		      "Bars: geometric mean of the process means. Whiskers: its 95 % interval (an "
		      "arrow: it continues). Dots: processes. Dashed line: native.",
		      CHART_BARS, charts);
	chart->x = charts_axis(charts, FIGURE_STEP);
	chart = draw_rows(page, comparison, charts, chart, add_step_row);
	if (!chart || page->count > 1)
		return;
	const struct summary_row *floor = html_find(page, 0, comparison, "native");
	if (floor && floor->comparable)
		chart->reference = floor->step.center;
}

/* Returns a phase's median; the last phase is the time that no other phase covers. */
static double phase_ns(const struct summary_row *row, size_t phase)
{
	if (phases[phase].field)
		return replicates_median(row->cell, phases[phase].field);
	double rest = row->to_first_step_ns;
	for (size_t i = 0; i < COUNT(phases); i++) {
		double known =
			phases[i].field ? replicates_median(row->cell, phases[i].field) : NAN;
		rest -= isfinite(known) ? known : 0;
	}
	return rest > 0 ? rest : NAN;
}

static void add_start_row(const struct html_page *page, size_t run, const struct summary_row *row,
			  struct charts *charts, struct chart *chart)
{
	char text[FORMAT_BYTES];
	double *parts = arena_array(&charts->arena, COUNT(phases), sizeof *parts), sum = 0;
	/* In large runs only few cells keep their processes; without processes, all time would
	 * appear as the last phase. */
	if (row->cell->process_count == 0)
		return;
	for (size_t i = 0; i < COUNT(phases); i++) {
		parts[i] = phase_ns(row, i);
		sum += isfinite(parts[i]) ? parts[i] : 0;
	}
	if (!(sum > 0))
		return;
	struct chart_row *bar = charts_row(page, run, row->cell->cell.framework, charts, chart);
	format_duration_within(sum, NAN, text, sizeof text);
	bar->value = sum;
	bar->cells = parts;
	bar->cell_count = COUNT(phases);
	bar->text = arena_strdup(&charts->arena, text);
}

void charts_start_up(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart = start(page, comparison, "Start-up",
				    "Median time of each phase up to the end of the first step.",
				    CHART_STACKS, charts);
	chart->x = (struct chart_axis){.title = "time to the end of the first step",
				       .column = "sum_ns",
				       .measure = CHART_NS};
	chart->parts = arena_array(&charts->arena, COUNT(phases), sizeof *chart->parts);
	chart->part_count = COUNT(phases);
	for (size_t i = 0; i < COUNT(phases); i++)
		chart->parts[i] = phases[i].part;
	draw_rows(page, comparison, charts, chart, add_start_row);
}

/* Adds a bar for a median over processes, and a dot for each process. */
static void add_median(const struct html_page *page, size_t run, const struct summary_row *row,
		       enum figure_id id, double (*of)(const struct process_record *process),
		       struct charts *charts, struct chart *chart)
{
	if (!isfinite(figure_value(id, row).value))
		return;
	struct chart_row *bar = charts_bar(page, run, row, id, charts, chart);
	double *dots = arena_array(&charts->arena, row->cell->process_count + 1, sizeof *dots);
	for (size_t i = 0; i < row->cell->process_count; i++) {
		const struct process_record *process = &row->cell->processes[i];
		if (!strcmp(process->status, "ok") && isfinite(of(process)))
			dots[bar->cell_count++] = of(process);
	}
	bar->cells = dots;
}

static double peak_of(const struct process_record *process)
{
	return process->rss_peak_bytes == RECORD_NONE ? NAN : (double)process->rss_peak_bytes;
}

static void add_memory_row(const struct html_page *page, size_t run, const struct summary_row *row,
			   struct charts *charts, struct chart *chart)
{
	add_median(page, run, row, FIGURE_MEMORY, peak_of, charts, chart);
}

static double power_of(const struct process_record *process)
{
	return process->power_mean_window;
}

static void add_power_row(const struct html_page *page, size_t run, const struct summary_row *row,
			  struct charts *charts, struct chart *chart)
{
	add_median(page, run, row, FIGURE_WATTS, power_of, charts, chart);
}

void charts_memory(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart = start(page, comparison, "Memory",
				    "Largest resident set of the worker's process tree. Bars: "
				    "medians over processes. Dots: processes.",
				    CHART_BARS, charts);
	chart->x = charts_axis(charts, FIGURE_MEMORY);
	draw_rows(page, comparison, charts, chart, add_memory_row);
}

void charts_power(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart =
		start(page, comparison, "Power",
		      "Mean power of all processor packages in the window, by their counters; it "
		      "includes other programs. Bars: medians over processes. Dots: processes.",
		      CHART_BARS, charts);
	chart->x = charts_axis(charts, FIGURE_WATTS);
	draw_rows(page, comparison, charts, chart, add_power_row);
}
