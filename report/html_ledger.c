/* Writes what did not run and why, and what was proved. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/format.h"
#include "report/html_internal.h"
#include "report/text.h"

/* Cells of a framework that ended alike for the same reason; they share a row. */
struct alike {
	const struct summary_row *row; /* the first cell of them */
	size_t run, count;
	unsigned shared; /* the filters that select all of them */
};

static size_t alike_key(const struct summary_row *row, size_t run, char *out, size_t out_bytes)
{
	int length = snprintf(out, out_bytes, "%zu %s %s %s", run, row->cell->cell.framework,
			      cell_status_name(row->cell->status), summary_reason(row));
	return (size_t)length < out_bytes ? (size_t)length : out_bytes - 1;
}

/* Returns the rows of cells that ended alike; the caller frees. */
static struct alike *gather_alike(const struct html_page *page, size_t *count)
{
	struct names names = {.count = 0};
	struct alike *rows = NULL;
	size_t capacity = 0;
	for (size_t run = 0; run < page->count; run++)
		for (size_t i = 0; i < page->summaries[run]->count; i++) {
			const struct summary_row *row = &page->summaries[run]->rows[i];
			char key[1024];
			if (row->rank > 0 || !*summary_reason(row))
				continue;
			size_t known = names.count;
			size_t number =
				names_add(&names, key, alike_key(row, run, key, sizeof key));
			rows = memory_grow(rows, number, &capacity, sizeof *rows);
			if (number == known)
				rows[number] = (struct alike){
					.row = row, .run = run, .shared = HTML_FILTERS_ALL};
			rows[number].count++;
			rows[number].shared =
				html_shared(rows[number].shared, &rows[number].row->cell->cell,
					    &row->cell->cell);
		}
	*count = names.count;
	names_release(&names);
	return rows;
}

void html_ledger(const struct html_page *page, struct strbuf *out)
{
	static const char *const titles[] = {"framework", "work", "run", "status", "reason"};
	size_t count;
	struct alike *rows = gather_alike(page, &count);
	if (count > 0)
		HTML_HEAD(page, titles, out);
	for (size_t i = 0; i < count; i++) {
		const struct summary_row *row = rows[i].row;
		char more[40] = "";
		if (rows[i].count > 1)
			snprintf(more, sizeof more, ", and %zu more alike", rows[i].count - 1);
		html_row_of(row, rows[i].shared, "", out);
		html_cell("strong", row->cell->cell.framework, out);
		html_work_cell(page, &row->cell->cell, more, out);
		html_run_cell(page, rows[i].run, out);
		html_cell(html_status_class(row), cell_status_name(row->cell->status), out);
		html_cell("long", summary_reason(row), out);
		strbuf_puts(out, "</tr>\n");
	}
	if (count > 0)
		html_foot(out);
	else
		strbuf_puts(out, "<p>All requested cells ran.</p>\n");
	free(rows);
}

/*
 * Adds a number counted by the framework itself, with separators; some frameworks cannot count it.
 */
static void count_cell(const json_t *evidence, const char *key, struct strbuf *out)
{
	json_int_t count = json_int_or(evidence, key, -1);
	char digits[24], text[40] = "-";
	if (count >= 0) {
		snprintf(digits, sizeof digits, "%lld", (long long)count);
		size_t length = strlen(digits), at = 0;
		for (size_t i = 0; i < length; i++) {
			if (i > 0 && (length - i) % 3 == 0)
				text[at++] = ',';
			text[at++] = digits[i];
		}
		text[at] = '\0';
	}
	html_cell("figure", text, out);
}

/* Adds the verdict, with its date if it comes from an earlier run. */
static void verdict_cell(const struct stored_cell *stored, struct strbuf *out)
{
	const char *kept = json_string_or(stored->evidence, "cached", "");
	char text[96];
	if (stored->gate != CELL_OK)
		snprintf(text, sizeof text, "%s", cell_status_name(stored->gate));
	else if (json_object_get(stored->evidence, "agreement"))
		snprintf(text, sizeof text,
			 "agrees with other engines; no reference can compute it");
	else if (json_object_get(stored->evidence, "equal_maxima"))
		snprintf(text, sizeof text,
			 "same work on random pixels; here its max-pools handle equal maxima "
			 "differently");
	else if (json_object_get(stored->evidence, "coarse"))
		snprintf(text, sizeof text,
			 "same work, within a coarse tolerance: rounding is as large as the "
			 "compared values");
	else if (*kept)
		snprintf(text, sizeof text, "same work, checked on %.10s", kept);
	else
		snprintf(text, sizeof text, "same work");
	html_cell(stored->gate == CELL_OK ? "good" : "bad", text, out);
}

static void parity_row(const struct html_page *page, size_t run, const struct summary_row *row,
		       struct strbuf *out)
{
	const struct stored_cell *stored = row->cell;
	const json_t *worst = json_object_get(stored->evidence, "worst");
	double value = json_real_or(worst, "value", NAN), bound = json_real_or(worst, "bound", NAN);
	char text[FORMAT_BYTES], what[256];
	snprintf(what, sizeof what, "%s %s", json_string_or(worst, "what", ""),
		 json_string_or(worst, "tensor", ""));
	html_row(row, "", out);
	html_cell("strong", stored->cell.framework, out);
	html_work_cell(page, &stored->cell, "", out);
	html_run_cell(page, run, out);
	if (stored->cell.stage == STAGE_LOAD)
		html_cell("none", "not needed: loads batches only", out);
	else if (!stored->evidence)
		html_cell("none", "not checked", out);
	else
		verdict_cell(stored, out);
	const char *failure = json_string_or(stored->evidence, "error", "");
	html_cell(NULL, *failure ? failure : what, out);
	snprintf(text, sizeof text, isfinite(value) ? "%.2g" : "-", value);
	html_cell("figure", text, out);
	snprintf(text, sizeof text, isfinite(bound) ? "%.2g" : "-", bound);
	html_cell("figure", text, out);
	count_cell(stored->evidence, "parameters", out);
	count_cell(stored->evidence, "macs", out);
	strbuf_puts(out, "</tr>\n");
}

void html_parity(const struct html_page *page, struct strbuf *out)
{
	static const char *const titles[] = {"framework", "work",	  "run",
					     "verdict",	  "worst figure", ">value",
					     ">bound",	  ">parameters",  ">MACs of the gate"};
	size_t shown = 0, left_out = 0;
	for (size_t run = 0; run < page->count; run++)
		for (size_t i = 0; i < page->summaries[run]->count; i++) {
			const struct summary_row *row = &page->summaries[run]->rows[i];
			/* What did not reach the gate is in the ledger. */
			if (row->cell->status == CELL_MISSING ||
			    (row->cell->status == CELL_UNSUPPORTED && !row->cell->evidence))
				continue;
			/* Failed rows are never left out. */
			if (row->cell->gate == CELL_OK && shown >= HTML_ROWS_MAX) {
				left_out++;
				continue;
			}
			if (shown++ == 0)
				HTML_HEAD(page, titles, out);
			parity_row(page, run, row, out);
		}
	if (shown > 0)
		html_foot(out);
	if (left_out > 0)
		strbuf_printf(out,
			      "<p class=\"note\">%zu more passed; `prony show --format json` lists "
			      "all.</p>\n",
			      left_out);
}
