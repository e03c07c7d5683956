/* Writes a comparison for people: terminal and Markdown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "report/compare_internal.h"
#include "report/format.h"
#include "report/replicates.h"
#include "report/table.h"
#include "report/text.h"

static const struct table_column columns[] = {
	{"cell", "cell", TABLE_LEFT},
	{"A", "a_ns", TABLE_RIGHT},
	{"B", "b_ns", TABLE_RIGHT},
	{"B / A", "ratio", TABLE_RIGHT},
	{"95 % interval", "interval", TABLE_RIGHT},
	{"n", "n", TABLE_RIGHT},
	{"verdict", "verdict", TABLE_LEFT},
};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns, TEXT_BYTES = 96 };

void compare_side_text(const struct compare_side *side, struct strbuf *out)
{
	const struct run_meta *meta = &side->run->meta;
	char when[32];
	clock_format_utc(meta->started_wall_ns, when, sizeof when);
	if (side->framework)
		strbuf_printf(out, "%s of ", side->framework);
	strbuf_printf(out, "run %lld (%.8s)%s%s", (long long)meta->id, meta->uid,
		      *meta->name ? " " : "", meta->name);
	if (*meta->suite)
		strbuf_printf(out, ", %s", meta->suite);
	strbuf_printf(out, ", %s, on %s, %s effort", when, meta->host, meta->effort);
}

const char *compare_method(const struct compare *compare)
{
	return compare->paired ? "paired by rounds" : "different runs (Welch)";
}

static char *needed_text(const struct compare *compare, const struct compare_row *row)
{
	const struct contrast *c = &row->contrast;
	const char *unit = c->paired ? "pairs of processes" : "processes of each";
	const double minute_ns = 60e9;
	char threshold[FORMAT_BYTES];
	format_percent(compare->threshold, threshold, sizeof threshold);
	if (isnan(c->error))
		return memory_strdup("an interval needs at least two processes of each");
	if (row->needed >= CONTRAST_NEEDED_MAX)
		return memory_printf("the ratio is so close to the threshold of %s that even %d %s "
				     "would not decide; use another --threshold",
				     threshold, CONTRAST_NEEDED_MAX, unit);
	size_t now = c->na < c->nb ? c->na : c->nb, needed = row->needed > now ? row->needed : now;
	double minutes =
		ceil((double)needed *
		     (replicates_process_ns(row->a) + replicates_process_ns(row->b)) / minute_ns);
	char cost[48] = "";
	if (minutes > 0) /* unknown for runs stored without it */
		snprintf(cost, sizeof cost, "about %.0f min in total", minutes);
	if (row->needed <= now)
		return memory_printf(
			"the same number of processes again would probably decide%s%s%s",
			*cost ? " (" : "", cost, *cost ? ")" : "");
	return memory_printf("about %zu %s would decide (now %zu): --repeat %zu%s%s", row->needed,
			     unit, now, row->needed, *cost ? ", " : "", cost);
}

char *compare_note(const struct compare *compare, const struct compare_row *row)
{
	if (!row->judged || row->verdict != VERDICT_INCONCLUSIVE)
		return memory_strdup(row->reason);
	if (*row->reason && !row->needed)
		return memory_strdup(row->reason);
	char *needed = needed_text(compare, row);
	char *note =
		*row->reason ? memory_printf("%s; %s", row->reason, needed) : memory_strdup(needed);
	free(needed);
	return note;
}

static void interval_text(const struct contrast *contrast, char out[TEXT_BYTES])
{
	if (isnan(contrast->low))
		snprintf(out, TEXT_BYTES, "-");
	else if (contrast->high < 9.995)
		snprintf(out, TEXT_BYTES, "%.3f-%.3f", contrast->low, contrast->high);
	else
		snprintf(out, TEXT_BYTES, "%.3g-%.3g", contrast->low, contrast->high);
}

static void ratio_text(double ratio, char out[TEXT_BYTES])
{
	if (isnan(ratio))
		snprintf(out, TEXT_BYTES, "-");
	else
		snprintf(out, TEXT_BYTES, ratio < 9.995 ? "%.3fx" : "%.3gx", ratio);
}

