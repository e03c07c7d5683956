/* How well cells of several ranks scale against the same work by one rank. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cell/device.h"
#include "report/format.h"
#include "report/summary.h"

/* Whether `one` is the cell of one rank with the same cores: of the whole batch (strong), or of the
 * batch of a rank. */
static bool is_base(const struct cell *one, const struct cell *all, int ranks, int cores,
		    bool strong)
{
	char a[SUMMARY_KEY_BYTES], b[SUMMARY_KEY_BYTES];
	struct cell same = *all;

	snprintf(same.device, sizeof same.device, "cpu:%d", cores);
	if (!strong)
		same.batch /= ranks;
	size_t bytes = summary_comparison_key(&same, a);
	return !strcmp(one->framework, all->framework) && bytes == summary_comparison_key(one, b) &&
	       !memcmp(a, b, bytes);
}

bool scaling_of(const struct summary *summary, const struct summary_row *row, bool strong,
		struct contrast *out)
{
	struct device device = device_of(row->cell->cell.device);
	struct arena arena;
	bool found = false;

	if (!row->comparable || device.kind != DEVICE_CPU || device.ranks < 2)
		return false;
	for (size_t i = 0; i < summary->count && !found; i++) {
		const struct summary_row *base = &summary->rows[i];
		if (!base->comparable || !is_base(&base->cell->cell, &row->cell->cell, device.ranks,
						  device.cores, strong))
			continue;
		arena_init(&arena, 0);
		struct replicates one = replicates_of(&arena, base->cell);
		struct replicates all = replicates_of(&arena, row->cell);
		contrast_of_rounds(&all.means, &one.means, out);
		arena_release(&arena);
		double parts = strong ? device.ranks : 1;
		out->ratio /= parts;
		out->low /= parts;
		out->high /= parts;
		found = isfinite(out->ratio);
	}
	return found;
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
	bool said = false;

	for (int strong = 1; strong >= 0; strong--) {
		bool begun = false;
		for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1];
		     i++) {
			struct contrast efficiency;
			if (!scaling_of(summary, &summary->rows[i], strong, &efficiency))
				continue;
			strbuf_puts(out, begun	  ? ", "
					 : strong ? "efficiency against one rank, the same batch: "
					 : said	  ? "; the same batch of a rank: "
						  : "efficiency against one rank, the same batch "
						    "of a rank: ");
			add_efficiency(&summary->rows[i], &efficiency, out);
			begun = said = true;
		}
	}
	return said;
}
