/* Ranks the frameworks of a comparison, and writes the lines about missing ranks. */
#include "report/ranking.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/figures.h"

/* NAMES_MAX, RIVALS_MAX: names listed at most. PROCESSES_MAX: processes proposed at most;
 * DISTURBED_PROCESSES_MAX if other programs caused the spread. */
enum { NAMES_MAX = 4, RIVALS_MAX = 6, PROCESSES_MAX = 1000, DISTURBED_PROCESSES_MAX = 40 };

/* The native executor with default options is the floor of the comparison. */
static size_t find_floor(const struct summary_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].cell->cell.framework, "native"))
			return i;
	return count;
}

/* Fills the ratio to native. Its order is that of the ranks: corrected for the number of pairs. */
static void hold_against(const struct contender *self, const struct contender *floor,
			 enum order order, struct summary_row *row)
{
	contrast_of_rounds(&floor->means, &self->means, &row->floor);
	row->floor_order = order;
}

/* The same for energy and undisturbed steps, if both have them. */
static void hold_others(const struct replicates *self, const struct replicates *floor,
			struct summary_row *row)
{
	const struct margins none = {1, 1};
	if (self->energy.count > 0 && floor->energy.count > 0)
		contrast_of_rounds(&floor->energy, &self->energy, &row->costs.joules_floor);
	if (self->undisturbed.count == 0 || floor->undisturbed.count == 0)
		return;
	contrast_of_rounds(&floor->undisturbed, &self->undisturbed, &row->floor_undisturbed);
	row->undisturbed_order = order_of(&row->floor_undisturbed, &none);
}

/* Returns the smallest rank_high of the rows. */
static int least_high(const struct summary_row *rows, size_t count)
{
	int least = rows[0].rank_high;
	for (size_t i = 1; i < count; i++)
		least = rows[i].rank_high < least ? rows[i].rank_high : least;
	return least;
}

/* Sorts so that no row comes after one that is proved slower. Ranks use ratios of the same rounds,
 * which may give another order than the step times. */
static void put_by_rank(struct summary_row *rows, size_t count)
{
	for (size_t to = 0; to < count; to++) {
		int most = least_high(rows + to, count - to);
		size_t from = to;
		while (rows[from].rank_low > most)
			from++;
		struct summary_row row = rows[from];
		memmove(rows + to + 1, rows + to, (from - to) * sizeof *rows);
		rows[to] = row;
	}
}

/* Takes the ranks back if other cells have a figure, but too few processes: each may be faster. */
static void leave_open(struct summary_row *rows, size_t comparable, size_t count)
{
	int open = 0;
	for (size_t i = comparable; i < count; i++)
		open += rows[i].step.n > 0 && rows[i].cell->status != CELL_OK;
	for (size_t i = 0; i < comparable && open > 0; i++) {
		rows[i].open = true;
		rows[i].tied = false;
		rows[i].rank = 0;
		rows[i].rank_high += open;
	}
}

void ranking_fill(struct summary_row *rows, const struct replicates *replicates, size_t count)
{
	size_t comparable = 0;
	while (comparable < count && rows[comparable].comparable)
		comparable++;
	struct contender *contenders = memory_alloc((comparable + 1) * sizeof *contenders);
	struct rank_range *ranges = memory_alloc((comparable + 1) * sizeof *ranges);
	size_t floor = find_floor(rows, comparable);
	for (size_t i = 0; i < comparable; i++)
		contenders[i] = (struct contender){.means = replicates[i].means,
						   .loss = replicates[i].loss};
	order_ranks(contenders, comparable, floor, ranges);
	for (size_t i = 0; i < comparable; i++) {
		struct summary_row *row = &rows[i];
		row->rank = ranges[i].rank;
		row->rank_low = ranges[i].low;
		row->rank_high = ranges[i].high;
		row->tied = ranges[i].tied;
		row->processes_to_rank = ranges[i].needed;
		row->unsettled = ranges[i].disturbed;
		row->disturbed = contenders[i].loss > 0;
		row->wide = ranges[i].wide;
		row->few = ranges[i].few;
		row->leads = ranges[i].lead == i;
		row->lead_order = ranges[i].to_lead;
		contrast_of_rounds(&contenders[ranges[i].lead].means, &contenders[i].means,
				   &row->lead);
		if (floor == comparable)
			continue;
		hold_against(&contenders[i], &contenders[floor], ranges[i].to_floor, row);
		hold_others(&replicates[i], &replicates[floor], row);
		row->disturbed |= contenders[floor].loss > 0;
	}
	put_by_rank(rows, comparable);
	leave_open(rows, comparable, count);
	free(contenders);
	free(ranges);
}

