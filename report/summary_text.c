/* A summary as text: headings, the table of each comparison, the parity line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "report/format.h"
#include "report/pivot.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "report/text.h"
#include "samples/disturbance.h"

/* In order of weight: a narrow terminal shows the first ones. */
static const struct table_column columns[] = {
	{"#", "rank", TABLE_RIGHT},
	{"framework", "framework", TABLE_LEFT},
	{"step", "step_ns", TABLE_RIGHT},
	{"+/-", "half_width", TABLE_RIGHT},
	{"items", "items_per_second", TABLE_RIGHT},
	{"vs native", "floor_ratio", TABLE_RIGHT},
	{"+/-", "floor_half_width", TABLE_RIGHT},
	{"status", "status", TABLE_LEFT},
	{"first step", "to_first_step_ns", TABLE_RIGHT},
	{"memory", "rss_peak_bytes", TABLE_RIGHT},
	{"n", "processes", TABLE_RIGHT},
	{"FLOP/s", "flops_per_second", TABLE_RIGHT},
	{"of peak", "peak_share", TABLE_RIGHT},
	{"energy/item", "joules_per_item", TABLE_RIGHT},
};

/* The last three stand there where something is known of them, and there is room: always from
 * WIDE_WIDTH on, where a long status gives way to them. */
enum {
	COLUMN_COUNT = sizeof columns / sizeof *columns,
	USUAL_COLUMNS = COLUMN_COUNT - 3,
	NARROW_COLUMNS = 8,
	NARROW_WIDTH = 100,
	WIDE_WIDTH = 144
};

void summary_comparison_title(const struct cell *cell, char *out, size_t out_bytes)
{
	size_t used = 0;
	for (int place = 0; place < AXIS_COUNT; place++) {
		const struct axis *axis = &axes[axis_in_order(place)];
		char text[CELL_WORD_BYTES];
		if (!axis->title || !axis_applies(axis, cell) ||
		    (axis->quiet && axis_is_default(axis, cell)) || used >= out_bytes)
			continue;
		axis_text(axis, axis_value(axis, cell), text);
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", axis->title, text);
	}
}

/* " 2 of 7: busy+quota" */
static void add_disturbance(const struct summary_row *row, char *out, size_t out_bytes)
{
	size_t used = strlen(out);
	char words[64];
	if (row->processes_disturbed < row->processes)
		snprintf(out + used, out_bytes - used, " %zu of %zu", row->processes_disturbed,
			 row->processes);
	used = strlen(out);
	disturbance_words(replicates_causes(row->cell), words, sizeof words);
	snprintf(out + used, out_bytes - used, "%s%s", *words ? ": " : "", words);
}

void summary_status_text(const struct summary *summary, const struct summary_row *row, char *out,
			 size_t out_bytes)
{
	char flags[CELL_FLAGS_BYTES];
	unsigned shown = row->cell->flags;
	if (!strcmp(summary->run->meta.effort, "quick"))
		shown &= ~(unsigned)CELL_FLAG_SCREENING;
	cell_flags_text(shown, flags, sizeof flags);
	snprintf(out, out_bytes, "%s", cell_status_name(row->cell->status));
	/* A space after each comma: a narrow column breaks lines there. */
	for (char *rest = flags, *flag; *flags && (flag = strsep(&rest, ","));) {
		size_t used = strlen(out);
		snprintf(out + used, out_bytes - used, "%s%s", flag == flags ? " (" : ", ", flag);
		if (cell_flags_parse(flag) == CELL_FLAG_DISTURBED)
			add_disturbance(row, out, out_bytes);
		used = strlen(out);
		snprintf(out + used, out_bytes - used, "%s", rest ? "" : ")");
	}
}

