/* What the parts of the HTML page draw from. */
#include "report/html_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stats/estimate.h"

static size_t add_name(const char **names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return count;
	names[count] = name;
	return count + 1;
}

static void add_comparison(struct html_page *page, const struct cell *cell)
{
	for (size_t i = 0; i < page->comparison_count; i++)
		if (summary_same_comparison(page->comparisons[i], cell))
			return;
	page->comparisons[page->comparison_count++] = cell;
}

void html_page_init(struct html_page *page, const struct summary *const *summaries, size_t count)
{
	size_t cells = 0;
	*page = (struct html_page){.summaries = summaries, .count = count};
	arena_init(&page->arena, 0);
	for (size_t run = 0; run < count; run++)
		cells += summaries[run]->count;
	page->labels = arena_array(&page->arena, count + 1, sizeof *page->labels);
	page->frameworks = arena_array(&page->arena, cells + 1, sizeof *page->frameworks);
	page->comparisons = arena_array(&page->arena, cells + 1, sizeof *page->comparisons);
	for (size_t run = 0; run < count; run++) {
		const struct stored_run *stored = summaries[run]->run;
		snprintf(page->labels[run], HTML_LABEL_BYTES, "%s, run %lld", stored->meta.host,
			 (long long)stored->meta.id);
		for (size_t i = 0; i < stored->cell_count; i++) {
			page->framework_count = add_name(page->frameworks, page->framework_count,
							 stored->cells[i].cell.framework);
			add_comparison(page, &stored->cells[i].cell);
		}
	}
}

void html_page_release(struct html_page *page)
{
	if (page)
		arena_release(&page->arena);
}

const struct summary_row *html_find(const struct html_page *page, size_t run,
				    const struct cell *comparison, const char *framework)
{
	const struct summary *summary = page->summaries[run];
	for (size_t i = 0; i < summary->count; i++)
		if (!strcmp(summary->rows[i].cell->cell.framework, framework) &&
		    summary_same_comparison(&summary->rows[i].cell->cell, comparison))
			return &summary->rows[i];
	return NULL;
}

static double field_value(const struct process_record *record, const char *name)
{
	for (size_t i = 0; i < process_field_count; i++) {
		const struct record_field *field = &process_fields[i];
		const char *member = (const char *)record + field->offset;
		int64_t integer;
		double real;
		if (strcmp(field->name, name))
			continue;
		if (field->type == FIELD_TYPE_INT) {
			memcpy(&integer, member, sizeof integer);
			return integer == RECORD_NONE ? NAN : (double)integer;
		}
		memcpy(&real, member, sizeof real);
		return real;
	}
	return NAN;
}

double html_median(const struct stored_cell *cell, const char *field)
{
	double *values = memory_alloc((cell->process_count + 1) * sizeof *values);
	size_t count = 0;
	for (size_t i = 0; summary_has_figures(cell) && i < cell->process_count; i++) {
		double value = field_value(&cell->processes[i], field);
		if (!strcmp(cell->processes[i].status, "ok") && isfinite(value))
			values[count++] = value;
	}
	double median = median_of(values, count);
	free(values);
	return median;
}
