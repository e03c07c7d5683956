/* Writes the results in words: which framework is fastest where, and how certain that is. It
 * repeats the ranks of the tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/figures.h"
#include "report/html_internal.h"
#include "report/text.h"

enum { PLACES_SHOWN = 3, GROUP_BYTES = 512 };

/* Comparisons that share a sentence. */
struct group {
	size_t count, places[PLACES_SHOWN];
	bool shared;			/* by several frameworks */
	const struct summary_row *next; /* the one after them, in the last comparison */
	double least, most;		/* its ratio to them; NaN if none has a next one */
};

struct groups {
	struct names names;
	struct group *rows;
	size_t capacity;
};

/* `apart`: not to a group of the same names, but to one of its own. */
static struct group *add_to(struct groups *groups, const char *names, size_t place, bool apart)
{
	size_t known = groups->names.count;
	char key[GROUP_BYTES + sizeof place];
	size_t length = (size_t)snprintf(key, GROUP_BYTES, "%s", names) + 1;
	memcpy(key + length, &place, sizeof place);
	size_t number = names_add(&groups->names, key, length + (apart ? sizeof place : 0));
	groups->rows = memory_grow(groups->rows, number, &groups->capacity, sizeof *groups->rows);
	struct group *group = &groups->rows[number];
	if (number == known)
		*group = (struct group){.least = NAN, .most = NAN};
	if (group->count < PLACES_SHOWN)
		group->places[group->count] = place;
	group->count++;
	return group;
}

static void release(struct groups *groups)
{
	names_release(&groups->names);
	free(groups->rows);
}

/* Finds the frameworks that share the first rank of a comparison, optionally without native: their
 * names, separated by commas. Returns their number; *next: the row after them, NULL if none. */
static size_t find_first(const struct summary *summary, size_t comparison, bool without_native,
			 char out[GROUP_BYTES], const struct summary_row **next)
{
	int rank = 0;
	size_t count = 0, used = 0;
	*out = '\0';
	*next = NULL;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		const char *name = row->cell->cell.framework;
		if (!row->comparable || (without_native && !strcmp(name, "native")))
			continue;
		/* If the order is unknown, no framework is the first. */
		if (rank > 0 && row->rank != rank)
			*next = row;
		if (row->rank == 0 || *next)
			break;
		rank = row->rank;
		if (used < GROUP_BYTES)
			used += (size_t)snprintf(out + used, GROUP_BYTES - used, "%s%s",
						 count > 0 ? ", " : "", name);
		count++;
	}
	return count;
}

/* "; openvino, the next, takes 1.12x as long (95 % interval 1.05x to 1.20x)" */
static void add_next(const struct summary_row *next, struct strbuf *out)
{
	char ratio[FORMAT_BYTES], interval[FIGURE_INTERVAL_BYTES];
	figure_interval_text(FIGURE_LEAD, next, interval);
	format_ratio_within(next->lead.ratio, contrast_half_width(&next->lead), ratio,
			    sizeof ratio);
	html_text("; ", next->cell->cell.framework, "", out);
	strbuf_printf(out, ", the next, takes %s as long", ratio);
	if (*interval)
		strbuf_printf(out, " (95 %% interval %s)", interval);
}

/* "; the next takes 1.12x to 3.4x as long" */
static void add_margins(const struct group *group, struct strbuf *out)
{
	char least[FORMAT_BYTES], most[FORMAT_BYTES];
	format_ratio(group->least, least, sizeof least);
	format_ratio(group->most, most, sizeof most);
	strbuf_printf(out, "; the next takes %s", least);
	if (strcmp(least, most) != 0)
		strbuf_printf(out, " to %s", most);
	strbuf_puts(out, " as long");
}

static const char *place_title(const struct html_page *page, const struct summary *summary,
			       size_t place, char title[CELL_KEY_BYTES])
{
	html_work(page, &summary->rows[summary->first[place]].cell->cell, title, CELL_KEY_BYTES);
	return title;
}

static void add_places(const struct html_page *page, const struct summary *summary,
		       const struct group *group, struct strbuf *out)
{
	char title[CELL_KEY_BYTES];
	for (size_t i = 0; i < group->count && i < PLACES_SHOWN; i++)
		html_text(i > 0 ? "; " : ": ", place_title(page, summary, group->places[i], title),
			  "", out);
	if (group->count > PLACES_SHOWN)
		strbuf_printf(out, "; and %zu more", group->count - PLACES_SHOWN);
}

/* "lenet, batch 32: native is fastest by the figures (705 us); openvino may be as fast (1.04x,
 * 0.96x to 1.13x)" */
