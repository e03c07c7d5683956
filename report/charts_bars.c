/* Charts whose rows are frameworks: ratio to native, start-up, memory, power. */
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

/* A framework's least ratio over the runs; infinite if it has none. */
static double best_ratio(const struct html_page *page, size_t comparison, size_t framework)
{
	enum figure_id id = html_ratio(page, comparison);
	double best = INFINITY;
	for (size_t run = 0; run < page->count; run++) {
		const struct summary_row *row =
			html_find(page, run, comparison, page->frameworks[framework]);
		if (row)
			best = fmin(best, figure_value(id, row).value);
	}
	return best;
}

/* Frameworks sorted by their best ratio; those without one come last. The caller frees. */
static size_t *order_frameworks(const struct html_page *page, size_t comparison)
{
	size_t *order = memory_alloc((page->framework_count + 1) * sizeof *order);
	double *best = memory_alloc((page->framework_count + 1) * sizeof *best);
	for (size_t i = 0; i < page->framework_count; i++) {
		best[i] = best_ratio(page, comparison, i);
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

static void draw_rows(const struct html_page *page, size_t comparison, struct charts *charts,
		      struct chart *chart, visit_row *visit)
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
}

/* The same for all rows of the last chart, which is dropped if there are fewer than `least`: one
 * bar has nothing to be compared with. */
static void draw_or_drop(const struct html_page *page, size_t comparison, struct charts *charts,
			 struct chart *chart, visit_row *visit, size_t least)
{
	draw_rows(page, comparison, charts, chart, visit);
	if (chart->row_count < least)
		charts_drop(charts);
}

static struct chart *start(const struct html_page *page, size_t comparison, const char *what,
			   const char *caption, enum chart_kind kind, struct charts *charts)
{
	return charts_begin(page, comparison, what, caption, kind,
			    page->framework_count * page->count, charts);
}

/* Returns the row with the ratio 1 in a run. */
static const struct summary_row *find_reference(const struct html_page *page, size_t run,
						const struct summary_row *row, enum figure_id id)
{
	const struct summary *summary = page->summaries[run];
	for (size_t i = summary->first[row->comparison]; i < summary->first[row->comparison + 1];
	     i++)
		if (summary->rows[i].comparable && figure_value(id, &summary->rows[i]).itself)
			return &summary->rows[i];
	return NULL;
}

/* Adds the ok processes as dots: their step means, divided by the step of the reference. */
static void add_processes(struct arena *arena, const struct stored_cell *cell, double reference_ns,
			  struct chart_row *mark)
{
	double *ratios = arena_array(arena, cell->process_count + 1, sizeof *ratios);
	for (size_t i = 0; i < cell->process_count; i++) {
		const struct process_record *process = &cell->processes[i];
		if (!strcmp(process->status, "ok") && isfinite(process->step_mean_ns) &&
		    process->step_mean_ns > 0)
			ratios[mark->cell_count++] = process->step_mean_ns / reference_ns;
	}
	mark->cells = ratios;
}

static void add_ratio_row(const struct html_page *page, size_t run, const struct summary_row *row,
			  enum figure_id id, struct charts *charts, struct chart *chart)
{
	const struct summary_row *reference = find_reference(page, run, row, id);
	char step[FORMAT_BYTES];
	struct strbuf attributes;
	if (!reference)
		return;
	struct chart_row *mark = charts_bar(page, run, row, id, charts, chart);
	add_processes(&charts->arena, row->cell, reference->step.center, mark);
	figure_text(FIGURE_STEP, row, step);
	if (row->comparable)
		mark->text = arena_printf(&charts->arena, "%s, %s", mark->text, step);
	else
		mark->text = arena_printf(&charts->arena, "%s, not ranked", step);
	if (!row->comparable)
		mark->value = row->step.center / reference->step.center;
	strbuf_init(&attributes, 0);
	html_attributes(&row->cell->cell, true, &attributes);
	mark->attributes = arena_strdup(&charts->arena, strbuf_text(&attributes));
	strbuf_release(&attributes);
}
static void add_floor_row(const struct html_page *page, size_t run, const struct summary_row *row,
			  struct charts *charts, struct chart *chart)
{
	add_ratio_row(page, run, row, FIGURE_FLOOR, charts, chart);
}

static void add_lead_row(const struct html_page *page, size_t run, const struct summary_row *row,
			 struct charts *charts, struct chart *chart)
{
	add_ratio_row(page, run, row, FIGURE_LEAD, charts, chart);
}

/* Adds a comparison's rows, below a heading if the chart has several comparisons. */
static void add_ratios(const struct html_page *page, size_t comparison, bool headed,
		       struct charts *charts, struct chart *chart)
{
	char title[CELL_KEY_BYTES];
	struct strbuf attributes;
	size_t before = chart->row_count + headed;
	if (headed) {
		html_work(page, page->comparisons[comparison], title, sizeof title);
		struct chart_row *heading = chart_row(charts, chart, title, "", "#000000");
		strbuf_init(&attributes, 0);
		html_attributes(page->comparisons[comparison], false, &attributes);
		heading->heading = true;
		heading->attributes = arena_strdup(&charts->arena, strbuf_text(&attributes));
		strbuf_release(&attributes);
	}
	draw_rows(page, comparison, charts, chart,
		  html_ratio(page, comparison) == FIGURE_FLOOR ? add_floor_row : add_lead_row);
	/* One framework has nothing to be compared with. */
	if (chart->row_count < before + 2)
		chart->row_count = before - headed;
}

/* Begins the chart of the ratios, with room for `room` rows. */
static struct chart *begin_ratios(const struct html_page *page, size_t comparison, bool alone,
				  size_t room, struct charts *charts)
{
	enum figure_id id = html_ratio(page, comparison);
	bool floor = id == FIGURE_FLOOR;
	const char *what = floor ? "Ratio to native" : "Ratio to the fastest";
	const char *text = arena_printf(
		&charts->arena,
		"Step time divided by %s: right of the line is slower. Marks: ratios. Whiskers: "
		"their 95 %% intervals (an arrow: it continues). Dots: processes.",
		floor ? "native's" : "that of the fastest");
	struct chart *chart =
		alone ? charts_begin(page, comparison, what, text, CHART_FOREST, room, charts)
		      : charts_add(charts, CHART_FOREST, what, what, text, room);
	chart->x = charts_axis(charts, id);
	chart->x.logarithmic = true;
	chart->reference = 1;
	return chart;
}

void charts_ratios(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart =
		begin_ratios(page, comparison, true, page->framework_count * page->count, charts);
	add_ratios(page, comparison, false, charts, chart);
	if (chart->row_count == 0)
		charts_drop(charts);
}

bool charts_are_few(const struct html_page *page)
{
	enum { COMPARISONS_MAX = 4, ROWS_MAX = 24 };
	size_t rows = 0;
	if (page->comparison_count > COMPARISONS_MAX)
		return false;
	for (size_t c = 0; c < page->comparison_count; c++) {
		if (html_ratio(page, c) != html_ratio(page, 0))
			return false;
		for (size_t run = 0; run < page->count; run++) {
			size_t count;
			const struct summary_row *row = html_rows(page, run, c, &count);
			for (; count > 0; count--, row++)
				rows += row->step.n > 0;
		}
	}
	return rows <= ROWS_MAX;
}

void charts_all_ratios(const struct html_page *page, struct charts *charts)
{
	size_t count = page->comparison_count;
	if (count == 0)
		return;
	if (count == 1) {
		charts_ratios(page, 0, charts);
		return;
	}
	struct chart *chart = begin_ratios(
		page, 0, false, count * (page->framework_count * page->count + 1), charts);
	for (size_t c = 0; c < count; c++)
		add_ratios(page, c, true, charts, chart);
	if (chart->row_count == 0)
		charts_drop(charts);
}

/* Returns a phase's median; the last phase is the time that no other phase covers. */
static double phase_ns(const struct summary_row *row, size_t phase)
{
	if (phases[phase].field)
		return replicates_median(row->cell, phases[phase].field);
	double rest = row->to_first_step_ns.median;
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
	draw_or_drop(page, comparison, charts, chart, add_start_row, 1);
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

static double gpu_memory_of(const struct process_record *process)
{
	return process->gpu_memory_max_window - process->gpu_memory_before;
}

static void add_gpu_memory_row(const struct html_page *page, size_t run,
			       const struct summary_row *row, struct charts *charts,
			       struct chart *chart)
{
	add_median(page, run, row, FIGURE_GPU_MEMORY, gpu_memory_of, charts, chart);
}

static double gpu_power_of(const struct process_record *process)
{
	return process->gpu_power_window;
}

static void add_gpu_power_row(const struct html_page *page, size_t run,
			      const struct summary_row *row, struct charts *charts,
			      struct chart *chart)
{
	add_median(page, run, row, FIGURE_GPU_WATTS, gpu_power_of, charts, chart);
}

void charts_gpu(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart = start(page, comparison, "GPU memory",
				    "Memory in use on the cell's GPUs in the window, less what was "
				    "in use before. Bars: medians over processes. Dots: processes.",
				    CHART_BARS, charts);
	chart->x = charts_axis(charts, FIGURE_GPU_MEMORY);
	draw_or_drop(page, comparison, charts, chart, add_gpu_memory_row, 2);
	chart = start(page, comparison, "GPU power",
		      "Mean power of the cell's GPUs in the window. Bars: medians over processes. "
		      "Dots: processes.",
		      CHART_BARS, charts);
	chart->x = charts_axis(charts, FIGURE_GPU_WATTS);
	draw_or_drop(page, comparison, charts, chart, add_gpu_power_row, 2);
}

void charts_memory(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart = start(page, comparison, "Memory",
				    "Largest resident set of the worker's process tree. Bars: "
				    "medians over processes. Dots: processes.",
				    CHART_BARS, charts);
	chart->x = charts_axis(charts, FIGURE_MEMORY);
	draw_or_drop(page, comparison, charts, chart, add_memory_row, 2);
}

void charts_power(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart =
		start(page, comparison, "Power",
		      "Mean power of all processor packages in the window, by their counters; it "
		      "includes other programs. Bars: medians over processes. Dots: processes.",
		      CHART_BARS, charts);
	chart->x = charts_axis(charts, FIGURE_WATTS);
	draw_or_drop(page, comparison, charts, chart, add_power_row, 2);
}