static void add_row(const struct summary *summary, const struct summary_row *row, size_t limit,
		    struct table *table)
{
	char texts[COLUMN_COUNT][192];
	const struct estimate *step = &row->step;
	/* Native's own ratio is 1 by definition: it has no interval. */
	double ratio_width =
		strcmp(row->cell->cell.framework, "native") ? row->floor_half_width : NAN;
	summary_rank_text(row, texts[0], sizeof texts[0]);
	const char *version = summary_version(row);
	snprintf(texts[1], sizeof texts[1], "%s%s%s", row->cell->cell.framework,
		 *version ? " " : "", version);
	format_duration_within(step->center, step->half_width, texts[2], sizeof texts[2]);
	format_percent(step->half_width, texts[3], sizeof texts[3]);
	format_rate(row->items_per_second, texts[4], sizeof texts[4]);
	summary_floor_text(row, texts[5], sizeof texts[5]);
	format_percent(ratio_width, texts[6], sizeof texts[6]);
	summary_status_text(summary, row, texts[7], sizeof texts[7]);
	format_duration_within(row->to_first_step_ns, NAN, texts[8], sizeof texts[8]);
	format_bytes(row->rss_peak_bytes, texts[9], sizeof texts[9]);
	snprintf(texts[10], sizeof texts[10], step->n > 0 ? "%zu" : "-", step->n);
	format_flops(row->flops, texts[11], sizeof texts[11]);
	format_percent(row->costs.peak_share, texts[12], sizeof texts[12]);
	format_energy(row->costs.joules_per_item, texts[13], sizeof texts[13]);
	json_t *values[COLUMN_COUNT] = {
		row->rank > 0 ? json_integer(row->rank) : json_null(),
		NULL,
		json_number(step->center),
		json_number(step->half_width),
		json_number(row->items_per_second),
		json_number(row->floor_ratio),
		json_number(ratio_width),
		NULL,
		json_number(row->to_first_step_ns),
		json_number(row->rss_peak_bytes),
		json_integer((json_int_t)step->n),
		json_number(row->flops),
		json_number(row->costs.peak_share),
		json_number(row->costs.joules_per_item),
	};
	table_row(table);
	for (size_t i = 0; i < limit; i++)
		table_cell(table, texts[i], values[i]);
	for (size_t i = limit; i < COLUMN_COUNT; i++)
		json_decref(values[i]);
	if (*summary_reason(row))
		table_note(table, summary_reason(row));
}

/* All columns of which a row of the comparison has something to say. */
static size_t columns_known(const struct summary *summary, size_t comparison)
{
	size_t known = USUAL_COLUMNS;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_costs *costs = &summary->rows[i].costs;
		if (isfinite(costs->joules_per_item))
			return COLUMN_COUNT;
		if (isfinite(costs->peak_share))
			known = COLUMN_COUNT - 1;
		else if (isfinite(summary->rows[i].flops) && known == USUAL_COLUMNS)
			known = USUAL_COLUMNS + 1;
	}
	return known;
}

struct table *summary_table(const struct summary *summary, size_t comparison, size_t limit)
{
	size_t known = columns_known(summary, comparison);
	if (limit == 0 || limit > known)
		limit = known;
	struct table *table = table_new(columns, limit);
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++)
		if (!summary->rows[i].folded)
			add_row(summary, &summary->rows[i], limit, table);
	return table;
}

/* The figure of the gate that came nearest to its bound, in units of it; NaN when there is none. */
static double worst_of(const json_t *evidence, const char **what)
{
	const json_t *worst = json_object_get(evidence, "worst");
	double value = json_real_or(worst, "value", NAN), bound = json_real_or(worst, "bound", NAN);
	*what = json_string_or(worst, "what", "?");
	return bound > 0 ? value / bound : NAN;
}

/* What no reference computes: it was only held to what other engines make of the same file. */
static void add_agreement(const struct summary *summary, struct strbuf *out)
{
	size_t agreed = 0, unproven = 0;
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		agreed += cell->evidence && cell->gate == CELL_OK &&
			  json_object_get(cell->evidence, "agreement");
		unproven += cell->evidence && cell->gate == CELL_UNPROVEN;
	}
	if (agreed > 0)
		strbuf_printf(out,
			      "; %zu only %s with other engines: no reference computes the "
			      "network, so that they may be wrong together",
			      agreed, agreed == 1 ? "agrees" : "agree");
	if (unproven > 0)
		strbuf_printf(out, "; %zu unproven", unproven);
}

