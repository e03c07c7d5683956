/* Builds all charts of a report, in the order of the page. */
#include "report/charts.h"

#include "report/charts_internal.h"

void charts_of_comparison(const struct html_page *page, size_t comparison, struct charts *charts)
{
	if (!charts_are_few(page))
		charts_ratios(page, comparison, charts);
	charts_start_up(page, comparison, charts);
	charts_memory(page, comparison, charts);
	charts_power(page, comparison, charts);
	charts_gpu(page, comparison, charts);
	charts_input(page, comparison, charts);
	charts_published(page, comparison, charts);
	charts_distribution(page, comparison, charts);
	charts_load(page, comparison, charts);
}

void charts_of_runs(const struct summary *const *summaries, size_t count,
		    const struct history *histories, size_t history_count, struct charts *charts)
{
	struct html_page page;
	size_t families;
	html_page_init(&page, summaries, count, histories, history_count);
	if (charts_are_few(&page))
		charts_all_ratios(&page, charts);
	const struct family *family = charts_families(&page, &page.arena, &families);
	for (size_t i = 0; i < families; i++)
		charts_curves(&page, &family[i], charts);
	for (size_t i = 0; i < page.comparison_count; i++)
		charts_of_comparison(&page, i, charts);
	charts_study(&page, charts);
	for (size_t run = 0; run < count; run++)
		charts_run_drift(&page, run, charts);
	for (size_t i = 0; i < page.comparison_count; i++)
		charts_history(&page, i, charts);
	html_page_release(&page);
}
