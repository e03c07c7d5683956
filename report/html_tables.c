/* Writes the sections of the page that consist of tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/figures.h"
#include "report/html_internal.h"
#include "report/text.h"

/* MXCSR, Intel SDM volume 1, 10.2.3: flush to zero, denormals are zero. */
enum { MXCSR_FTZ = 1 << 15, MXCSR_DAZ = 1 << 6 };

/* Finds the figures with a column: those that a row of the comparison knows. */
static size_t find_figures(const struct html_page *page, size_t comparison,
			   enum figure_id found[FIGURE_COUNT])
{
	size_t count = 0;
	for (int id = 0; id < FIGURE_COUNT; id++) {
		bool known = false;
		for (size_t run = 0; run < page->count && !known; run++) {
			size_t rows_count;
			const struct summary_row *rows =
				html_rows(page, run, comparison, &rows_count);
			for (size_t i = 0; i < rows_count && !known; i++)
				known = isfinite(figure_value((enum figure_id)id, &rows[i]).value);
		}
		if (known && figures[id].shown & SHOW_PAGE)
			found[count++] = (enum figure_id)id;
	}
	return count;
}

/* Adds the figures in small type below a figure, "p50 1.2 ms, 1.1 ms to 1.3 ms": the following
 * entries of the table of figures that have SHOW_BELOW. */
static void add_below(enum figure_id above, const struct summary_row *row, struct strbuf *out)
{
	for (int id = (int)above + 1; id < FIGURE_COUNT && !(figures[id].shown & SHOW_PAGE); id++) {
		char text[FORMAT_BYTES], interval[FIGURE_INTERVAL_BYTES];
		struct figure_value known = figure_value((enum figure_id)id, row);
		if (!(figures[id].shown & SHOW_BELOW) || !isfinite(known.value) || known.itself)
			continue;
		figure_text((enum figure_id)id, row, text);
		figure_interval_text((enum figure_id)id, row, interval);
		strbuf_printf(out, "<br><small>%s %s%s%s</small>", figures[id].title, text,
			      *interval ? ", " : "", interval);
	}
}

static void figure_cells(enum figure_id id, const struct summary_row *row, struct strbuf *out)
{
	char text[FORMAT_BYTES], interval[FIGURE_INTERVAL_BYTES];
	bool apart = figures[id].shown & SHOW_APART, below = figures[id].shown & SHOW_INTERVAL;
	figure_text(id, row, text);
	figure_interval_text(id, row, interval);
	strbuf_printf(out, "<td class=\"figure%s\">%s", apart ? " strong" : "", text);
	if (below && !apart && *interval)
		strbuf_printf(out, "<br><small>%s</small>", interval);
	add_below(id, row, out);
	strbuf_puts(out, "</td>");
	if (apart)
		html_cell("figure", *interval ? interval : "-", out);
}

/* Writes a row and, if it has no rank, the reason below it across all columns. */
static void comparison_row(const struct html_page *page, size_t run, const struct summary_row *row,
			   const enum figure_id *shown, size_t shown_count, size_t columns,
			   struct strbuf *out)
{
	char rank[24], status[192], count[24];
	const char *reason = summary_note(row);
	bool alone = html_is_alone(page, run, row->comparison);
	summary_rank_text(row, rank, sizeof rank);
	summary_status_text(page->summaries[run], row, status, sizeof status);
	html_row(row, row->rank == 1 && !alone ? "best" : *reason ? "explained" : "", out);
	html_cell("figure", alone ? "-" : rank, out);
	html_cell("strong", row->cell->cell.framework, out);
	html_cell(NULL, summary_version(row), out);
	html_run_cell(page, run, out);
	html_cell(html_status_class(row), status, out);
	bool known = row->step.n > 0;
	for (size_t i = 0; i < shown_count; i++)
		known |= isfinite(figure_value(shown[i], row).value);
	for (size_t i = 0; i < shown_count && known; i++)
		figure_cells(shown[i], row, out);
	snprintf(count, sizeof count, row->step.n > 0 ? "%zu" : "-", row->step.n);
	if (known)
		html_cell("figure", count, out);
	else /* no row of dashes */
		strbuf_printf(out, "<td colspan=\"%zu\"></td>",
			      columns - (page->count > 1 ? 5 : 4));
	strbuf_puts(out, "</tr>\n");
	if (*reason) {
		html_row(row, "", out);
		html_below(columns, reason, out);
	}
}

