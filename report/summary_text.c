/* Writes a summary as text: headings, the table of each comparison, the parity line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "report/figures.h"
#include "report/layers.h"
#include "report/pivot.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "report/text.h"
#include "samples/disturbance.h"

/* Below NARROW_WIDTH, tables have few columns. From WIDE_WIDTH on, there is room for all of them,
 * and a long status is wrapped to make it. */
enum { NARROW_WIDTH = 100, WIDE_WIDTH = 144 };
#define SHOW_ALL (SHOW_FIRST | SHOW_USUAL | SHOW_WIDE)

/* Adds " 2 of 7: busy+quota". */
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
	if (row->cell->status != CELL_PENDING)
		snprintf(out, out_bytes, "%s", cell_status_name(row->cell->status));
	else if (row->processes == 0 || row->processes >= row->needed)
		snprintf(out, out_bytes, row->processes ? "not finished" : "not measured");
	else
		snprintf(out, out_bytes, "%zu of %zu processes, no rank", row->processes,
			 row->needed);
	/* Insert a space after each comma, where a narrow column can break the line. */
	for (char *rest = flags, *flag; *flags && (flag = strsep(&rest, ","));) {
		size_t used = strlen(out);
		snprintf(out + used, out_bytes - used, "%s%s", flag == flags ? " (" : ", ", flag);
		if (cell_flags_parse(flag) == CELL_FLAG_DISTURBED)
			add_disturbance(row, out, out_bytes);
		used = strlen(out);
		snprintf(out + used, out_bytes - used, "%s", rest ? "" : ")");
	}
}

enum column_kind {
	COLUMN_RANK,
	COLUMN_FRAMEWORK,
	COLUMN_VERSION, /* the framework with its version */
	COLUMN_FIGURE,
	COLUMN_WIDTH, /* the half width of a figure's interval */
	COLUMN_STATUS,
	COLUMN_PROCESSES
};

struct columns {
	struct column {
		enum column_kind kind;
		enum figure_id figure;
	} at[2 * FIGURE_COUNT + COLUMN_PROCESSES];
	size_t count;
};

static void add_column(struct columns *columns, enum column_kind kind)
{
	columns->at[columns->count++].kind = kind;
}

static bool is_known(const struct summary *summary, size_t comparison, enum figure_id id)
{
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++)
		if (isfinite(figure_value(id, &summary->rows[i]).value))
			return true;
	return false;
}

/*
 * Adds the figures with these SHOW_ bits; in the table of a comparison, some of them only if known.
 */
static void add_figures(const struct summary *summary, size_t comparison, unsigned shown,
			struct columns *columns)
{
	for (int id = 0; id < FIGURE_COUNT; id++) {
		unsigned so = figures[id].shown;
		bool always = !(shown & SHOW_PRINT || (shown & SHOW_ALL && so & SHOW_KNOWN));
		if (!(so & shown) || !(always || is_known(summary, comparison, (enum figure_id)id)))
			continue;
		columns->at[columns->count++] = (struct column){COLUMN_FIGURE, (enum figure_id)id};
		if (so & SHOW_INTERVAL)
			columns->at[columns->count++] =
				(struct column){COLUMN_WIDTH, (enum figure_id)id};
	}
}

static struct table_column heading_of(const struct column *column)
{
	static const struct table_column headings[] = {
		[COLUMN_RANK] = {"#", "rank", TABLE_RIGHT},
		[COLUMN_FRAMEWORK] = {"framework", "framework", TABLE_LEFT},
		[COLUMN_VERSION] = {"framework", "framework", TABLE_LEFT},
		[COLUMN_WIDTH] = {"+/-", "half_width", TABLE_RIGHT},
		[COLUMN_STATUS] = {"status", "status", TABLE_LEFT},
		[COLUMN_PROCESSES] = {"n", "processes", TABLE_RIGHT},
	};
	const struct figure *figure = &figures[column->figure];
	return column->kind == COLUMN_FIGURE
		       ? (struct table_column){figure->title, figure->word, TABLE_RIGHT}
		       : headings[column->kind];
}

static void column_text(const struct summary *summary, const struct summary_row *row,
			const struct column *column, char out[192])
{
	const char *framework = row->cell->cell.framework, *version = summary_version(row);
	switch (column->kind) {
	case COLUMN_RANK:
		summary_rank_text(row, out, 192);
		return;
	case COLUMN_FRAMEWORK:
		snprintf(out, 192, "%s", framework);
		return;
	case COLUMN_VERSION:
		snprintf(out, 192, "%s%s%s", framework, *version ? " " : "", version);
		return;
	case COLUMN_FIGURE:
		figure_text(column->figure, row, out);
		return;
	case COLUMN_WIDTH:
		figure_width_text(column->figure, row, out);
		return;
	case COLUMN_STATUS:
		summary_status_text(summary, row, out, 192);
		return;
	case COLUMN_PROCESSES:
		snprintf(out, 192, row->step.n > 0 ? "%zu" : "-", row->step.n);
		return;
	}
}

