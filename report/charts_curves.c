/* Draws curves over the batch size and over the numbers of cores and ranks. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/charts_internal.h"

static const struct chart_axis over_axes[OVER_COUNT] = {
	[OVER_BATCH] = {"batch size", "batch", CHART_PLAIN, true, .ticks_at_values = true},
	[OVER_CORES] = {"cores", "cores", CHART_PLAIN, .ticks_at_values = true},
	[OVER_RANKS] = {"ranks", "ranks", CHART_PLAIN, .ticks_at_values = true},
	[OVER_RANKS_WEAK] = {"ranks", "ranks", CHART_PLAIN, .ticks_at_values = true},
};

const char *charts_over(enum family_axis over)
{
	return over_axes[over].title;
}

static bool is_over_ranks(enum family_axis over)
{
	return over == OVER_RANKS || over == OVER_RANKS_WEAK;
}

/* Returns the cell's place in a family over that axis; NaN if it has none. "cpu:4" has four cores
 * and one rank. */
static double place_of(const struct cell *cell, enum family_axis over)
{
	const struct device device = device_of(cell->device);
	if (over == OVER_BATCH)
		return (double)cell->batch;
	if (device.cores == 0 || (over == OVER_CORES && device.ranks > 1))
		return NAN;
	return over == OVER_CORES ? device.cores : device.ranks;
}

/* Makes the comparison's key without the axis of the family. */
static size_t family_key(const struct cell *cell, enum family_axis over,
			 char key[SUMMARY_KEY_BYTES])
{
	const struct device device = device_of(cell->device);
	struct cell without = *cell;
	if (over == OVER_BATCH)
		without.batch = 0;
	else if (over == OVER_CORES)
		snprintf(without.device, sizeof without.device, "cpu:#");
	else
		snprintf(without.device, sizeof without.device, "cpu:%dx#", device.cores);
	if (over == OVER_RANKS_WEAK)
		without.batch /= device.ranks;
	return summary_comparison_key(&without, key);
}

struct member {
	double value;
	size_t comparison;
};

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->comparison > y->comparison) - (x->comparison < y->comparison);
}

/* Sorts by value. A long sweep is reduced to the points that a curve can show, spaced about evenly
 * on a logarithmic scale. */
static void arrange(struct family *family)
{
	enum { POINTS_MAX = 48 };
	struct member *members = memory_alloc(family->count * sizeof *members);
	for (size_t i = 0; i < family->count; i++)
		members[i] = (struct member){family->values[i], family->comparisons[i]};
	qsort(members, family->count, sizeof *members, compare_members);
	size_t count = family->count;
	double ratio = count > POINTS_MAX
			       ? pow(members[count - 1].value / members[0].value, 1.0 / POINTS_MAX)
			       : 1;
	family->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (family->count > 0 && i + 1 < count &&
		    members[i].value < family->values[family->count - 1] * ratio)
			continue;
		family->values[family->count] = members[i].value;
		family->comparisons[family->count++] = members[i].comparison;
	}
	free(members);
}

/* Appends the families over one axis to those found so far. */
static size_t gather(const struct html_page *page, struct arena *arena, enum family_axis over,
		     struct family *families, size_t count)
{
	struct names names = {.count = 0};
	char key[SUMMARY_KEY_BYTES];
	size_t *of = memory_alloc((page->comparison_count + 1) * sizeof *of);
	size_t *sizes = memory_alloc((page->comparison_count + 1) * sizeof *sizes);
	for (size_t i = 0; i < page->comparison_count; i++) {
		const struct cell *cell = page->comparisons[i];
		of[i] = NAMES_NONE;
		if (isnan(place_of(cell, over)))
			continue;
		size_t known = names.count;
		of[i] = names_add(&names, key, family_key(cell, over, key));
		sizes[of[i]] = of[i] == known ? 1 : sizes[of[i]] + 1;
	}
	size_t *numbers = memory_alloc((names.count + 1) * sizeof *numbers);
	for (size_t k = 0; k < names.count; k++) {
		numbers[k] = NAMES_NONE;
		if (sizes[k] < 2)
			continue;
		numbers[k] = count;
		families[count++] =
			(struct family){.comparisons = arena_array(arena, sizes[k], sizeof(size_t)),
					.values = arena_array(arena, sizes[k], sizeof(double)),
					.over = over};
	}
	for (size_t i = 0; i < page->comparison_count; i++)
		if (of[i] != NAMES_NONE && numbers[of[i]] != NAMES_NONE) {
			struct family *family = &families[numbers[of[i]]];
			family->values[family->count] = place_of(page->comparisons[i], over);
			family->comparisons[family->count++] = i;
		}
	for (size_t k = 0; k < names.count; k++)
		if (numbers[k] != NAMES_NONE)
			arrange(&families[numbers[k]]);
	free(numbers);
	free(sizes);
	free(of);
	names_release(&names);
	return count;
}

struct family *charts_families(const struct html_page *page, struct arena *arena, size_t *count)
{
	struct family *families =
		arena_array(arena, OVER_COUNT * page->comparison_count + 1, sizeof *families);
	*count = 0;
	for (int over = 0; over < OVER_COUNT; over++)
		*count = gather(page, arena, (enum family_axis)over, families, *count);
	return families;
}