/* Adds a line under the table for each run. */
static void add_verdict(const struct html_page *page, size_t comparison, summary_verdict *say,
			struct strbuf *out)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	for (size_t run = 0; run < page->count; run++) {
		size_t count;
		const struct summary_row *rows = html_rows(page, run, comparison, &count);
		strbuf_clear(&line);
		if (count == 0 || !say(page->summaries[run], rows->comparison, &line))
			continue;
		strbuf_puts(out, "<p class=\"warning\">");
		if (page->count > 1)
			text_html(page->labels[run], out);
		strbuf_puts(out, page->count > 1 ? ": " : "");
		text_html(strbuf_text(&line), out);
		strbuf_puts(out, "</p>\n");
	}
	strbuf_release(&line);
}

/* Adds one line for all missing frameworks, instead of a row each; the ledger has the reasons. */
static void missing_line(const struct html_page *page, size_t comparison, struct strbuf *out)
{
	bool first = true;
	for (size_t run = 0; run < page->count; run++) {
		size_t count;
		const struct summary_row *rows = html_rows(page, run, comparison, &count);
		for (size_t i = 0; i < count; i++) {
			char label[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4];
			if (rows[i].cell->status != CELL_MISSING || rows[i].folded)
				continue;
			html_row_label(page, run, rows[i].cell->cell.framework, label,
				       sizeof label);
			strbuf_puts(out, first ? "<p class=\"note\">Missing, <a "
						 "href=\"#ledger\">for these reasons</a>: "
					       : "; ");
			text_html(label, out);
			first = false;
		}
	}
	strbuf_puts(out, first ? "" : ".</p>\n");
}

void html_comparison_table(const struct html_page *page, size_t comparison, struct strbuf *out)
{
	static const char *const first[] = {">rank", "framework", "version", "run", "status"};
	enum { FIRST_COUNT = sizeof first / sizeof *first };
	const char *titles[FIRST_COUNT + 2 * FIGURE_COUNT + 1];
	char words[FIGURE_COUNT][32];
	enum figure_id shown[FIGURE_COUNT];
	size_t count = FIRST_COUNT, shown_count = find_figures(page, comparison, shown);
	memcpy(titles, first, sizeof first);
	for (size_t i = 0; i < shown_count; i++) {
		snprintf(words[i], sizeof words[i], ">%s", figures[shown[i]].title);
		titles[count++] = words[i];
		if (figures[shown[i]].shown & SHOW_APART)
			titles[count++] = ">95 % interval";
	}
	titles[count++] = ">n";
	html_head(page, titles, count, out);
	for (size_t run = 0; run < page->count; run++) {
		size_t row_count;
		const struct summary_row *rows = html_rows(page, run, comparison, &row_count);
		for (size_t i = 0; i < row_count; i++)
			if (rows[i].cell->status != CELL_MISSING && !rows[i].folded)
				comparison_row(page, run, &rows[i], shown, shown_count,
					       count - (page->count == 1), out);
	}
	html_foot(out);
	missing_line(page, comparison, out);
	for (size_t i = 0; i < summary_verdict_count; i++)
		add_verdict(page, comparison, summary_verdicts[i], out);
}

static void json_cell(const json_t *object, const char *key, struct strbuf *out)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	html_join_json(json_object_get(object, key), &text);
	html_cell(NULL, strbuf_text(&text), out);
	strbuf_release(&text);
}

