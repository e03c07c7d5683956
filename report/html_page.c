/* Builds the data from which the parts of the HTML page are written. */
#include "report/html_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/colours.h"
#include "stats/estimate.h"

/* Adds the frameworks of a run that are not on the page yet, in the order of the run's cells. */
static void add_frameworks(struct html_page *page, const struct summary *summary)
{
	const struct stored_run *run = summary->run;
	bool *folded = arena_array(&page->arena, run->cell_count + 1, sizeof *folded);
	for (size_t i = 0; i < summary->count; i++)
		folded[summary->rows[i].cell - run->cells] = summary->rows[i].folded;
	for (size_t i = 0; i < run->cell_count; i++) {
		const char *name = run->cells[i].cell.framework;
		if (folded[i])
			continue;
		size_t number = names_add(&page->framework_names, name, strlen(name));
		if (number < page->framework_count)
			continue;
		page->frameworks[page->framework_count++] = name;
	}
}

/* Returns the page's numbers of the comparisons of a run. */
static size_t *number_comparisons(struct html_page *page, struct names *names,
				  const struct summary *summary)
{
	size_t *numbers = memory_alloc((summary->comparison_count + 1) * sizeof *numbers);
	char key[SUMMARY_KEY_BYTES];
	for (size_t c = 0; c < summary->comparison_count; c++) {
		const struct stored_cell *cell = summary->rows[summary->first[c]].cell;
		numbers[c] = names_add(names, key, summary_cell_key(cell, key));
		if (numbers[c] == page->comparison_count)
			page->comparisons[page->comparison_count++] = &cell->cell;
	}
	return numbers;
}

static bool is_suite_of(const struct html_page *page, const char *suite)
{
	for (size_t run = 0; run < page->count; run++)
		if (!strcmp(suite, page->summaries[run]->run->meta.suite))
			return true;
	return false;
}

/* Assigns one colour to each framework, measured or published, for all runs and sections. */
static void choose_colours(struct html_page *page)
{
	const struct published *published = &page->published;
	size_t most = page->framework_count + published->count;
	const char **names = arena_array(&page->arena, most + 1, sizeof *names);
	for (size_t i = 0; i < page->framework_count; i++)
		names[names_add(&page->coloured, page->frameworks[i],
				strlen(page->frameworks[i]))] = page->frameworks[i];
	for (size_t i = 0; i < published->count; i++) {
		const char *name = published->rows[i].framework;
		if (is_suite_of(page, published->rows[i].suite))
			names[names_add(&page->coloured, name, strlen(name))] = name;
	}
	page->colours = arena_array(&page->arena, most + 1, sizeof *page->colours);
	colours_assign(names, page->coloured.count, page->colours);
}

const char *html_colour(const struct html_page *page, const char *framework)
{
	return page->colours[names_find(&page->coloured, framework, strlen(framework))];
}

