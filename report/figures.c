/* All figures of a report, in the order of the page. */
#include "report/figures.h"

#include "report/figures_internal.h"

void figures_of_runs(const struct summary *const *summaries, size_t count,
		     const struct history *histories, size_t history_count, struct figures *figures)
{
	struct html_page page;
	size_t families;
	html_page_init(&page, summaries, count, histories, history_count);
	const struct family *family = figures_families(&page, &page.arena, &families);
	for (size_t i = 0; i < families; i++)
		figures_curves(&page, &family[i], figures);
	for (size_t i = 0; i < page.comparison_count; i++) {
		figures_steps(&page, i, figures);
		figures_start_up(&page, i, figures);
		figures_memory(&page, i, figures);
		figures_power(&page, i, figures);
		figures_input(&page, i, figures);
		figures_published(&page, i, figures);
		figures_distribution(&page, i, figures);
		figures_drift(&page, i, figures);
		figures_load(&page, i, figures);
	}
	figures_study(&page, figures);
	for (size_t run = 0; run < count; run++)
		figures_run_drift(&page, run, figures);
	for (size_t i = 0; i < page.comparison_count; i++)
		figures_history(&page, i, figures);
	html_page_release(&page);
}