static struct table *table_of(const struct columns *columns)
{
	struct table_column headings[sizeof columns->at / sizeof *columns->at];
	for (size_t i = 0; i < columns->count; i++)
		headings[i] = heading_of(&columns->at[i]);
	return table_new(headings, columns->count);
}

static void add_row(const struct summary *summary, const struct summary_row *row,
		    const struct columns *columns, struct table *table)
{
	char text[192];
	table_row(table);
	for (size_t i = 0; i < columns->count; i++) {
		column_text(summary, row, &columns->at[i], text);
		table_cell(table, text, NULL);
	}
}

struct table *summary_table(const struct summary *summary, size_t comparison, unsigned shown)
{
	struct columns columns = {.count = 0};
	bool print = shown & SHOW_PRINT;
	add_column(&columns, COLUMN_RANK);
	add_column(&columns, print ? COLUMN_FRAMEWORK : COLUMN_VERSION);
	add_figures(summary, comparison, print ? SHOW_PRINT : SHOW_FIRST, &columns);
	if (!print)
		add_column(&columns, COLUMN_STATUS);
	if (shown & SHOW_USUAL)
		add_figures(summary, comparison, SHOW_USUAL, &columns);
	if (print || shown & SHOW_USUAL)
		add_column(&columns, COLUMN_PROCESSES);
	if (shown & SHOW_WIDE)
		add_figures(summary, comparison, SHOW_WIDE, &columns);
	struct table *table = table_of(&columns);
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (row->folded)
			continue;
		add_row(summary, row, &columns, table);
		char status[192];
		summary_status_text(summary, row, status, sizeof status);
		if (*summary_note(row))
			table_note(table, summary_note(row));
		else if (print && strcmp(status, "ok") != 0)
			table_note(table, status);
	}
	return table;
}

struct table *summary_more(const struct summary *summary, size_t comparison, unsigned shown)
{
	struct columns columns = {.count = 0};
	struct table *table = NULL;
	add_column(&columns, COLUMN_FRAMEWORK);
	add_figures(summary, comparison, shown, &columns);
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		bool known = false;
		for (size_t k = 1; k < columns.count; k++)
			known |= isfinite(figure_value(columns.at[k].figure, row).value);
		if (!known)
			continue;
		table = table ? table : table_of(&columns);
		add_row(summary, row, &columns, table);
	}
	return table;
}

/* Returns the gate's check that came closest to its tolerance, as a share of it; NaN if there is
 * none. */
static double worst_of(const json_t *evidence, const char **what)
{
	const json_t *worst = json_object_get(evidence, "worst");
	double value = json_real_or(worst, "value", NAN), bound = json_real_or(worst, "bound", NAN);
	*what = json_string_or(worst, "what", "?");
	return bound > 0 ? value / bound : NAN;
}

/* Adds the cells that no reference can check. They were only compared with other engines on the
 * same file. */
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
			      "; %zu %s with other engines only, because the reference cannot "
			      "compute the network: all may be wrong",
			      agreed, agreed == 1 ? "agrees" : "agree");
	if (unproven > 0)
		strbuf_printf(out, "; %zu unproven", unproven);
}

/* Whether the gate could check a cell on random pixels only. This reads the evidence, because older
 * stores lack the flag. */
static bool is_untied(const struct stored_cell *cell)
{
	return cell->gate == CELL_OK && json_object_get(cell->evidence, "equal_maxima");
}

/* Adds the frameworks whose max-pools distribute gradients differently among equal maxima. They
 * train differently on this data, and only the rest of their work was checked. */
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
	strbuf_puts(out, "): their max-pools handle equal pixels differently, so they train "
			 "differently on this data");
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
		/* Nothing is computed, or a framework refuses the network: there is nothing to
		 * check. */
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
		strbuf_puts(out, "parity: not needed, the cells only load batches");
		return;
	}
	size_t checked = passed + untied + wrong;
	if (checked == 0)
		strbuf_puts(out, "parity: no cell was checked against the reference");
	else
		strbuf_printf(out, "parity: %zu of %zu checked cells match the reference", passed,
			      checked);
	if (isfinite(worst)) {
		char share[FORMAT_BYTES];
		format_percent(worst, share, sizeof share);
		strbuf_printf(out, " (closest call: %s, %s of the tolerance)", worst_what, share);
	}
	if (kept > 0)
		strbuf_printf(out, "; %zu of them checked in an earlier run", kept);
	if (coarse > 0)
		strbuf_printf(out,
			      "; %zu of them within a coarse tolerance, because rounding is that "
			      "large: check them in fp32, too",
			      coarse);
	if (wrong > 0)
		strbuf_printf(out, "; %zu did not match and %s not ranked", wrong,
			      wrong == 1 ? "is" : "are");
	if (ended > 0)
		strbuf_printf(out, "; %zu failed during the check", ended);
	add_agreement(summary, out);
	add_untied(summary, untied, out);
	if (absent > 0)
		strbuf_printf(out, "; %zu not checked", absent);
	if (loading > 0)
		strbuf_printf(out, "; %zu only %s batches", loading,
			      loading == 1 ? "loads" : "load");
}

