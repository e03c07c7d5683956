/* Lines about the gap between typical and undisturbed steps, caused by the machine or by the
 * framework. */
#include <math.h>
#include <string.h>

#include "report/figures.h"

/* Smaller gaps are not reported; blocks on a quiet machine differ by one or two percent. */
#define GAP_OWN 0.05
#define GAP_OF_ALL 0.10

/* Returns the largest upper end of the other frameworks' gaps; NaN if there are no others. */
static double others_at_most(const struct summary *summary, size_t comparison, size_t self)
{
	double most = NAN;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++)
		if (i != self && summary->rows[i].comparable)
			most = fmax(most, summary->rows[i].gap_high);
	return most;
}

bool summary_gaps(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	size_t known = 0;
	bool said = false;
	double least = INFINITY, most = 0;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (!row->comparable || isnan(row->gap_low))
			continue;
		known++;
		least = fmin(least, row->gap);
		most = fmax(most, row->gap);
		double others = others_at_most(summary, comparison, i);
		if (row->gap < GAP_OWN || !(row->gap_low > others))
			continue;
		strbuf_printf(out,
			      "%s has pauses of its own: its typical step is %.0f %% above its "
			      "undisturbed one, for the others at most %.0f %%",
			      row->cell->cell.framework, 100 * row->gap, 100 * fmax(others, 0));
		said = true;
	}
	if (said || known == 0 || least < GAP_OF_ALL)
		return said;
	if (known == 1)
		strbuf_printf(out,
			      "the typical step is %.0f %% above the undisturbed one: the machine "
			      "or the framework pauses",
			      100 * most);
	else
		strbuf_printf(out,
			      "the machine delays all frameworks at times: typical steps are %.0f "
			      "to %.0f %% above undisturbed ones",
			      100 * least, 100 * most);
	return true;
}

bool summary_disagreement(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool said = false;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		char typical[FORMAT_BYTES], other[FORMAT_BYTES], interval[FIGURE_INTERVAL_BYTES];
		if (row->undisturbed_order == ORDER_UNKNOWN || row->floor_order == ORDER_UNKNOWN ||
		    row->undisturbed_order == row->floor_order ||
		    !strcmp(row->cell->cell.framework, "native"))
			continue;
		figure_text(FIGURE_FLOOR, row, typical);
		figure_text(FIGURE_UNDISTURBED_FLOOR, row, other);
		figure_interval_text(FIGURE_UNDISTURBED_FLOOR, row, interval);
		strbuf_printf(out,
			      "%s%s is %s native by typical steps and %s (95 %% interval %s) by "
			      "undisturbed ones",
			      said ? "; " : "typical and undisturbed steps disagree: ",
			      row->cell->cell.framework, typical, other, interval);
		said = true;
	}
	if (said)
		strbuf_puts(out, "; ranks use the typical step");
	return said;
}
