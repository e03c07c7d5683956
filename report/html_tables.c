/* The sections of the page that are tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/format.h"
#include "report/html_internal.h"
#include "report/text.h"

/* MXCSR, Intel SDM volume 1, 10.2.3: flush to zero, denormals are zero. */
enum { MXCSR_FTZ = 1 << 15, MXCSR_DAZ = 1 << 6 };

/* A table cell; class NULL: none. */
static void cell(const char *class, const char *text, struct strbuf *out)
{
	char *clean = text_line(text);
	if (class)
		strbuf_printf(out, "<td class=\"%s\">", class);
	else
		strbuf_puts(out, "<td>");
	text_html(clean, out);
	strbuf_puts(out, "</td>");
	free(clean);
}

static void head(const char *const *titles, size_t count, struct strbuf *out)
{
	strbuf_puts(out, "<div class=\"wide\"><table><thead><tr>");
	for (size_t i = 0; i < count; i++) {
		/* '>' before a title: figures, which stand on the right. */
		bool figures = *titles[i] == '>';
		strbuf_puts(out, figures ? "<th class=\"figure\">" : "<th>");
		text_html(titles[i] + figures, out);
		strbuf_puts(out, "</th>");
	}
	strbuf_puts(out, "</tr></thead><tbody>\n");
}

static void foot(struct strbuf *out)
{
	strbuf_puts(out, "</tbody></table></div>\n");
}

#define HEAD(titles, out) head((titles), sizeof(titles) / sizeof *(titles), (out))

static void overview_cell(const struct summary_row *row, struct strbuf *out)
{
	char step[FORMAT_BYTES], ratio[FORMAT_BYTES];
	if (!row) {
		strbuf_puts(out, "<td class=\"figure none\">not asked for</td>");
		return;
	}
	if (row->rank == 0) {
		char *reason = text_line(summary_reason(row));
		strbuf_puts(out, "<td class=\"figure bad\" title=\"");
		text_html(reason, out);
		strbuf_printf(out, "\">%s</td>",
			      row->cell->status == CELL_OK ? "not ranked"
							   : cell_status_name(row->cell->status));
		free(reason);
		return;
	}
	format_duration_within(row->step.center, row->step.half_width, step, sizeof step);
	summary_floor_text(row, ratio, sizeof ratio);
	strbuf_printf(out, "<td class=\"figure%s\">%s", row->rank == 1 ? " best" : "", step);
	if (isfinite(row->floor_ratio))
		strbuf_printf(out, " <small>%s</small>", ratio);
	strbuf_puts(out, "</td>");
}

void html_overview(const struct html_page *page, struct strbuf *out)
{
	strbuf_puts(out, "<div class=\"wide\"><table><thead><tr><th>same work</th>");
	if (page->count > 1)
		strbuf_puts(out, "<th>run</th>");
	for (size_t k = 0; k < page->framework_count; k++) {
		strbuf_puts(out, "<th class=\"figure\">");
		text_html(page->frameworks[k], out);
		strbuf_puts(out, "</th>");
	}
	strbuf_puts(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < page->comparison_count; i++) {
		for (size_t run = 0; run < page->count; run++) {
			char title[CELL_KEY_BYTES];
			summary_comparison_title(page->comparisons[i], title, sizeof title);
			strbuf_printf(out, "<tr><td><a href=\"#comparison-%zu\">", i + 1);
			text_html(title, out);
			strbuf_puts(out, "</a></td>");
			if (page->count > 1)
				cell("label", page->labels[run], out);
			for (size_t k = 0; k < page->framework_count; k++)
				overview_cell(html_find(page, run, i, page->frameworks[k]), out);
			strbuf_puts(out, "</tr>\n");
		}
	}
	foot(out);
	strbuf_puts(out, "<p class=\"note\">Time per step; beside it the ratio to native, the "
			 "floor. Marked: "
			 "the fastest, and those that cannot be told apart from it.</p>\n");
}

static void interval_cell(const struct estimate *step, struct strbuf *out)
{
	char low[FORMAT_BYTES], high[FORMAT_BYTES], text[2 * FORMAT_BYTES + 8] = "-";
	if (isfinite(step->half_width)) {
		format_duration_within(step->low, step->half_width, low, sizeof low);
		format_duration_within(step->high, step->half_width, high, sizeof high);
		snprintf(text, sizeof text, "%s to %s", low, high);
	}
	cell("figure", text, out);
}