/* Writes what the family's comparisons have in common: "lenet, mnist-sample, train with momentum,
 * cpu, fp32". */
static void family_title(const struct html_page *page, const struct family *family, char *out,
			 size_t out_bytes)
{
	const struct cell **cells = memory_alloc(family->count * sizeof *cells);
	for (size_t i = 0; i < family->count; i++)
		cells[i] = page->comparisons[family->comparisons[i]];
	struct labels labels = labels_of(cells, family->count);
	label_common(&labels, cells[0], out, out_bytes);
	free(cells);
}

void charts_family_work(const struct html_page *page, const struct family *family, char *out,
			size_t out_bytes)
{
	struct labels labels = page->differing;
	enum axis_id own = family->over == OVER_BATCH ? AXIS_BATCH : AXIS_DEVICE;
	bool any = false;
	labels.varies[own] = labels.partly[own] = false;
	if (family->over == OVER_RANKS_WEAK)
		labels.varies[AXIS_BATCH] = labels.partly[AXIS_BATCH] = false;
	for (int id = 0; id < AXIS_COUNT; id++)
		any |= labels.varies[id] || (labels.partly[id] && !axes[id].quiet);
	*out = '\0';
	if (any)
		label_text(&labels, page->comparisons[family->comparisons[0]], out, out_bytes);
}

/* Adds the curve of a framework in a run, from the comparisons in which it is comparable, over the
 * family's number or over the step. */
static void add_curve(const struct html_page *page, size_t run, const char *framework,
		      const struct family *family, enum figure_id id, bool over_step,
		      struct charts *charts, struct chart *chart)
{
	char label[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4];
	html_row_label(page, run, framework, label, sizeof label);
	struct chart_series *series = chart_series(charts, chart, label, framework,
						   html_colour(page, framework), family->count);
	charts_sign(page, run, framework, &series->mark, &series->run);
	for (size_t i = 0; i < family->count; i++) {
		const struct summary_row *row =
			html_find(page, run, family->comparisons[i], framework);
		if (!row || !row->comparable)
			continue;
		struct figure_value known = figure_value(id, row);
		if (is_over_ranks(family->over) && family->values[i] == 1)
			known = (struct figure_value){.value = 1, .low = NAN, .high = NAN};
		if (isfinite(known.value) && !known.itself)
			series->points[series->count++] = (struct chart_point){
				over_step ? row->step.center : family->values[i], known.value,
				known.low, known.high};
	}
	if (series->count == 0)
		chart->series_count--;
}

static void add_chart(const struct html_page *page, const struct family *family, enum figure_id id,
		      bool over_step, struct charts *charts)
{
	char title[CELL_KEY_BYTES], head[CELL_KEY_BYTES + 96], name[sizeof head], caption[256];
	const char *over = over_step ? figures[FIGURE_STEP].label : charts_over(family->over);
	family_title(page, family, title, sizeof title);
	snprintf(head, sizeof head, "%s over %s: %s", figures[id].label, over, title);
	snprintf(name, sizeof name, "%s %s %s", figures[id].label, over, title);
	*head = (char)toupper((unsigned char)*head);
	snprintf(caption, sizeof caption, "%s%s; 95 %% intervals (an arrow: it continues).",
		 over_step ? "Each mark is one point of the sweep; further left is faster: " : "",
		 figures[id].help);
	*caption = (char)toupper((unsigned char)*caption);
	struct chart *chart = charts_add(charts, CHART_LINES, name, head, caption,
					 page->framework_count * page->count);
	chart->heading =
		arena_printf(&charts->arena, "%c%s over %s", *head, figures[id].label + 1, over);
	chart->x = over_step ? charts_axis(charts, FIGURE_STEP) : over_axes[family->over];
	chart->y = charts_axis(charts, id);
	chart->x.logarithmic |= over_step;
	chart->y.logarithmic = !is_over_ranks(family->over);
	if (figures[id].unit == UNIT_RATIO || is_over_ranks(family->over)) {
		chart->reference = 1;
		chart->reference_label = is_over_ranks(family->over) ? "ideal" : "native";
	}
	for (size_t k = 0; k < page->framework_count; k++)
		for (size_t run = 0; run < page->count; run++)
			add_curve(page, run, page->frameworks[k], family, id, over_step, charts,
				  chart);
	size_t longest = 0;
	for (size_t i = 0; i < chart->series_count; i++)
		longest = chart->series[i].count > longest ? chart->series[i].count : longest;
	if (longest < 2)
		charts_drop(charts);
}

void charts_curves(const struct html_page *page, const struct family *family, struct charts *charts)
{
	if (is_over_ranks(family->over)) {
		add_chart(page, family, family->over == OVER_RANKS ? FIGURE_STRONG : FIGURE_WEAK,
			  false, charts);
		return;
	}
	for (int id = 0; id < FIGURE_COUNT; id++)
		if (figures[id].shown & SHOW_CURVE)
			add_chart(page, family, (enum figure_id)id, false, charts);
	add_chart(page, family, FIGURE_SAMPLES, true, charts);
}