static void count_text(const struct compare_row *row, char out[TEXT_BYTES])
{
	if (row->contrast.paired)
		snprintf(out, TEXT_BYTES, "%zu", row->contrast.na);
	else if (row->step_a.n == row->step_b.n)
		snprintf(out, TEXT_BYTES, "%zu", row->step_a.n);
	else
		snprintf(out, TEXT_BYTES, "%zu,%zu", row->step_a.n, row->step_b.n);
}

/* Returns the result for undisturbed steps and whether it differs from the typical one; "" without
 * them. The caller frees. */
static char *undisturbed_text(const struct compare_row *row)
{
	const struct contrast *contrast = &row->undisturbed;
	char ratio[TEXT_BYTES], interval[TEXT_BYTES];
	if (isnan(contrast->low))
		return memory_strdup("");
	bool other = row->verdict != VERDICT_INCONCLUSIVE &&
		     row->undisturbed_verdict != VERDICT_INCONCLUSIVE &&
		     row->verdict != row->undisturbed_verdict;
	ratio_text(contrast->ratio, ratio);
	interval_text(contrast, interval);
	return memory_printf("undisturbed steps: %s (%s), %s%s", ratio, interval,
			     verdict_word(row->undisturbed_verdict),
			     other ? ": a different verdict; the typical steps count" : "");
}

static void add_row(const struct compare *compare, const struct compare_row *row,
		    struct table *table)
{
	char texts[COLUMN_COUNT][CELL_KEY_BYTES];
	label_text(&compare->labels, &row->b->cell, texts[0], sizeof texts[0]);
	format_duration_within(row->step_a.center, row->step_a.half_width, texts[1], TEXT_BYTES);
	format_duration_within(row->step_b.center, row->step_b.half_width, texts[2], TEXT_BYTES);
	ratio_text(row->contrast.ratio, texts[3]);
	interval_text(&row->contrast, texts[4]);
	count_text(row, texts[5]);
	snprintf(texts[6], sizeof texts[6], "%s", verdict_word(row->verdict));
	table_row(table);
	for (int i = 0; i < COLUMN_COUNT; i++)
		table_cell(table, texts[i], NULL);
	char *note = compare_note(compare, row), *undisturbed = undisturbed_text(row);
	char *both = memory_printf("%s%s%s", note, *note && *undisturbed ? "; " : "", undisturbed);
	if (*both)
		table_note(table, both);
	free(both);
	free(undisturbed);
	free(note);
}

static struct table *make_table(const struct compare *compare)
{
	struct table *table = table_new(columns, COLUMN_COUNT);
	for (size_t i = 0; i < compare->matched; i++)
		if (compare->rows[i].judged)
			add_row(compare, &compare->rows[i], table);
	return table;
}

void compare_summary_text(const struct compare *compare, struct strbuf *out)
{
	const struct contrast *all = &compare->overall;
	size_t judged = 0;
	const char *before = ": ";
	for (int v = 0; v < VERDICT_COUNT; v++)
		judged += compare->verdicts[v];
	strbuf_printf(out, "%zu of %zu matched cell%s judged", judged, compare->matched,
		      compare->matched == 1 ? "" : "s");
	for (int v = 0; v < VERDICT_COUNT; v++) {
		if (!compare->verdicts[v])
			continue;
		strbuf_printf(out, "%s%zu %s", before, compare->verdicts[v],
			      verdict_word((enum verdict)v));
		before = ", ";
	}
	if (judged > 1 && !isnan(all->low))
		strbuf_printf(out,
			      "; geometric mean of their ratios %.3fx (95 %% interval %.3f-%.3f)",
			      all->ratio, all->low, all->high);
	if (compare->broken)
		strbuf_printf(out, "; %zu ok in A but not in B", compare->broken);
}

/* Output of the lines under the table: the buffer and the format. */
struct lines {
	struct strbuf *out;
	const char *before, *after;
	int width;
	bool markdown;
};

static void add_line(const struct lines *to, const char *text, bool plain)
{
	if (to->markdown) {
		strbuf_puts(to->out, "- ");
		text_markdown(text, to->out);
		strbuf_putc(to->out, '\n');
	} else {
		text_wrap(text, 0, to->width, plain ? "" : to->before, plain ? "" : to->after,
			  to->out);
	}
}

