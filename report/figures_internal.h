/* What makes figures of results, piece by piece; only report/figures*.c and html*.c use this. */
#ifndef PRONY_REPORT_FIGURES_INTERNAL_H
#define PRONY_REPORT_FIGURES_INTERNAL_H

#include "report/figure.h"
#include "report/html_internal.h"

/* Figures of one comparison of the page; each adds none when there is nothing to show. */
void figures_steps(const struct html_page *page, size_t comparison, struct figures *figures);
void figures_start_up(const struct html_page *page, size_t comparison, struct figures *figures);
void figures_memory(const struct html_page *page, size_t comparison, struct figures *figures);
/* Where counters gave it. */
void figures_power(const struct html_page *page, size_t comparison, struct figures *figures);
/* Where batches arrive. */
void figures_input(const struct html_page *page, size_t comparison, struct figures *figures);
/* Beside what others published for the same suite. */
void figures_published(const struct html_page *page, size_t comparison, struct figures *figures);
/* These need intervals, or what sensors saw. */
void figures_distribution(const struct html_page *page, size_t comparison, struct figures *figures);
void figures_drift(const struct html_page *page, size_t comparison, struct figures *figures);
void figures_load(const struct html_page *page, size_t comparison, struct figures *figures);

/* Whether the runs' suite repeats a study that took several devices: its memory was published, too.
 */
bool figures_is_study(const struct html_page *page);
/* Then its charts: speed, memory, power and speed-up of each of its cases, by device. */
void figures_study(const struct html_page *page, struct figures *figures);

/* Over the whole of a run: what each process took, against its cell's figure. */
void figures_run_drift(const struct html_page *page, size_t run, struct figures *figures);

/* The step of a comparison's cells through earlier runs. */
void figures_history(const struct html_page *page, size_t comparison, struct figures *figures);

/* Comparisons that differ in one axis only, a number: batch, or cores of the device. */
struct family {
	size_t *comparisons; /* of the page, in order of that number */
	double *values;	     /* the number of each */
	size_t count;
	bool cores; /* else batch */
};

/* Those with two or more of them; in the page's arena. */
struct family *figures_families(const struct html_page *page, struct arena *arena, size_t *count);
/* "lenet, mnist-sample, train with momentum, cpu, fp32": what its comparisons have in common. */
void figures_family_title(const struct html_page *page, const struct family *family, char *out,
			  size_t out_bytes);
/* Step, items a second and overhead over the number, and throughput against latency. */
void figures_curves(const struct html_page *page, const struct family *family,
		    struct figures *figures);

#endif