void html_page_init(struct html_page *page, const struct summary *const *summaries, size_t count,
		    const struct history *histories, size_t history_count)
{
	size_t cells = 0, **numbers = memory_alloc((count + 1) * sizeof *numbers);
	struct error none = ERROR_INIT;
	struct names names = {.count = 0};
	*page = (struct html_page){.summaries = summaries,
				   .count = count,
				   .histories = histories,
				   .history_count = history_count};
	arena_init(&page->arena, 0);
	/* Errors in the file are reported by other commands. */
	if (published_load(NULL, &page->published, &none) != PRONY_OK)
		page->published = (struct published){.count = 0};
	for (size_t run = 0; run < count; run++)
		cells += summaries[run]->count;
	page->labels = arena_array(&page->arena, count + 1, sizeof *page->labels);
	page->frameworks = arena_array(&page->arena, cells + 1, sizeof *page->frameworks);
	page->comparisons = arena_array(&page->arena, cells + 1, sizeof *page->comparisons);
	page->of_run = arena_array(&page->arena, count + 1, sizeof *page->of_run);
	for (size_t run = 0; run < count; run++) {
		const struct stored_run *stored = summaries[run]->run;
		snprintf(page->labels[run], HTML_LABEL_BYTES, "%s, run %lld", stored->meta.host,
			 (long long)stored->meta.id);
		add_frameworks(page, summaries[run]);
		numbers[run] = number_comparisons(page, &names, summaries[run]);
	}
	for (size_t run = 0; run < count; run++) {
		size_t *of = arena_array(&page->arena, page->comparison_count + 1, sizeof *of);
		for (size_t c = 0; c < page->comparison_count; c++)
			of[c] = NAMES_NONE;
		for (size_t c = 0; c < summaries[run]->comparison_count; c++)
			of[numbers[run][c]] = c;
		page->of_run[run] = of;
		free(numbers[run]);
	}
	free(numbers);
	names_release(&names);
	page->differing = labels_of(page->comparisons, page->comparison_count);
	page->differing.varies[AXIS_FRAMEWORK] = false; /* a comparison has several */
	if (page->comparison_count > 1)
		label_common(&page->differing, page->comparisons[0], page->common,
			     sizeof page->common);
	choose_colours(page);
}

void html_page_release(struct html_page *page)
{
	if (!page)
		return;
	names_release(&page->framework_names);
	names_release(&page->coloured);
	published_release(&page->published);
	arena_release(&page->arena);
}

const struct summary_row *html_rows(const struct html_page *page, size_t run, size_t comparison,
				    size_t *count)
{
	const struct summary *summary = page->summaries[run];
	size_t number = page->of_run[run][comparison];
	*count = 0;
	if (number == NAMES_NONE)
		return NULL;
	*count = summary->first[number + 1] - summary->first[number];
	return &summary->rows[summary->first[number]];
}

void html_work(const struct html_page *page, const struct cell *cell, char *out, size_t out_bytes)
{
	if (page->comparison_count > 1)
		label_text(&page->differing, cell, out, out_bytes);
	else
		summary_comparison_title(cell, out, out_bytes);
}

size_t html_row_count(const struct html_page *page, size_t comparison)
{
	size_t sum = 0, count;
	for (size_t run = 0; run < page->count; run++) {
		html_rows(page, run, comparison, &count);
		sum += count;
	}
	return sum;
}

const struct summary_row *html_find(const struct html_page *page, size_t run, size_t comparison,
				    const char *framework)
{
	size_t count;
	const struct summary_row *rows = html_rows(page, run, comparison, &count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].cell->cell.framework, framework))
			return &rows[i];
	return NULL;
}

void html_row_label(const struct html_page *page, size_t run, const char *framework, char *out,
		    size_t out_bytes)
{
	if (page->count > 1)
		snprintf(out, out_bytes, "%s, %s", framework, page->labels[run]);
	else
		snprintf(out, out_bytes, "%s", framework);
}

enum figure_id html_ratio(const struct html_page *page, size_t comparison)
{
	for (size_t run = 0; run < page->count; run++) {
		size_t count;
		const struct summary_row *rows = html_rows(page, run, comparison, &count),
					 *native = html_find(page, run, comparison, "native");
		/* Comparable rows come first. */
		if (count > 0 && rows->comparable && !(native && native->comparable))
			return FIGURE_LEAD;
	}
	return FIGURE_FLOOR;
}

bool html_is_alone(const struct html_page *page, size_t run, size_t comparison)
{
	const struct summary *summary = page->summaries[run];
	size_t comparable = 0;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++)
		comparable += summary->rows[i].comparable;
	return comparable < 2;
}

const char *html_status_class(const struct summary_row *row)
{
	enum cell_status status = row->cell->status;
	if (row->comparable || (status == CELL_OK && row->cell->flags & CELL_FLAG_GATE_ONLY))
		return "good";
	return status == CELL_UNSUPPORTED || status == CELL_MISSING || status == CELL_PENDING
		       ? "none"
		       : "bad";
}
