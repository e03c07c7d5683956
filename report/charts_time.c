/* Draws data of intervals and sensors: distribution of step times, load of the cores, drift. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/charts_internal.h"

enum { QUANTILES = 60, LOAD_BINS = 80, LOAD_ROWS_MAX = 16, BLOCKS_MIN = 20 };

static bool is_ok(const struct process_record *process)
{
	return !strcmp(process->status, "ok") && process->intervals;
}

/* Returns the number of steps in the i-th interval of a process; the last interval has the
 * remainder. */
static double steps_of(const struct process_record *process, size_t i)
{
	double each = process->block_steps > 0 ? (double)process->block_steps : 1;
	double left = (double)process->steps - each * (double)i;
	return i + 1 < process->interval_count || !(left > 0) || left > each ? each : left;
}

static double step_ns(const struct process_record *process, size_t i)
{
	const struct step_record *interval = &process->intervals[i];
	return (double)(interval->end_ns - interval->begin_ns) / steps_of(process, i);
}

/* Returns all step times of a cell, sorted; the caller frees. */
static double *pool_steps(const struct stored_cell *cell, size_t *count)
{
	size_t room = 1;
	for (size_t p = 0; p < cell->process_count; p++)
		room += cell->processes[p].interval_count;
	double *steps = memory_alloc(room * sizeof *steps);
	*count = 0;
	for (size_t p = 0; p < cell->process_count; p++) {
		const struct process_record *process = &cell->processes[p];
		for (size_t i = 0; is_ok(process) && i < process->interval_count; i++) {
			double step = step_ns(process, i);
			if (step > 0)
				steps[(*count)++] = step;
		}
	}
	sort_reals(steps, *count);
	return steps;
}

static void add_distribution(struct chart_series *series, const struct stored_cell *cell)
{
	size_t count;
	double *steps = pool_steps(cell, &count);
	for (size_t i = 0; count >= BLOCKS_MIN && i <= QUANTILES; i++) {
		double share = (double)i / QUANTILES;
		size_t at = (size_t)(share * (double)(count - 1) + 0.5);
		series->points[series->count++] =
			(struct chart_point){.x = steps[at], .y = share, .low = NAN, .high = NAN};
	}
	free(steps);
}

/* Adds a series for every row that may show figures; drops the chart if no series has points. */
static void add_all(const struct html_page *page, size_t comparison, struct charts *charts,
		    struct chart *chart)
{
	for (size_t run = 0; run < page->count; run++) {
		size_t count;
		const struct summary_row *rows = html_rows(page, run, comparison, &count);
		for (size_t i = 0; i < count; i++) {
			const char *name = rows[i].cell->cell.framework;
			char label[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4];
			if (rows[i].step.n == 0)
				continue;
			html_row_label(page, run, name, label, sizeof label);
			struct chart_series *series = chart_series(
				charts, chart, label, name, html_colour(page, name), QUANTILES + 1);
			charts_sign(page, run, name, &series->mark, &series->run);
			add_distribution(series, rows[i].cell);
			if (series->count == 0)
				chart->series_count--;
		}
	}
	if (chart->series_count == 0)
		charts_drop(charts);
}

void charts_distribution(const struct html_page *page, size_t comparison, struct charts *charts)
{
	struct chart *chart =
		charts_begin(page, comparison, "Distribution of step times",
			     "Share of the steps that took at most this time, over all processes. "
			     "If blocks were timed, each step counts with its block's mean.",
			     CHART_LINES, html_row_count(page, comparison), charts);
	chart->x = (struct chart_axis){.title = "time per step",
				       .column = "step_ns",
				       .measure = CHART_NS,
				       .logarithmic = true};
	chart->y = (struct chart_axis){.title = "share of steps", .column = "share"};
	chart->y.measure = CHART_PLAIN;
	add_all(page, comparison, charts, chart);
}

/* Returns the core loads of the first process of a cell that has them; NULL if none has. */
static const struct series *find_cores(const struct stored_cell *cell)
{
	for (size_t p = 0; p < cell->process_count; p++) {
		const struct process_record *process = &cell->processes[p];
		const struct series *cores =
			series_find(process->series, process->series_count, "cpu");
		if (cores && cores->count > 1 && cores->channel_count > 0)
			return cores;
	}
	return NULL;
}

/* Adds the rows of a framework: one for each core, or for each group of cores if there are many. */
static void add_cores(const struct series *cores, const char *framework, const char *colour,
		      double end_ns, struct charts *charts, struct chart *chart)
{
	size_t each = (cores->channel_count + LOAD_ROWS_MAX - 1) / LOAD_ROWS_MAX;
	char label[CELL_WORD_BYTES + 2 * SERIES_WORD_BYTES + 4];
	int64_t begin_ns = cores->times_ns[0];
	for (size_t c = 0; c < cores->channel_count; c += each) {
		size_t last = c + each < cores->channel_count ? c + each : cores->channel_count;
		double *cells = arena_array(&charts->arena, LOAD_BINS, sizeof *cells);
		snprintf(label, sizeof label, each > 1 ? "%s %s-%s" : "%s %s", framework,
			 cores->channels[c], cores->channels[last - 1]);
		struct chart_row *row = chart_row(charts, chart, label, framework, colour);
		row->cells = cells;
		row->cell_count = LOAD_BINS;
		for (size_t bin = 0; bin < LOAD_BINS; bin++) {
			int64_t from = begin_ns + (int64_t)(end_ns * (double)bin / LOAD_BINS);
			int64_t to = begin_ns + (int64_t)(end_ns * (double)(bin + 1) / LOAD_BINS);
			double sum = 0;
			for (size_t k = c; k < last; k++)
				sum += series_over(cores, k, from, to).mean;
			cells[bin] = sum / (double)(last - c);
		}
	}
}