/* Adds the matched cells without figures: one line for those that ended alike on both sides, and
 * one line for each other cell with its two endings. */
static void add_unjudged(const struct lines *to, const struct compare *compare)
{
	struct strbuf alike;
	strbuf_init(&alike, 0);
	for (size_t i = 0; i < compare->matched; i++) {
		const struct compare_row *row = &compare->rows[i];
		char label[CELL_KEY_BYTES];
		if (row->judged)
			continue;
		label_text(&compare->labels, &row->b->cell, label, sizeof label);
		if (row->a->status == row->b->status) {
			strbuf_printf(&alike, "%s%s (%s)", alike.length ? "; " : "", label,
				      cell_status_name(row->a->status));
			continue;
		}
		char *text = memory_printf("not judged: %s: %s", label, row->reason);
		add_line(to, text, false);
		free(text);
	}
	if (alike.length) {
		char *text = memory_printf("no figures in A and B: %s", strbuf_text(&alike));
		add_line(to, text, true);
		free(text);
	}
	strbuf_release(&alike);
}

/* Adds the cells without a counterpart: "only in A: lenet, ...", or their number if it is large. */
static void add_unmatched(const struct lines *to, const struct compare *compare, bool of_a)
{
	enum { LISTED = 3 };
	size_t from = compare->matched + (of_a ? 0 : compare->only_a);
	size_t count = of_a ? compare->only_a : compare->only_b;
	if (count > LISTED && !compare->full) {
		char *text = memory_printf("only in %s: %zu cells (prony compare --full lists "
					   "them)",
					   of_a ? "A" : "B", count);
		add_line(to, text, true);
		free(text);
		return;
	}
	for (size_t i = from; i < from + count; i++) {
		const struct compare_row *row = &compare->rows[i];
		const struct cell *cell = of_a ? &row->a->cell : &row->b->cell;
		char title[CELL_KEY_BYTES];
		struct labels none = {.varies = {false}};
		label_common(&none, cell, title, sizeof title);
		char *text = memory_printf("only in %s: %s, %s", of_a ? "A" : "B", cell->framework,
					   title);
		add_line(to, text, true);
		free(text);
	}
}

/* Whether every two runs differ in this. */
static bool always_differs(const struct compare_difference *difference)
{
	static const char *const names[] = {
		"findings",    "load",	"memory_available_bytes", "pressure_cpu", "recorded_at",
		"steal_share", "suite", "swap_free_bytes"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (difference->kind == DIFFERENCE_INFORMATIONAL &&
		    !strcmp(difference->what, names[i]))
			return true;
	return false;
}

static void add_differences(const struct lines *to, const struct compare *compare)
{
	static const char *const titles[DIFFERENCE_KINDS] = {
		"differs, but must match: ", "differs, but should match: ",
		"also different (informational): "};
	for (int kind = 0; kind < DIFFERENCE_KINDS; kind++) {
		struct strbuf text;
		bool first = true;
		strbuf_init(&text, 0);
		for (size_t i = 0; i < compare->difference_count; i++) {
			const struct compare_difference *at = &compare->differences[i];
			if ((int)at->kind != kind || (!compare->full && always_differs(at)))
				continue;
			strbuf_printf(&text, "%s%s", first ? titles[kind] : ", ", at->what);
			/* The values of informational differences are in JSON. */
			if (kind != DIFFERENCE_INFORMATIONAL)
				strbuf_printf(&text, " (%s -> %s)", at->a, at->b);
			first = false;
		}
		if (!first)
			add_line(to, strbuf_text(&text), kind != DIFFERENCE_MUST);
		strbuf_release(&text);
	}
}

static void add_threshold(const struct lines *to, const struct compare *compare)
{
	char threshold[FORMAT_BYTES], noise[FORMAT_BYTES];
	format_percent(compare->threshold, threshold, sizeof threshold);
	format_percent(compare->noise, noise, sizeof noise);
	char *text = memory_printf("%s; SAME, FASTER, SLOWER: the 95 %% t interval of B / A is "
				   "within, below or above 1 +/- %s",
				   compare_method(compare), threshold);
	add_line(to, text, true);
	free(text);
	if (compare->threshold >= compare->noise || isnan(compare->noise))
		return;
	text = memory_printf(
		"the threshold is below this machine's noise of %s: a difference may be noise",
		noise);
	add_line(to, text, false);
	free(text);
}

/*
 * Adds the smallest difference that comparisons on the machine can find, and when it was measured.
 */
static void add_noise_floor(const struct lines *to, const struct compare *compare)
{
	char floor[FORMAT_BYTES];
	format_percent(compare->noise_floor, floor, sizeof floor);
	if (isnan(compare->noise_floor)) {
		add_line(to, "noise floor: not measured on this machine (prony selftest)", true);
		return;
	}
	bool old = compare->noise_age_days > COMPARE_NOISE_DAYS;
	const char *when = compare->noise_measured_at ? compare->noise_measured_at : "unknown when";
	char *text = old ? memory_printf("noise floor: %s, measured %s, %.0f days before the run: "
					 "the machine may have changed since (prony selftest)",
					 floor, when, compare->noise_age_days)
			 : memory_printf("noise floor: %s (a slowdown of twice this size is "
					 "detected), measured %s",
					 floor, when);
	add_line(to, text, !old);
	free(text);
	if (!compare->noise_elsewhere)
		return;
	text = memory_printf("the noise floor was measured under other conditions: %s (to repeat: "
			     "prony selftest)",
			     compare->noise_elsewhere);
	add_line(to, text, false);
	free(text);
}

static void add_below(const struct lines *to, const struct compare *compare)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	compare_summary_text(compare, &text);
	add_line(to, strbuf_text(&text), false);
	strbuf_release(&text);
	add_unjudged(to, compare);
	add_unmatched(to, compare, true);
	add_unmatched(to, compare, false);
	add_differences(to, compare);
	add_threshold(to, compare);
	add_noise_floor(to, compare);
}