static void figure_cells(const struct summary_row *row, struct strbuf *out)
{
	char text[FORMAT_BYTES];
	format_duration_within(row->step.center, row->step.half_width, text, sizeof text);
	cell("figure strong", text, out);
	interval_cell(&row->step, out);
	format_rate(row->items_per_second, text, sizeof text);
	cell("figure", text, out);
	summary_floor_text(row, text, sizeof text);
	cell("figure", text, out);
	format_flops(row->flops, text, sizeof text);
	cell("figure", text, out);
	double cores = html_median(row->cell, "window_cpu_cores");
	snprintf(text, sizeof text, isfinite(cores) ? "%.2f" : "-", cores);
	cell("figure", text, out);
	format_duration_within(row->to_first_step_ns, NAN, text, sizeof text);
	cell("figure", text, out);
	format_bytes(row->rss_peak_bytes, text, sizeof text);
	cell("figure", text, out);
	snprintf(text, sizeof text, row->step.n > 0 ? "%zu" : "-", row->step.n);
	cell("figure", text, out);
}

/* A row, and below it across all columns the reason if it has no rank. */
static void comparison_row(const struct html_page *page, size_t run, const struct summary_row *row,
			   size_t columns, struct strbuf *out)
{
	char rank[16] = "-", status[192];
	char *reason = text_line(summary_reason(row));
	if (row->rank > 0)
		snprintf(rank, sizeof rank, "%d%s", row->rank, row->tied ? "=" : "");
	summary_status_text(page->summaries[run], row, status, sizeof status);
	strbuf_printf(out, "<tr class=\"%s\">",
		      row->rank == 1 ? "best"
		      : *reason	     ? "explained"
				     : "");
	cell("figure", rank, out);
	cell("strong", row->cell->cell.framework, out);
	cell(NULL, summary_version(row), out);
	if (page->count > 1)
		cell("label", page->labels[run], out);
	cell(row->rank > 0 ? "good" : "bad", status, out);
	figure_cells(row, out);
	strbuf_puts(out, "</tr>\n");
	if (*reason) {
		strbuf_printf(out, "<tr><td></td><td class=\"reason\" colspan=\"%zu\">",
			      columns - 1);
		text_html(reason, out);
		strbuf_puts(out, "</td></tr>\n");
	}
	free(reason);
}

/* Under the table: who was faster than native, in which run. */
static void broken_floors(const struct html_page *page, size_t comparison, struct strbuf *out)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	for (size_t run = 0; run < page->count; run++) {
		const struct summary_row *native = html_find(page, run, comparison, "native");
		strbuf_clear(&line);
		if (!native ||
		    !summary_floor_broken(page->summaries[run], native->comparison, &line))
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

void html_comparison_table(const struct html_page *page, size_t comparison, struct strbuf *out)
{
	static const char *const titles[] = {
		">rank",  "framework",	    "version", "run",	     "status",
		">step",  ">95 % interval", ">items",  ">vs native", ">arithmetic",
		">cores", ">first step",    ">memory", ">n",
	};
	const char *shown[sizeof titles / sizeof *titles];
	size_t count = 0;
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
		if (strcmp(titles[i], "run") || page->count > 1)
			shown[count++] = titles[i];
	head(shown, count, out);
	for (size_t run = 0; run < page->count; run++) {
		size_t row_count;
		const struct summary_row *rows = html_rows(page, run, comparison, &row_count);
		for (size_t i = 0; i < row_count; i++)
			comparison_row(page, run, &rows[i], count, out);
	}
	foot(out);
	broken_floors(page, comparison, out);
}

void html_ledger(const struct html_page *page, struct strbuf *out)
{
	static const char *const several[] = {"framework", "work", "run", "status", "reason"};
	static const char *const one[] = {"framework", "work", "status", "reason"};
	size_t found = 0;
	for (size_t run = 0; run < page->count; run++) {
		for (size_t i = 0; i < page->summaries[run]->count; i++) {
			const struct summary_row *row = &page->summaries[run]->rows[i];
			char title[CELL_KEY_BYTES];
			if (row->rank > 0)
				continue;
			if (found++ == 0 && page->count > 1)
				HEAD(several, out);
			else if (found == 1)
				HEAD(one, out);
			summary_comparison_title(&row->cell->cell, title, sizeof title);
			strbuf_puts(out, "<tr>");
			cell("strong", row->cell->cell.framework, out);
			cell(NULL, title, out);
			if (page->count > 1)
				cell("label", page->labels[run], out);
			cell("bad", cell_status_name(row->cell->status), out);
			cell(NULL, summary_reason(row), out);
			strbuf_puts(out, "</tr>\n");
		}
	}
	if (found)
		foot(out);
	else
		strbuf_puts(out, "<p>Everything that was asked for ran.</p>\n");
}

/* A count that the framework made itself, with separators; it may not be able to. */
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
	cell("figure", text, out);
}