/* Whether the gate held a cell to its work on random pixels alone, by what is stored of it: the
 * flag is younger than the evidence. */
static bool is_untied(const struct stored_cell *cell)
{
	return cell->gate == CELL_OK && json_object_get(cell->evidence, "equal_maxima");
}

/* Frameworks whose max-pools have another gradient of equal maxima: they train by that on this
 * data, and only the rest of their work was held to ours. */
static void add_untied(const struct summary *summary, size_t untied, struct strbuf *out)
{
	if (untied == 0)
		return;
	strbuf_printf(out, "; %zu only on random pixels (", untied);
	const char *comma = "";
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		bool known = !is_untied(cell);
		for (size_t k = 0; k < i && !known; k++)
			known = is_untied(summary->rows[k].cell) &&
				!strcmp(summary->rows[k].cell->cell.framework,
					cell->cell.framework);
		if (known)
			continue;
		strbuf_printf(out, "%s%s", comma, cell->cell.framework);
		comma = ", ";
	}
	strbuf_puts(out, "): of several equal maxima their max-pools choose otherwise, so that on "
			 "this data they train another network");
}

void summary_parity(const struct summary *summary, struct strbuf *out)
{
	size_t passed = 0, untied = 0, wrong = 0, absent = 0, ended = 0, kept = 0, loading = 0;
	size_t coarse = 0;
	double worst = NAN;
	const char *worst_what = "";
	for (size_t i = 0; i < summary->count; i++) {
		const struct stored_cell *cell = summary->rows[i].cell;
		const char *what;
		/* Nothing is computed, or a framework refuses the network: nothing to judge. */
		if (cell->cell.stage == STAGE_LOAD)
			loading += summary_only_loads(&summary->rows[i]);
		else if (!cell->evidence || cell->gate == CELL_UNSUPPORTED)
			absent += !summary->rows[i].folded;
		else if (cell->gate != CELL_OK && cell->gate != CELL_UNPROVEN)
			(*(cell->gate == CELL_MISMATCH ? &wrong : &ended))++;
		if (!cell->evidence || cell->gate != CELL_OK ||
		    json_object_get(cell->evidence, "agreement"))
			continue;
		(*(is_untied(cell) ? &untied : &passed))++;
		coarse += !is_untied(cell) && json_object_get(cell->evidence, "coarse");
		kept += !is_untied(cell) && *json_string_or(cell->evidence, "cached", "") != '\0';
		double ratio = worst_of(cell->evidence, &what);
		if (isfinite(ratio) && !(ratio <= worst)) {
			worst = ratio;
			worst_what = what;
		}
	}
	if (loading > 0 && passed + untied + wrong + ended + absent == 0) {
		strbuf_puts(out, "parity: nothing to prove, batches are loaded and nothing is "
				 "computed");
		return;
	}
	strbuf_printf(out, "parity: %zu of %zu cells did the same work", passed,
		      passed + untied + wrong);
	if (isfinite(worst))
		strbuf_printf(out, " (worst: %s at %.2g of its bound)", worst_what, worst);
	if (kept > 0)
		strbuf_printf(out, "; %zu of them found in an earlier run", kept);
	if (coarse > 0)
		strbuf_printf(out,
			      "; %zu of them coarsely: rounding alone may change as much as was "
			      "compared, so that the same in fp32 is the better proof",
			      coarse);
	if (wrong > 0)
		strbuf_printf(out, "; %zu did not and %s not ranked", wrong,
			      wrong == 1 ? "is" : "are");
	if (ended > 0)
		strbuf_printf(out, "; %zu ended in the gate before anything could be compared",
			      ended);
	add_agreement(summary, out);
	add_untied(summary, untied, out);
	if (absent > 0)
		strbuf_printf(out, "; %zu never came to the gate", absent);
	if (loading > 0)
		strbuf_printf(out, "; %zu only %s batches", loading,
			      loading == 1 ? "loads" : "load");
}

