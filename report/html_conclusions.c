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
	bool shared; /* by several frameworks */
};

struct groups {
	struct names names;
	struct group *rows;
	size_t capacity;
};

static struct group *add_to(struct groups *groups, const char *key, size_t place)
{
	size_t known = groups->names.count;
	size_t number = names_add(&groups->names, key, strlen(key) + 1);
	groups->rows = memory_grow(groups->rows, number, &groups->capacity, sizeof *groups->rows);
	struct group *group = &groups->rows[number];
	if (number == known)
		*group = (struct group){.count = 0};
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
 * names, separated by commas. Returns their number. */
static size_t find_first(const struct summary *summary, size_t comparison, bool without_native,
			 char out[GROUP_BYTES])
{
	int rank = 0;
	size_t count = 0, used = 0;
	*out = '\0';
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		const char *name = row->cell->cell.framework;
		if (!row->comparable || (without_native && !strcmp(name, "native")))
			continue;
		/* If the order is unknown, no framework is the first. */
		if (row->rank == 0 || (rank > 0 && row->rank != rank))
			break;
		rank = row->rank;
		if (used < GROUP_BYTES)
			used += (size_t)snprintf(out + used, GROUP_BYTES - used, "%s%s",
						 count > 0 ? ", " : "", name);
		count++;
	}
	return count;
}

static void add_places(const struct summary *summary, const struct group *group, struct strbuf *out)
{
	for (size_t i = 0; i < group->count && i < PLACES_SHOWN; i++) {
		char title[CELL_KEY_BYTES];
		summary_comparison_title(
			&summary->rows[summary->first[group->places[i]]].cell->cell, title,
			sizeof title);
		strbuf_puts(out, i > 0 ? "; " : ": ");
		text_html(title, out);
	}
	if (group->count > PLACES_SHOWN)
		strbuf_printf(out, "; and %zu more", group->count - PLACES_SHOWN);
	strbuf_puts(out, ".</li>\n");
}

/* "lenet, batch 32: native is fastest by the figures (705 us); openvino may be as fast (1.04x,
 * 0.96x to 1.13x)" */
static void add_unproved(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	const struct summary_row *leader = summary_leader(summary, comparison);
	char title[CELL_KEY_BYTES], step[FORMAT_BYTES];
	struct strbuf rivals;
	if (!leader)
		return;
	strbuf_init(&rivals, 0);
	summary_comparison_title(&leader->cell->cell, title, sizeof title);
	html_text("<li>", title, ": <strong>", out);
	text_html(leader->cell->cell.framework, out);
	figure_text(FIGURE_STEP, leader, step);
	strbuf_printf(out, "</strong> is fastest by the figures (%s)", step);
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

static size_t count_comparable(const struct summary *summary, size_t comparison)
{
	size_t comparable = 0;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++)
		comparable += summary->rows[i].comparable;
	return comparable;
}

/* Adds one sentence for each set of frameworks that comes first in any comparison. */
static void add_winners(const struct summary *summary, bool without_native, struct strbuf *out)
{
	struct groups groups = {.rows = NULL};
	size_t compared = 0, unproved = 0;
	char names[GROUP_BYTES];
	for (size_t c = 0; c < summary->comparison_count; c++) {
		/* A single framework has nothing to be compared with. */
		if (count_comparable(summary, c) < (without_native ? 3 : 2) ||
		    (without_native && !is_led_by_native(summary, c)))
			continue;
		compared++;
		size_t count = find_first(summary, c, without_native, names);
		if (count > 0)
			add_to(&groups, names, c)->shared = count > 1;
		else if (!without_native && unproved++ < PLACES_SHOWN)
			add_unproved(summary, c, out);
	}
	for (size_t i = 0; i < groups.names.count; i++) {
		const struct group *group = &groups.rows[i];
		strbuf_puts(out, "<li><strong>");
		text_html(groups.names.rows[i].bytes, out);
		strbuf_printf(out, "</strong> %s in %zu of %zu comparison%s%s",
			      group->shared ? "are tied for first (they cannot be told apart)"
					    : "is the fastest",
			      group->count, compared, compared == 1 ? "" : "s",
			      without_native ? " without native, the floor" : "");
		add_places(summary, group, out);
	}
	if (unproved > PLACES_SHOWN)
		strbuf_printf(out, "<li>In %zu more comparisons, the fastest is not proved.</li>\n",
			      unproved - PLACES_SHOWN);
	if (groups.names.count == 0 && unproved == 0 && !without_native)
		strbuf_puts(out, "<li>No comparison has two frameworks to rank.</li>\n");
	release(&groups);
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

static void add_certainty(const struct summary *summary, struct strbuf *out)
{
	struct certainty sure = judge(summary);
	char narrow[FORMAT_BYTES], wide[FORMAT_BYTES];
	if (sure.ranked == 0)
		return;
	strbuf_printf(out, "<li>Certainty: %zu", sure.least);
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
	strbuf_puts(out, "</li>\n");
}

void html_conclusions(const struct html_page *page, struct strbuf *out)
{
	for (size_t run = 0; run < page->count; run++) {
		const struct summary *summary = page->summaries[run];
		if (page->count > 1) {
			html_text("<h3>", page->labels[run], "</h3>\n", out);
		}
		strbuf_puts(out, "<ul>\n");
		add_winners(summary, false, out);
		add_winners(summary, true, out);
		add_certainty(summary, out);
		strbuf_puts(out, "</ul>\n");
	}
}