static void add_unproved(const struct html_page *page, const struct summary *summary,
			 size_t comparison, struct strbuf *out)
{
	const struct summary_row *leader = summary_leader(summary, comparison);
	char title[CELL_KEY_BYTES], step[FORMAT_BYTES];
	struct strbuf rivals;
	if (!leader)
		return;
	strbuf_init(&rivals, 0);
	html_text("<li>", place_title(page, summary, comparison, title), ": <strong>", out);
	text_html(leader->cell->cell.framework, out);
	figure_text(FIGURE_STEP, leader, step);
	strbuf_printf(out, "</strong> %s (%s)", summary_lead_words(summary, comparison), step);
	summary_rivals(summary, comparison, &rivals);
	text_html(strbuf_text(&rivals), out);
	strbuf_puts(out, ".</li>\n");
	strbuf_release(&rivals);
}

/* Whether native alone is first. Only then do ranks tell which of the others is the fastest. */
static bool is_led_by_native(const struct summary *summary, size_t comparison)
{
	const struct summary_row *row = &summary->rows[summary->first[comparison]];
	return row->rank == 1 && !row->tied && !strcmp(row->cell->cell.framework, "native");
}

/* Returns 0 if other cells may be faster than each of them. */
static size_t count_comparable(const struct summary *summary, size_t comparison)
{
	size_t comparable = 0;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++)
		comparable += summary->rows[i].comparable && !summary->rows[i].open;
	return comparable;
}

/* Adds a sentence on a set of frameworks that comes first in `group->count` of `compared`
 * comparisons. */
static void add_group(const struct html_page *page, const struct summary *summary,
		      const struct group *group, const char *names, size_t compared,
		      bool without_native, struct strbuf *out)
{
	const char *is = group->shared ? "are tied for first, as they cannot be told apart,"
				       : "is the fastest";
	bool single = group->count == 1 && !without_native;
	char title[CELL_KEY_BYTES], step[FORMAT_BYTES];
	strbuf_puts(out, "<li>");
	if (single)
		html_text("", place_title(page, summary, group->places[0], title), ": ", out);
	html_text("<strong>", names, "</strong> ", out);
	strbuf_puts(out, is);
	if (single) {
		figure_text(FIGURE_STEP, &summary->rows[summary->first[group->places[0]]], step);
		strbuf_printf(out, group->shared ? " with %s a step" : " (%s a step)", step);
	} else {
		strbuf_printf(out, " in %zu of %zu comparisons%s", group->count, compared,
			      without_native ? " without native, the floor" : "");
	}
	if (single && group->next)
		add_next(group->next, out);
	else if (!without_native && group->next)
		add_margins(group, out);
	if (!single)
		add_places(page, summary, group, out);
	strbuf_puts(out, ".</li>\n");
}

/* "In 5 more comparisons, the fastest is not proved; by the figures it is native in 4, xla in 1."
 */
static void add_others(const struct groups *others, size_t count, struct strbuf *out)
{
	strbuf_printf(out, "<li>In %zu more comparison%s, the fastest is not proved", count,
		      count == 1 ? "" : "s");
	for (size_t i = 0; i < others->names.count; i++) {
		html_text(i > 0 ? ", " : "; by the figures it is ", others->names.rows[i].bytes, "",
			  out);
		strbuf_printf(out, " in %zu", others->rows[i].count);
	}
	strbuf_puts(out, ".</li>\n");
}

/* Says why no comparison has two frameworks to rank. */
static const char *nothing_to_rank(const struct summary *summary)
{
	bool gated = false, timed = false, ok = false, pending = false;
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		gated |= (cell->flags & CELL_FLAG_GATE_ONLY) != 0;
		timed |= summary->rows[i].step.n > 0;
		ok |= cell->status == CELL_OK;
		pending |= cell->status == CELL_PENDING;
	}
	if (gated && !timed)
		return "Nothing was timed: the run only checked that the frameworks "
		       "<a href=\"#parity\">do the same work</a>.";
	if (pending)
		return "The run is not finished: no comparison has two frameworks with enough "
		       "processes yet.";
	return ok ? "No comparison has two frameworks to rank."
		  : "No cell is ok: see <a href=\"#ledger\">what did not run, and why</a>.";
}

/* Adds one sentence for each of few comparisons; of many, for each set of frameworks that comes
 * first in any. Without native only of several: the sentence on one names the next after native. */