void summary_heading(const struct summary *summary, struct strbuf *out)
{
	const struct run_meta *meta = &summary->run->meta;
	char when[32];
	clock_format_utc(meta->started_wall_ns, when, sizeof when);
	strbuf_printf(out, "run %lld (%.8s)%s%s", (long long)meta->id, meta->uid,
		      *meta->name ? " " : "", meta->name);
	if (*meta->suite)
		strbuf_printf(out, ", %s", meta->suite);
	strbuf_printf(out, ", %s, on %s, %s effort%s", when, meta->host, meta->effort,
		      strcmp(meta->effort, "quick") ? "" : " (screening)");
	if (meta->finished_wall_ns == RECORD_NONE)
		strbuf_puts(out, ", unfinished");
}

/* As many columns as there is room for. */
static struct table *table_that_fits(const struct summary *summary, size_t comparison, int width)
{
	struct table *table = summary_table(summary, comparison, 0);
	if (width == 0 || width >= WIDE_WIDTH || table_fits(table, width))
		return table;
	table_free(table);
	return summary_table(summary, comparison,
			     width < NARROW_WIDTH ? NARROW_COLUMNS : USUAL_COLUMNS);
}

/* One that stands below that of its comparison, if there is one; frees it. */
static void render_more(struct table *table, bool colour, int width, struct strbuf *out)
{
	if (!table)
		return;
	strbuf_putc(out, '\n');
	table_render_text(table, colour, width, out);
	table_free(table);
}

/* The table of a comparison below its title, and what is to be said of it. */
static void render_comparison(const struct summary *summary, size_t comparison, bool colour,
			      int width, struct strbuf *out)
{
	const char *bold = colour ? TEXT_BOLD : "", *plain = colour ? TEXT_PLAIN : "";
	char title[CELL_KEY_BYTES];
	struct strbuf line;
	strbuf_init(&line, 0);
	summary_comparison_title(&summary->rows[summary->first[comparison]].cell->cell, title,
				 sizeof title);
	strbuf_putc(out, '\n');
	text_wrap(title, 0, width, bold, plain, out);
	struct table *table = table_that_fits(summary, comparison, width);
	table_render_text(table, colour, width, out);
	table_free(table);
	render_more(summary_latency(summary, comparison), colour, width, out);
	if (summary->full)
		render_more(summary_details(summary, comparison), colour, width, out);
	for (size_t k = 0; k < summary_verdict_count; k++) {
		strbuf_clear(&line);
		if (summary_verdicts[k](summary, comparison, &line))
			text_wrap(strbuf_text(&line), 0, width, bold, plain, out);
	}
	strbuf_release(&line);
}

void summary_render(const struct summary *summary, bool colour, int width, struct strbuf *out)
{
	const char *bold = colour ? TEXT_BOLD : "", *plain = colour ? TEXT_PLAIN : "";
	bool (*const conditions[])(const struct summary *, struct strbuf *) = {
		summary_absent, summary_disturbance, summary_settings};
	struct strbuf line;
	strbuf_init(&line, 0);
	summary_heading(summary, &line);
	text_wrap(strbuf_text(&line), 0, width, bold, plain, out);
	enum axis_id swept = summary->full ? AXIS_COUNT : pivot_axis(summary);
	bool plain_tables = swept == AXIS_COUNT;
	if (swept != AXIS_COUNT)
		plain_tables = pivot_render(summary, swept, render_comparison, colour, width, out);
	for (size_t c = 0; swept == AXIS_COUNT && c < summary->comparison_count; c++)
		render_comparison(summary, c, colour, width, out);
	strbuf_clear(&line);
	summary_parity(summary, &line);
	strbuf_putc(out, '\n');
	text_wrap(strbuf_text(&line), 0, width, "", "", out);
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
		strbuf_clear(&line);
		if (conditions[i](summary, &line))
			text_wrap(strbuf_text(&line), 0, width, bold, plain, out);
	}
	if (summary->count > 0 && swept != AXIS_COUNT)
		text_wrap(PIVOT_LEGEND, 0, width, colour ? TEXT_DIM : "", plain, out);
	if (summary->count > 0 && plain_tables)
		text_wrap(SUMMARY_LEGEND, 0, width, colour ? TEXT_DIM : "", plain, out);
	strbuf_release(&line);
}