void summary_rank_text(const struct summary_row *row, char *out, size_t out_bytes)
{
	if (!row->comparable)
		snprintf(out, out_bytes, "-");
	else if (row->rank > 0)
		snprintf(out, out_bytes, "%d%s", row->rank, row->tied ? "=" : "");
	else
		snprintf(out, out_bytes, "%d-%d", row->rank_low, row->rank_high);
}

bool summary_breaks_floor(const struct summary_row *row)
{
	return row->floor_order == ORDER_FASTER &&
	       contrast_half_width(&row->floor) <= ORDER_WIDTH_MAX && !row->disturbed;
}

bool summary_floor_broken(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool broken = false;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		char ratio[FORMAT_BYTES], interval[FIGURE_INTERVAL_BYTES];
		if (!summary_breaks_floor(row))
			continue;
		figure_text(FIGURE_FLOOR, row, ratio);
		figure_interval_text(FIGURE_FLOOR, row, interval);
		strbuf_printf(out, "%s%s (%s, 95 %% interval %s)",
			      broken ? ", " : "faster than native: ", row->cell->cell.framework,
			      ratio, interval);
		broken = true;
	}
	return broken;
}

const struct summary_row *summary_leader(const struct summary *summary, size_t comparison)
{
	const struct summary_row *leader = NULL;
	size_t comparable = 0;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		comparable += row->comparable;
		if (row->comparable && row->leads)
			leader = row;
	}
	return leader && leader->rank == 0 && !leader->open && comparable > 1 ? leader : NULL;
}

/* Whether the interval of a row's ratio to the leader contains 1, or there is none. */
static bool may_be_as_fast(const struct summary_row *row)
{
	return row->lead_order == ORDER_ALIKE ||
	       (row->lead_order == ORDER_UNKNOWN && !(row->lead.low > 1));
}

static bool is_unproved(const struct summary_row *row)
{
	return row->lead_order == ORDER_UNKNOWN && row->lead.low > 1;
}

/* Adds "a (1.04x, 0.96x to 1.13x), b (...) and 2 more": the rows of a kind, except the leader. */
static size_t add_rivals(const struct summary *summary, size_t comparison,
			 bool (*is_one)(const struct summary_row *row), struct strbuf *out)
{
	size_t count = 0;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		char ratio[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];
		if (!row->comparable || row->leads || !is_one(row) || count++ >= RIVALS_MAX)
			continue;
		format_ratio_within(row->lead.ratio, contrast_half_width(&row->lead), ratio,
				    sizeof ratio);
		strbuf_printf(out, "%s%s (%s", count > 1 ? ", " : "", row->cell->cell.framework,
			      ratio);
		format_ratio(row->lead.low, low, sizeof low);
		format_ratio(row->lead.high, high, sizeof high);
		if (isfinite(row->lead.low))
			strbuf_printf(out, ", %s to %s", low, high);
		strbuf_putc(out, ')');
	}
	if (count > RIVALS_MAX)
		strbuf_printf(out, " and %zu more", count - RIVALS_MAX);
	return count;
}

void summary_rivals(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	struct strbuf rivals;
	strbuf_init(&rivals, 0);
	if (add_rivals(summary, comparison, may_be_as_fast, &rivals))
		strbuf_printf(out, "; %s may be as fast", strbuf_text(&rivals));
	strbuf_clear(&rivals);
	size_t unproved = add_rivals(summary, comparison, is_unproved, &rivals);
	if (unproved)
		strbuf_printf(out, "; %s %s slower by the figures, but this is not proved",
			      strbuf_text(&rivals), unproved == 1 ? "is" : "are");
	strbuf_release(&rivals);
}

const char *summary_lead_words(const struct summary *summary, size_t comparison)
{
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (row->comparable && !row->leads && row->lead.ratio < 1)
			return "has the least step time";
	}
	return "is fastest by the figures";
}

bool summary_led(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	const struct summary_row *leader = summary_leader(summary, comparison);
	if (!leader)
		return false;
	strbuf_printf(out, "%s %s", leader->cell->cell.framework,
		      summary_lead_words(summary, comparison));
	summary_rivals(summary, comparison, out);
	return true;
}