/* With the date of a verdict that an earlier run reached. */
static void verdict_cell(const struct stored_cell *stored, struct strbuf *out)
{
	const char *kept = json_string_or(stored->evidence, "cached", "");
	char text[96];
	if (stored->gate != CELL_OK)
		snprintf(text, sizeof text, "%s", cell_status_name(stored->gate));
	else if (json_object_get(stored->evidence, "agreement"))
		snprintf(text, sizeof text,
			 "agrees with other engines; not proven, no reference computes it");
	else if (*kept)
		snprintf(text, sizeof text, "same work, found on %.32s", kept);
	else
		snprintf(text, sizeof text, "same work");
	cell(stored->gate == CELL_OK ? "good" : "bad", text, out);
}

static void parity_row(const struct html_page *page, size_t run, const struct summary_row *row,
		       struct strbuf *out)
{
	const struct stored_cell *stored = row->cell;
	const json_t *worst = json_object_get(stored->evidence, "worst");
	double value = json_real_or(worst, "value", NAN), bound = json_real_or(worst, "bound", NAN);
	char title[CELL_KEY_BYTES], text[FORMAT_BYTES], what[256];
	summary_comparison_title(&stored->cell, title, sizeof title);
	snprintf(what, sizeof what, "%s %s", json_string_or(worst, "what", ""),
		 json_string_or(worst, "tensor", ""));
	strbuf_puts(out, "<tr>");
	cell("strong", stored->cell.framework, out);
	cell(NULL, title, out);
	if (page->count > 1)
		cell("label", page->labels[run], out);
	if (!stored->evidence)
		cell("none", "never came to the gate", out);
	else
		verdict_cell(stored, out);
	const char *failure = json_string_or(stored->evidence, "error", "");
	cell(NULL, *failure ? failure : what, out);
	snprintf(text, sizeof text, isfinite(value) ? "%.2g" : "-", value);
	cell("figure", text, out);
	snprintf(text, sizeof text, isfinite(bound) ? "%.2g" : "-", bound);
	cell("figure", text, out);
	count_cell(stored->evidence, "parameters", out);
	count_cell(stored->evidence, "macs", out);
	strbuf_puts(out, "</tr>\n");
}

void html_parity(const struct html_page *page, struct strbuf *out)
{
	static const char *const one[] = {
		"framework", "work",   "verdict",     "worst figure",
		">value",    ">bound", ">parameters", ">MACs of the gate"};
	static const char *const several[] = {"framework", "work",	   "run",
					      "verdict",   "worst figure", ">value",
					      ">bound",	   ">parameters",  ">MACs of the gate"};
	if (page->count > 1)
		HEAD(several, out);
	else
		HEAD(one, out);
	for (size_t run = 0; run < page->count; run++)
		for (size_t i = 0; i < page->summaries[run]->count; i++)
			parity_row(page, run, &page->summaries[run]->rows[i], out);
	foot(out);
}

/* Any JSON on one line: members as "name value, name value". */
static void join_json(const json_t *value, struct strbuf *out)
{
	const char *key;
	json_t *member;
	size_t index;
	if (json_is_string(value)) {
		strbuf_puts(out, json_string_value(value));
	} else if (json_is_object(value)) {
		bool first = true;
		json_object_foreach((json_t *)value, key, member)
		{
			strbuf_printf(out, "%s%s ", first ? "" : ", ", key);
			join_json(member, out);
			first = false;
		}
	} else if (json_is_array(value)) {
		json_array_foreach(value, index, member)
		{
			strbuf_puts(out, index > 0 ? ", " : "");
			join_json(member, out);
		}
	} else if (json_is_null(value) || !value) {
		strbuf_puts(out, "-");
	} else {
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
		strbuf_puts(out, text ? text : "");
		free(text);
	}
}

static void json_cell(const json_t *object, const char *key, struct strbuf *out)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	join_json(json_object_get(object, key), &text);
	cell(NULL, strbuf_text(&text), out);
	strbuf_release(&text);
}

/* What really took effect, read in the processes. */
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
	cell("figure", threads, out);
	cell(NULL, precision, out);
	cell(NULL, subnormal, out);
}

static void framework_row(const struct html_page *page, size_t run,
			  const struct stored_cell *stored, struct strbuf *out)
{
	const json_t *details = stored->framework;
	strbuf_puts(out, "<tr>");
	cell("strong", stored->cell.framework, out);
	if (page->count > 1)
		cell("label", page->labels[run], out);
	json_cell(details, "version", out);
	json_cell(details, "origin", out);
	effective_cells(stored, out);
	json_cell(details, "instruction_set", out);
	json_cell(details, "libraries", out);
	json_cell(details, "settings", out);
	json_cell(details, "notes", out);
	strbuf_puts(out, "</tr>\n");
}

/* By framework of the page, the cell of a run that says most of it: one with processes, else any
 * that it spoke in, else NULL. The caller frees. */
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
		const struct stored_cell **best =
			&speakers[names_find(&page->framework_names, name, strlen(name))];
		if (cell->framework && (!*best || (!(*best)->process_count && cell->process_count)))
			*best = cell;
	}
	return speakers;
}