void charts_load(const struct html_page *page, size_t comparison, struct charts *charts)
{
	double end_ns = 0;
	size_t count, room = 0;
	if (page->count != 1)
		return;
	const struct summary_row *rows = html_rows(page, 0, comparison, &count);
	for (size_t i = 0; i < count; i++) {
		const struct series *cores = find_cores(rows[i].cell);
		if (!cores || rows[i].step.n == 0)
			continue;
		end_ns = fmax(end_ns,
			      (double)(cores->times_ns[cores->count - 1] - cores->times_ns[0]));
		room += LOAD_ROWS_MAX;
	}
	if (!(end_ns > 0))
		return;
	struct chart *chart = charts_begin(
		page, comparison, "Load of each core",
		"One process of each framework, from start to end. Darker means a busier core.",
		CHART_HEAT, room, charts);
	chart->x = (struct chart_axis){.title = "time since the process started",
				       .column = "time_ns",
				       .measure = CHART_NS};
	chart->y = (struct chart_axis){.title = "load", .column = "load"};
	chart->heat_end = end_ns;
	for (size_t i = 0; i < count; i++) {
		const struct series *cores = find_cores(rows[i].cell);
		if (cores && rows[i].step.n > 0)
			add_cores(cores, rows[i].cell->cell.framework,
				  html_colour(page, rows[i].cell->cell.framework), end_ns, charts,
				  chart);
	}
}

/* Adds points of a framework's processes over the run, at most a fixed number. */
static void add_processes(const struct summary *summary, const char *framework, int64_t begin_ns,
			  size_t stride, struct chart_series *series)
{
	size_t seen = 0;
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (row->step.n == 0 || strcmp(row->cell->cell.framework, framework) != 0)
			continue;
		for (size_t p = 0; p < row->cell->process_count; p++) {
			const struct process_record *process = &row->cell->processes[p];
			if (strcmp(process->status, "ok") != 0 ||
			    process->started_wall_ns == RECORD_NONE ||
			    !(process->step_mean_ns > 0) || seen++ % stride != 0)
				continue;
			series->points[series->count++] = (struct chart_point){
				.x = (double)(process->started_wall_ns - begin_ns),
				.y = process->step_mean_ns / row->step.center,
				.low = NAN,
				.high = NAN};
		}
	}
}

void charts_run_drift(const struct html_page *page, size_t run, struct charts *charts)
{
	enum { POINTS_MAX = 400 };
	const struct summary *summary = page->summaries[run];
	int64_t begin_ns = INT64_MAX;
	size_t processes = 0;
	bool some = false; /* only some processes are stored: in large runs few cells keep theirs */
	char name[HTML_LABEL_BYTES + 32];
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		some = some || cell->process_count < summary->rows[i].disturbances.all;
		for (size_t p = 0; p < cell->process_count; p++) {
			int64_t at = cell->processes[p].started_wall_ns;
			processes++;
			if (at != RECORD_NONE && at < begin_ns)
				begin_ns = at;
		}
	}
	if (processes < 6 || begin_ns == INT64_MAX)
		return;
	snprintf(name, sizeof name, "Drift over the run%s%s", page->count > 1 ? ": " : "",
		 page->count > 1 ? page->labels[run] : "");
	struct chart *chart = charts_add(
		charts, CHART_LINES, name, name,
		some ? "Step time of each process, divided by its cell's, over the time of the "
		       "run. A change of all frameworks at the same time comes from the machine. "
		       "Only the first comparisons are shown."
		     : "Step time of each process, divided by its cell's, over the time of the "
		       "run. A change of all frameworks at the same time comes from the machine.",
		page->framework_count);
	chart->x = (struct chart_axis){
		.title = "time since the first process", .column = "time_ns", .measure = CHART_NS};
	chart->y = (struct chart_axis){.title = "step time / its cell's",
				       .column = "ratio",
				       .measure = CHART_PLAIN,
				       .logarithmic = true};
	chart->reference = 1;
	for (size_t k = 0; k < page->framework_count; k++) {
		struct chart_series *series =
			chart_series(charts, chart, page->frameworks[k], page->frameworks[k],
				     html_colour(page, page->frameworks[k]),
				     POINTS_MAX + processes / (processes / POINTS_MAX + 1));
		series->joined = false;
		charts_sign(page, 0, page->frameworks[k], &series->mark, &series->run);
		add_processes(summary, page->frameworks[k], begin_ns, processes / POINTS_MAX + 1,
			      series);
		if (series->count == 0)
			chart->series_count--;
	}
	if (chart->series_count == 0)
		charts_drop(charts);
}