/* What is needed to rank the frameworks that have no rank. */
struct remedy {
	size_t contenders, of, needed;
	size_t processes;  /* of the unranked framework with the fewest */
	double process_ns; /* time for one process of each framework, including the ranked ones */
	bool disturbed, wide, few; /* as in struct summary_row */
	bool open;		   /* other cells of the comparison have too few processes */
	bool unknown; /* for at least one of them, the number is unknown or no number is enough */
};

static void add_remedy(const struct summary *summary, size_t comparison, struct remedy *remedy)
{
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		remedy->of += row->comparable;
		/* --repeat applies to all of them. */
		remedy->process_ns += row->comparable ? replicates_process_ns(row->cell) : 0;
		if (!row->comparable || row->rank > 0)
			continue;
		if (remedy->contenders++ == 0 || row->step.n < remedy->processes)
			remedy->processes = row->step.n;
		remedy->disturbed |= row->unsettled;
		remedy->wide |= row->wide;
		remedy->few |= row->few;
		remedy->open |= row->open;
		remedy->unknown |= row->processes_to_rank == 0;
		if (row->processes_to_rank > remedy->needed)
			remedy->needed = row->processes_to_rank;
	}
}

static void name_undecided(const struct summary *summary, size_t comparison,
			   const struct remedy *remedy, struct strbuf *out)
{
	const char *before = "no rank for ";
	if (remedy->contenders > NAMES_MAX) {
		strbuf_printf(out, "no rank for %zu of %zu", remedy->contenders, remedy->of);
		return;
	}
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (!row->comparable || row->rank > 0)
			continue;
		strbuf_printf(out, "%s%s", before, row->cell->cell.framework);
		before = ", ";
	}
}

/* Says why: only what holds for these rows. */
static void add_reason(const struct remedy *remedy, struct strbuf *out)
{
	if (remedy->disturbed)
		strbuf_puts(out, ": other programs used the machine, so the order is not proved; "
				 "close them and run again (prony doctor)");
	else if (remedy->few && remedy->processes > 0)
		strbuf_printf(out, ": %zu process%s each %s too few to prove the order%s",
			      remedy->processes, remedy->processes == 1 ? "" : "es",
			      remedy->processes == 1 ? "is" : "are",
			      remedy->wide ? ", and some intervals of their ratios contain 1" : "");
	else if (remedy->wide)
		strbuf_puts(out, ": wide intervals of their ratios contain 1");
	else
		strbuf_puts(out, ": one of them cannot be told apart from two that differ");
}

static void add_cost(const struct remedy *remedy, struct strbuf *out)
{
	const double minute_ns = 60e9;
	double minutes = ceil((double)remedy->needed * remedy->process_ns / minute_ns);
	size_t most = remedy->disturbed ? DISTURBED_PROCESSES_MAX : PROCESSES_MAX;
	bool known = !remedy->unknown && remedy->needed <= most;
	if (remedy->open) {
		strbuf_puts(out, ": other cells of the comparison have too few processes");
		return;
	}
	add_reason(remedy, out);
	if (known)
		strbuf_printf(
			out,
			"; about %zu processes each would settle it%s: --repeat %zu (%.0f min)",
			remedy->needed, remedy->disturbed ? " then" : "", remedy->needed,
			fmax(minutes, 1));
	else if (!remedy->disturbed)
		strbuf_printf(out,
			      "; more than %d processes each would be needed (prony doctor shows "
			      "what disturbs the machine)",
			      PROCESSES_MAX);
}

bool summary_undecided(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	struct remedy remedy = {.contenders = 0};
	add_remedy(summary, comparison, &remedy);
	if (remedy.contenders == 0)
		return false;
	name_undecided(summary, comparison, &remedy, out);
	add_cost(&remedy, out);
	return true;
}

bool summary_undecided_among(const struct summary *summary, const size_t *comparisons, size_t count,
			     struct strbuf *out)
{
	struct remedy remedy = {.contenders = 0};
	for (size_t i = 0; i < count; i++)
		if (comparisons[i] != SIZE_MAX)
			add_remedy(summary, comparisons[i], &remedy);
	if (remedy.contenders == 0)
		return false;
	strbuf_printf(out, "no rank for %zu of %zu", remedy.contenders, remedy.of);
	add_cost(&remedy, out);
	return true;
}
