/* What makes charts of results, piece by piece; only report/charts*.c and html*.c use this. */
#ifndef PRONY_REPORT_CHARTS_INTERNAL_H
#define PRONY_REPORT_CHARTS_INTERNAL_H

#include "report/chart.h"
#include "report/figures.h"
#include "report/html_internal.h"

/* A chart of a comparison, "WHAT: its title", with room for rows or series. */
struct chart *charts_begin(const struct html_page *page, size_t comparison, const char *what,
			   const char *caption, enum chart_kind kind, size_t room,
			   struct charts *charts);
/* "step time, less is better" */
struct chart_axis charts_axis(struct charts *charts, enum figure_id id);
/* The row of a framework, with its name and colour. */
struct chart_row *charts_row(const struct html_page *page, size_t run, const char *framework,
			     struct charts *charts, struct chart *chart);
/* A bar as long as its figure, with its interval. */
struct chart_row *charts_bar(const struct html_page *page, size_t run,
			     const struct summary_row *row, enum figure_id id,
			     struct charts *charts, struct chart *chart);
/* Every chart of a comparison. */
void charts_of_comparison(const struct html_page *page, size_t comparison, struct charts *charts);

/* Charts of one comparison of the page; each adds none when there is nothing to show. */
void charts_steps(const struct html_page *page, size_t comparison, struct charts *charts);
void charts_start_up(const struct html_page *page, size_t comparison, struct charts *charts);
void charts_memory(const struct html_page *page, size_t comparison, struct charts *charts);
/* Where counters gave it. */
void charts_power(const struct html_page *page, size_t comparison, struct charts *charts);
/* Where batches arrive. */
void charts_input(const struct html_page *page, size_t comparison, struct charts *charts);
/* Beside what others published for the same suite. */
void charts_published(const struct html_page *page, size_t comparison, struct charts *charts);
/* These need intervals, or what sensors saw. */
void charts_distribution(const struct html_page *page, size_t comparison, struct charts *charts);
void charts_drift(const struct html_page *page, size_t comparison, struct charts *charts);
void charts_load(const struct html_page *page, size_t comparison, struct charts *charts);

/* Whether the runs' suite repeats a study of several devices. Such a study published memory, too.
 */
bool charts_is_study(const struct html_page *page);
/* Then its charts: speed, memory, power and speed-up of each of its cases, by device. */
void charts_study(const struct html_page *page, struct charts *charts);

/* Over the whole run: the step of each process over its cell's step. */
void charts_run_drift(const struct html_page *page, size_t run, struct charts *charts);

/* The step of a comparison's cells through earlier runs. */
void charts_history(const struct html_page *page, size_t comparison, struct charts *charts);

/* Comparisons that differ in one numeric axis only: batch size, or cores of the device. */
struct family {
	size_t *comparisons; /* of the page, in order of that number */
	double *values;	     /* the number of each */
	size_t count;
	bool cores; /* else batch */
};

/* Those with two or more of them; in the page's arena. */
struct family *charts_families(const struct html_page *page, struct arena *arena, size_t *count);
/* "lenet, mnist-sample, train with momentum, cpu, fp32": what its comparisons have in common. */
void charts_family_title(const struct html_page *page, const struct family *family, char *out,
			 size_t out_bytes);
/* Each figure that is a curve over the number, and throughput against latency. */
void charts_curves(const struct html_page *page, const struct family *family,
		   struct charts *charts);

#endif
