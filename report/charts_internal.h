/* Functions that build charts from results; private to report/charts*.c and html*.c. */
#ifndef PRONY_REPORT_CHARTS_INTERNAL_H
#define PRONY_REPORT_CHARTS_INTERNAL_H

#include "report/chart.h"
#include "report/figures.h"
#include "report/html_internal.h"

/* Begins a chart of a comparison, titled "WHAT: comparison title", with room for rows or series. */
struct chart *charts_begin(const struct html_page *page, size_t comparison, const char *what,
			   const char *caption, enum chart_kind kind, size_t room,
			   struct charts *charts);
/* Returns the axis of a figure, titled as in "step time, less is better". */
struct chart_axis charts_axis(struct charts *charts, enum figure_id id);
/* Chooses the mark of a framework, which no other one of the page has, as long as there are enough
 * of them, and the style of its lines and marks in a run. */
void charts_sign(const struct html_page *page, size_t run, const char *framework, unsigned *mark,
		 unsigned *style);
/* Adds the row of a framework, with its name and colour. */
struct chart_row *charts_row(const struct html_page *page, size_t run, const char *framework,
			     struct charts *charts, struct chart *chart);
/* Adds a bar with the length of its figure, and its interval. */
struct chart_row *charts_bar(const struct html_page *page, size_t run,
			     const struct summary_row *row, enum figure_id id,
			     struct charts *charts, struct chart *chart);
/* Adds every chart of a comparison. */
void charts_of_comparison(const struct html_page *page, size_t comparison, struct charts *charts);

/* Whether the page has so few comparisons that one chart at its top shows the ratios of all. */
bool charts_are_few(const struct html_page *page);
void charts_all_ratios(const struct html_page *page, struct charts *charts);

/* Charts of one comparison of the page; each adds none when there is nothing to show. */
void charts_ratios(const struct html_page *page, size_t comparison, struct charts *charts);
void charts_start_up(const struct html_page *page, size_t comparison, struct charts *charts);
void charts_memory(const struct html_page *page, size_t comparison, struct charts *charts);
/* Needs energy counters. */
void charts_power(const struct html_page *page, size_t comparison, struct charts *charts);
/* Adds memory and power of the GPUs, as two charts. */
void charts_gpu(const struct html_page *page, size_t comparison, struct charts *charts);
/* Needs loaded batches. */
void charts_input(const struct html_page *page, size_t comparison, struct charts *charts);
/* Adds prony's speeds beside those that others published for the same suite. */
void charts_published(const struct html_page *page, size_t comparison, struct charts *charts);
/* These need intervals or sensor readings. */
void charts_distribution(const struct html_page *page, size_t comparison, struct charts *charts);
void charts_load(const struct html_page *page, size_t comparison, struct charts *charts);

/*
 * Whether the runs' suite repeats a study of several devices. Such a study also published memory.
 */
bool charts_is_study(const struct html_page *page);
/* Adds the charts of such a study: speed, memory, power and speed-up of each case, by device. */
void charts_study(const struct html_page *page, struct charts *charts);

/* Adds the drift over the whole run: the step of each process divided by its cell's step. */
void charts_run_drift(const struct html_page *page, size_t run, struct charts *charts);

/* Adds the step of a comparison's cells in earlier runs. */
void charts_history(const struct html_page *page, size_t comparison, struct charts *charts);

/* What a family is over: ranks with the same batch, and with the same batch of a rank. */
enum family_axis { OVER_BATCH, OVER_CORES, OVER_RANKS, OVER_RANKS_WEAK, OVER_COUNT };

/* Comparisons that differ only in one number. */
struct family {
	size_t *comparisons; /* comparisons of the page, in ascending order of that number */
	double *values;	     /* the number of each comparison */
	size_t count;
	enum family_axis over;
};

/* Returns the families with two or more comparisons; in the page's arena. */
struct family *charts_families(const struct html_page *page, struct arena *arena, size_t *count);
/* Writes what tells the family from the page's other comparisons; "" if there are no others. */
void charts_family_work(const struct html_page *page, const struct family *family, char *out,
			size_t out_bytes);
/* "batch size", "cores", "ranks" */
const char *charts_over(enum family_axis over);
/* Adds a curve for each figure with SHOW_CURVE over the number, and throughput against latency;
 * over ranks, the efficiency with the ideal line. */
void charts_curves(const struct html_page *page, const struct family *family,
		   struct charts *charts);

#endif