/* Adds the settings that took effect, read in the processes. */
static void effective_cells(const struct stored_cell *stored, struct strbuf *out)
{
	char threads[24] = "-", precision[32] = "-";
	const char *subnormal = "-";
	for (size_t p = 0; p < stored->process_count; p++) {
		const struct process_record *record = &stored->processes[p];
		if (strcmp(record->status, "ok"))
			continue;
		if (record->threads != RECORD_NONE)
			snprintf(threads, sizeof threads, "%lld", (long long)record->threads);
		if (*record->precision)
			snprintf(precision, sizeof precision, "%s", record->precision);
		if (record->mxcsr != RECORD_NONE)
			subnormal = record->mxcsr & (MXCSR_FTZ | MXCSR_DAZ) ? "flushed to zero"
									    : "kept";
		break;
	}
	html_cell("figure", threads, out);
	html_cell(NULL, precision, out);
	html_cell(NULL, subnormal, out);
}

/* Writes a row, and below it the long texts across all columns. */
static void framework_row(const struct html_page *page, size_t run,
			  const struct stored_cell *stored, size_t columns, struct strbuf *out)
{
	const json_t *details = stored->framework;
	static const char *const long_texts[][2] = {{"instruction_set", "instructions"},
						    {"libraries", "libraries"},
						    {"settings", "settings"},
						    {"notes", "notes"}};
	struct strbuf below;
	strbuf_init(&below, 0);
	for (size_t i = 0; i < sizeof long_texts / sizeof *long_texts; i++) {
		const json_t *text = json_object_get(details, long_texts[i][0]);
		if (json_object_size(text) + json_array_size(text) + json_string_length(text) == 0)
			continue;
		strbuf_printf(&below, "%s%s: ", below.length > 0 ? "; " : "", long_texts[i][1]);
		html_join_json(text, &below);
	}
	strbuf_printf(out, "<tr class=\"%s\"", below.length > 0 ? "explained" : "");
	html_attribute("framework", stored->cell.framework, out);
	strbuf_puts(out, ">");
	html_cell("strong", stored->cell.framework, out);
	html_run_cell(page, run, out);
	json_cell(details, "version", out);
	json_cell(details, "origin", out);
	effective_cells(stored, out);
	strbuf_puts(out, "</tr>\n");
	if (below.length > 0) {
		strbuf_puts(out, "<tr");
		html_attribute("framework", stored->cell.framework, out);
		strbuf_puts(out, ">");
		html_below(columns, strbuf_text(&below), out);
	}
	strbuf_release(&below);
}

/* Returns for each framework of the page the cell of a run with the most information about it: a
 * cell with processes, else one with details, else NULL. The caller frees. */
static const struct stored_cell **find_speakers(const struct html_page *page, size_t run)
{
	const struct stored_run *stored = page->summaries[run]->run;
	const struct stored_cell **speakers =
		memory_alloc((page->framework_count + 1) * sizeof *speakers);
	for (size_t k = 0; k < page->framework_count; k++)
		speakers[k] = NULL;
	for (size_t i = 0; i < stored->cell_count; i++) {
		const struct stored_cell *cell = &stored->cells[i];
		const char *name = cell->cell.framework;
		size_t number = names_find(&page->framework_names, name, strlen(name));
		if (number == NAMES_NONE)
			continue;
		const struct stored_cell **best = &speakers[number];
		if (cell->framework && (!*best || (!(*best)->process_count && cell->process_count)))
			*best = cell;
	}
	return speakers;
}

void html_frameworks(const struct html_page *page, struct strbuf *out)
{
	static const char *const titles[] = {
		"framework", "run", "version", "origin", ">threads", "precision", "subnormals",
	};
	size_t columns = sizeof titles / sizeof *titles - (page->count == 1);
	HTML_HEAD(page, titles, out);
	for (size_t run = 0; run < page->count; run++) {
		const struct stored_cell **speakers = find_speakers(page, run);
		for (size_t k = 0; k < page->framework_count; k++)
			if (speakers[k])
				framework_row(page, run, speakers[k], columns, out);
		free(speakers);
	}
	html_foot(out);
	strbuf_puts(out, "<p class=\"note\">Threads, precision and subnormals in effect, as read "
			 "in the first timed process.</p>\n");
}