void summary_legend(const struct summary *summary, struct strbuf *out)
{
	bool alike = false, unproved = false, tied = false, several = false;
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		char sign = figure_value(FIGURE_FLOOR, row).sign;
		alike |= sign == FIGURE_ALIKE;
		unproved |= sign == FIGURE_UNPROVED;
		tied |= row->tied;
		several |= row->comparable && row->rank == 0;
	}
	strbuf_puts(out, "+/-: half width of the 95 % interval over n processes");
	if (alike)
		strbuf_puts(out, "; ~: cannot be told apart from native");
	if (unproved)
		strbuf_puts(out, "; ?: order to native not proved");
	if (tied)
		strbuf_puts(out, "; 1=: shared rank");
	if (several)
		strbuf_puts(out, "; 1-3: possible ranks");
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
	strbuf_printf(out, ", %s, ", when);
	if (summary_hosts(summary) > 1)
		strbuf_printf(out, "on %zu machines", summary_hosts(summary));
	else
		strbuf_printf(out, "on %s", meta->host);
	strbuf_printf(out, ", %s effort%s", meta->effort,
		      strcmp(meta->effort, "quick") ? "" : " (screening)");
	if (meta->finished_wall_ns == RECORD_NONE)
		strbuf_puts(out, ", unfinished");
}

bool summary_unfinished(const struct summary *summary, struct strbuf *out)
{
	size_t unfinished = 0, few = 0, none = 0, needed = 0;
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (row->cell->status != CELL_PENDING)
			continue;
		unfinished++;
		needed = row->needed;
		none += row->processes == 0;
		few += row->processes > 0 && row->processes < needed;
	}
	if (unfinished == 0)
		return false;
	strbuf_printf(out, "not finished: %zu of %zu cells", unfinished, summary->count);
	if (few > 0)
		strbuf_printf(out, ", %zu of them with fewer than %zu processes", few, needed);
	if (few > 0 && none > 0)
		strbuf_printf(out, ", %zu without any", none);
	strbuf_printf(out, "; to continue, run the same command%s with --resume",
		      summary->run->meta.part_count > 0 ? " of the part" : "");
	return true;
}

/* Makes the table with as many columns as fit. */
static struct table *table_that_fits(const struct summary *summary, size_t comparison, int width)
{
	struct table *table = summary_table(summary, comparison, SHOW_ALL);
	if (width == 0 || width >= WIDE_WIDTH || table_fits(table, width))
		return table;
	table_free(table);
	return summary_table(summary, comparison,
			     width < NARROW_WIDTH ? SHOW_FIRST : SHOW_FIRST | SHOW_USUAL);
}

/* Renders a second table of a comparison, if there is one, and frees it. */
static void render_more(struct table *table, bool colour, int width, struct strbuf *out)
{
	if (!table)
		return;
	strbuf_putc(out, '\n');
	table_render_text(table, colour, width, out);
	table_free(table);
}

/* Renders the title, the tables and the lines of a comparison. */
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
	render_more(summary_more(summary, comparison, SHOW_LATENCY), colour, width, out);
	if (summary->full)
		render_more(summary_more(summary, comparison, SHOW_DETAILS), colour, width, out);
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
		summary_unfinished,  summary_parts,	summary_absent,	 summary_exports,
		summary_disturbance, summary_power_cap, summary_settings};
	struct strbuf line;
	strbuf_init(&line, 0);
	summary_heading(summary, &line);
	text_wrap(strbuf_text(&line), 0, width, bold, plain, out);
	bool layers = !summary->full && layers_known(summary);
	enum axis_id swept = summary->full || layers ? AXIS_COUNT : pivot_axis(summary);
	bool plain_tables = swept == AXIS_COUNT && !layers;
	if (layers)
		layers_render(summary, colour, width, out);
	if (swept != AXIS_COUNT)
		plain_tables = pivot_render(summary, swept, render_comparison, colour, width, out);
	for (size_t c = 0; swept == AXIS_COUNT && !layers && c < summary->comparison_count; c++)
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
	if (summary->count > 0 && plain_tables) {
		strbuf_clear(&line);
		summary_legend(summary, &line);
		text_wrap(strbuf_text(&line), 0, width, colour ? TEXT_DIM : "", plain, out);
	}
	strbuf_release(&line);
}