static void add_winners(const struct html_page *page, const struct summary *summary,
			bool without_native, struct strbuf *out)
{
	struct groups groups = {.rows = NULL}, others = {.rows = NULL};
	bool apart = summary->comparison_count <= PLACES_SHOWN;
	size_t compared = 0, unproved = 0;
	char names[GROUP_BYTES];
	for (size_t c = 0; c < summary->comparison_count; c++) {
		const struct summary_row *next;
		/* A single framework has nothing to be compared with. */
		if (count_comparable(summary, c) < (without_native ? 3 : 2) ||
		    (without_native && !is_led_by_native(summary, c)))
			continue;
		compared++;
		size_t count = find_first(summary, c, without_native, names, &next);
		if (count > 0) {
			struct group *group = add_to(&groups, names, c, apart);
			group->shared = count > 1;
			group->next = next ? next : group->next;
			group->least = fmin(group->least, next ? next->lead.ratio : NAN);
			group->most = fmax(group->most, next ? next->lead.ratio : NAN);
		} else if (!without_native && unproved++ < PLACES_SHOWN) {
			add_unproved(page, summary, c, out);
		} else if (!without_native && summary_leader(summary, c)) {
			add_to(&others, summary_leader(summary, c)->cell->cell.framework, c, false);
		}
	}
	for (size_t i = 0; i < groups.names.count && (!without_native || compared > 1); i++)
		add_group(page, summary, &groups.rows[i], groups.names.rows[i].bytes, compared,
			  without_native, out);
	if (unproved > PLACES_SHOWN)
		add_others(&others, unproved - PLACES_SHOWN, out);
	if (groups.names.count == 0 && unproved == 0 && !without_native)
		strbuf_printf(out, "<li>%s</li>\n", nothing_to_rank(summary));
	release(&groups);
	release(&others);
}

struct certainty {
	double narrowest, widest;
	size_t ranked, tied, no_interval, least, most, unsteady;
};

static struct certainty judge(const struct summary *summary)
{
	struct certainty sure = {.narrowest = INFINITY, .least = SIZE_MAX};
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (!row->comparable)
			continue;
		sure.ranked++;
		sure.tied += row->tied;
		sure.unsteady += (row->cell->flags & CELL_FLAG_NOT_STEADY) != 0;
		sure.least = row->step.n < sure.least ? row->step.n : sure.least;
		sure.most = row->step.n > sure.most ? row->step.n : sure.most;
		if (!isfinite(row->step.half_width)) {
			sure.no_interval++;
			continue;
		}
		sure.narrowest = fmin(sure.narrowest, row->step.half_width);
		sure.widest = fmax(sure.widest, row->step.half_width);
	}
	return sure;
}

void html_certainty(const struct summary *summary, struct strbuf *out)
{
	struct certainty sure = judge(summary);
	char narrow[FORMAT_BYTES], wide[FORMAT_BYTES];
	if (sure.ranked == 0)
		return;
	strbuf_printf(out, "<p>Certainty: %zu", sure.least);
	if (sure.most != sure.least)
		strbuf_printf(out, " to %zu", sure.most);
	strbuf_printf(out, " process%s a cell", sure.most == 1 ? "" : "es");
	if (sure.no_interval < sure.ranked) {
		format_percent(sure.narrowest, narrow, sizeof narrow);
		format_percent(sure.widest, wide, sizeof wide);
		strbuf_printf(out, ", half widths of the 95 %% intervals from %s to %s", narrow,
			      wide);
	}
	if (sure.no_interval > 0)
		strbuf_printf(out, "; %zu of %zu cells with figures have no interval",
			      sure.no_interval, sure.ranked);
	if (sure.tied > 0)
		strbuf_printf(out, "; %zu of %zu share a rank", sure.tied, sure.ranked);
	if (sure.unsteady > 0)
		strbuf_printf(out, "; %zu %s not steady", sure.unsteady,
			      sure.unsteady == 1 ? "was" : "were");
	strbuf_puts(out, ".");
	if (!strcmp(summary->run->meta.effort, "quick"))
		strbuf_puts(out, " This was a quick run, for screening: run without --quick, or "
				 "with --rigorous, before you publish it.");
	strbuf_puts(out, "</p>\n");
}

void html_conclusions(const struct html_page *page, struct strbuf *out)
{
	for (size_t run = 0; run < page->count; run++) {
		if (page->count > 1)
			html_text("<h3>", page->labels[run], "</h3>\n", out);
		strbuf_puts(out, "<ul class=\"lead\">\n");
		add_winners(page, page->summaries[run], false, out);
		if (page->summaries[run]->comparison_count > PLACES_SHOWN)
			add_winners(page, page->summaries[run], true, out);
		strbuf_puts(out, "</ul>\n");
	}
}
