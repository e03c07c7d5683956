/* How well cells of several ranks scale against the same work by one rank. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cell/device.h"
#include "report/format.h"
#include "report/summary_internal.h"

size_t scaling_base_key(const struct cell *cell, enum scaling scaling, char key[SUMMARY_KEY_BYTES])
{
	struct device device = device_of(cell->device);
	struct cell base = *cell;

	if (device.kind != DEVICE_CPU || device.ranks < 2)
		return 0;
	snprintf(base.device, sizeof base.device, "cpu:%d", device.cores);
	if (scaling == SCALING_WEAK)
		base.batch /= device.ranks;
	return summary_comparison_key(&base, key);
}

/* The row of that framework in the comparison with this key; NULL without. */
static const struct summary_row *find_base(const struct summary *summary, const char *framework,
					   const char *key, size_t bytes)
{
	char other[SUMMARY_KEY_BYTES];

	for (size_t c = 0; c < summary->comparison_count; c++) {
		const struct summary_row *row = &summary->rows[summary->first[c]];
		const struct summary_row *end = &summary->rows[summary->first[c + 1]];
		if (summary_comparison_key(&row->cell->cell, other) != bytes ||
		    memcmp(other, key, bytes) != 0)
			continue;
		for (; row < end; row++)
			if (row->comparable && !strcmp(row->cell->cell.framework, framework))
				return row;
	}
	return NULL;
}

static void fill(const struct summary *summary, enum scaling scaling, struct summary_row *row)
{
	char key[SUMMARY_KEY_BYTES];
	struct contrast *out = &row->efficiency[scaling];
	struct arena arena;
	size_t bytes = scaling_base_key(&row->cell->cell, scaling, key);
	const struct summary_row *base =
		bytes && row->comparable ? find_base(summary, row->cell->cell.framework, key, bytes)
					 : NULL;

	if (!base)
		return;
	arena_init(&arena, 0);
	struct replicates one = replicates_of(&arena, base->cell);
	struct replicates all = replicates_of(&arena, row->cell);
	contrast_of_rounds(&all.means, &one.means, out);
	arena_release(&arena);
	double parts = scaling == SCALING_STRONG ? device_of(row->cell->cell.device).ranks : 1;
	out->ratio /= parts;
	out->low /= parts;
	out->high /= parts;
}

void scaling_fill(struct summary *summary)
{
	for (size_t i = 0; i < summary->count; i++)
		for (int scaling = 0; scaling < SCALINGS; scaling++)
			fill(summary, (enum scaling)scaling, &summary->rows[i]);
}

static void add_efficiency(const struct summary_row *row, const struct contrast *efficiency,
			   struct strbuf *out)
{
	char text[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];

	format_percent(efficiency->ratio, text, sizeof text);
	strbuf_printf(out, "%s %s", row->cell->cell.framework, text);
	if (isfinite(efficiency->low)) {
		format_percent(efficiency->low, low, sizeof low);
		format_percent(efficiency->high, high, sizeof high);
		strbuf_printf(out, " (%s to %s)", low, high);
	}
	/* Otherwise readers take it for a gain of the framework. */
	if (efficiency->low > 1)
		strbuf_puts(out, ", above 100 %: a part of the batch may fit into caches, or one "
				 "rank leaves its cores idle");
}

bool summary_scaling(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	static const char *const of[SCALINGS] = {
		[SCALING_STRONG] = "the same batch", [SCALING_WEAK] = "the same batch of a rank"};
	bool said = false;

	for (int scaling = 0; scaling < SCALINGS; scaling++) {
		bool begun = false;
		for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1];
		     i++) {
			const struct contrast *efficiency = &summary->rows[i].efficiency[scaling];
			if (!isfinite(efficiency->ratio))
				continue;
			if (begun)
				strbuf_puts(out, ", ");
			else
				strbuf_printf(out, "%s%s: ",
					      said ? "; " : "efficiency against one rank, ",
					      of[scaling]);
			add_efficiency(&summary->rows[i], efficiency, out);
			begun = said = true;
		}
	}
	return said;
}