/* Adds the two sides and what all cells have in common. */
static void add_heading(const struct compare *compare, int side, struct strbuf *out)
{
	strbuf_puts(out, side == 0 ? "A: " : "B: ");
	compare_side_text(side == 0 ? &compare->a : &compare->b, out);
}

static void common_text(const struct compare *compare, char out[CELL_KEY_BYTES])
{
	out[0] = '\0';
	if (compare->matched > 0)
		label_common(&compare->labels, &compare->rows[0].b->cell, out, CELL_KEY_BYTES);
}

void compare_render(const struct compare *compare, bool colour, int width, struct strbuf *out)
{
	const char *bold = colour ? TEXT_BOLD : "", *plain = colour ? TEXT_PLAIN : "";
	const struct lines to = {.out = out, .before = bold, .after = plain, .width = width};
	char common[CELL_KEY_BYTES];
	struct strbuf line;
	strbuf_init(&line, 0);
	for (int side = 0; side < 2; side++) {
		strbuf_clear(&line);
		add_heading(compare, side, &line);
		text_wrap(strbuf_text(&line), 0, width, bold, plain, out);
	}
	strbuf_release(&line);
	strbuf_putc(out, '\n');
	common_text(compare, common);
	if (*common)
		text_wrap(common, 0, width, bold, plain, out);
	if (compare->matched > 0) {
		struct table *table = make_table(compare);
		table_render_text(table, colour, width, out);
		table_free(table);
		strbuf_putc(out, '\n');
	}
	add_below(&to, compare);
}

void compare_markdown(const struct compare *compare, struct strbuf *out)
{
	const struct lines to = {.out = out, .markdown = true};
	char common[CELL_KEY_BYTES];
	struct strbuf line;
	strbuf_init(&line, 0);
	for (int side = 0; side < 2; side++) {
		strbuf_clear(&line);
		add_heading(compare, side, &line);
		add_line(&to, strbuf_text(&line), true);
	}
	strbuf_release(&line);
	common_text(compare, common);
	strbuf_putc(out, '\n');
	text_markdown(common, out);
	strbuf_puts(out, "\n\n");
	if (compare->matched > 0) {
		struct table *table = make_table(compare);
		table_render_markdown(table, out);
		table_free(table);
		strbuf_putc(out, '\n');
	}
	add_below(&to, compare);
}