void html_frameworks(const struct html_page *page, struct strbuf *out)
{
	static const char *const titles[] = {
		"framework",  "run",	      "version",   "origin",   ">threads", "precision",
		"subnormals", "instructions", "libraries", "settings", "notes",
	};
	const char *shown[sizeof titles / sizeof *titles];
	size_t count = 0;
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
		if (strcmp(titles[i], "run") || page->count > 1)
			shown[count++] = titles[i];
	head(shown, count, out);
	for (size_t run = 0; run < page->count; run++) {
		const struct stored_cell **speakers = find_speakers(page, run);
		for (size_t k = 0; k < page->framework_count; k++)
			if (speakers[k])
				framework_row(page, run, speakers[k], out);
		free(speakers);
	}
	foot(out);
	strbuf_puts(out,
		    "<p class=\"note\">Threads, precision and subnormals as they took effect, read "
		    "in the first timed process.</p>\n");
}

/* One fact of the environment in every run, NULL where it has none. */
struct fact {
	char *name;
	char **values;
};

struct facts {
	struct fact *rows;
	size_t count, runs;
	struct arena *arena;
};

enum { FACTS_MAX = 2000 };

static void add_fact(struct facts *facts, const char *name, size_t run, const char *value)
{
	size_t at = 0;
	while (at < facts->count && strcmp(facts->rows[at].name, name))
		at++;
	if (at == FACTS_MAX)
		return;
	if (at == facts->count) {
		facts->rows[at].name = arena_strdup(facts->arena, name);
		facts->rows[at].values = arena_array(facts->arena, facts->runs, sizeof(char *));
		facts->count++;
	}
	facts->rows[at].values[run] = arena_strdup(facts->arena, value);
}

/* Objects become paths, everything else a value. */
static void flatten(struct facts *facts, const char *name, size_t run, const json_t *value)
{
	const char *key;
	json_t *member;
	if (json_is_object(value)) {
		json_object_foreach((json_t *)value, key, member)
		{
			char path[256];
			snprintf(path, sizeof path, "%s%s%s", name, *name ? "." : "", key);
			flatten(facts, path, run, member);
		}
		return;
	}
	struct strbuf text;
	strbuf_init(&text, 0);
	join_json(value, &text);
	add_fact(facts, name, run, strbuf_text(&text));
	strbuf_release(&text);
}

static void add_meta(struct facts *facts, size_t run, const struct summary *summary)
{
	static const char *const keys[] = {
		"uid",	"suite",     "host",	"started", "finished",	      "effort",
		"seed", "statistic", "version", "command", "environment_hash"};
	/* What weighs most comes first. */
	static const char *const sections[] = {"must_match", "should_match", "informational",
					       "absent"};
	json_t *meta = summary_run_to_json(summary);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		char name[64];
		snprintf(name, sizeof name, "run.%s", keys[i]);
		flatten(facts, name, run, json_object_get(meta, keys[i]));
	}
	json_t *environment = json_object_get(meta, "environment");
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		const json_t *section = json_object_get(environment, sections[i]);
		if (section)
			flatten(facts, sections[i], run, section);
		json_object_del(environment, sections[i]);
	}
	if (environment)
		flatten(facts, "environment", run, environment);
	json_decref(meta);
}

static bool differs(const struct fact *fact, size_t runs)
{
	for (size_t run = 1; run < runs; run++) {
		const char *a = fact->values[0], *b = fact->values[run];
		if (!a != !b || (a && strcmp(a, b)))
			return true;
	}
	return false;
}

void html_runs(const struct html_page *page, struct strbuf *out)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct facts facts = {.runs = page->count, .arena = &arena};
	facts.rows = arena_array(&arena, FACTS_MAX, sizeof *facts.rows);
	for (size_t run = 0; run < page->count; run++)
		add_meta(&facts, run, page->summaries[run]);
	strbuf_puts(out, "<div class=\"wide\"><table class=\"facts\"><thead><tr><th>fact</th>");
	for (size_t run = 0; run < page->count; run++) {
		strbuf_puts(out, "<th>");
		text_html(page->labels[run], out);
		strbuf_puts(out, "</th>");
	}
	strbuf_puts(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < facts.count; i++) {
		strbuf_puts(out, differs(&facts.rows[i], page->count) ? "<tr class=\"differs\">"
								      : "<tr>");
		cell("name", facts.rows[i].name, out);
		for (size_t run = 0; run < page->count; run++)
			cell(NULL, facts.rows[i].values[run] ? facts.rows[i].values[run] : "-",
			     out);
		strbuf_puts(out, "</tr>\n");
	}
	foot(out);
	arena_release(&arena);
}
