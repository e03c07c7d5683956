/* Writes the HTML page: head, contents, filters, and the order of its sections. */
#include "report/html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/identity.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/charts_internal.h"
#include "report/program.h"
#include "report/text.h"

/* Adds a comparison; folded if the curves of a sweep show its figures. */
static void add_comparison_section(const struct html_page *page, size_t i, bool folded,
				   struct strbuf *out)
{
	char title[CELL_KEY_BYTES];
	struct charts charts = {.count = 0};
	html_work(page, page->comparisons[i], title, sizeof title);
	strbuf_printf(out, "<section id=\"comparison-%zu\"", i + 1);
	html_attributes(page->comparisons[i], false, out);
	html_text(folded ? "><details class=\"fold\"><summary><h2>" : "><h2>", title,
		  folded ? "</h2></summary>\n" : "</h2>\n", out);
	charts_of_comparison(page, i, &charts);
	html_charts(&charts, 0, out);
	charts_release(&charts);
	html_comparison_table(page, i, out);
	strbuf_puts(out, folded ? "</details></section>\n" : "</section>\n");
}

/* Adds the attributes that all comparisons of a sweep share, for the filters. */
static void family_attributes(const struct html_page *page, const struct family *family,
			      struct strbuf *out)
{
	const struct cell *cell = page->comparisons[family->comparisons[0]];
	unsigned shared = HTML_FILTERS_ALL & ~1U;
	for (size_t i = 1; i < family->count; i++)
		shared = html_shared(shared, cell, page->comparisons[family->comparisons[i]]);
	html_attributes_of(cell, shared, out);
}

/* Adds the sections of sweeps: comparisons that differ only in batch, cores or ranks. Notes of
 * which comparisons they show the figures. */
static void add_sweeps(const struct html_page *page, bool *shown, struct strbuf *out)
{
	struct arena arena;
	size_t count;
	arena_init(&arena, 0);
	const struct family *families = charts_families(page, &arena, &count);
	for (size_t i = 0; i < count && i < HTML_SECTIONS_MAX; i++) {
		struct charts charts = {.count = 0};
		char title[CELL_KEY_BYTES];
		charts_curves(page, &families[i], &charts);
		if (charts.count > 0) {
			charts_family_work(page, &families[i], title, sizeof title);
			strbuf_printf(out, "<section id=\"sweep-%zu\"", i + 1);
			family_attributes(page, &families[i], out);
			strbuf_printf(out, "><h2>Over %s%s%s", charts_over(families[i].over),
				      families[i].over == OVER_RANKS_WEAK
					      ? ", the same batch of a rank"
					      : "",
				      *title ? ": " : "");
			text_html(title, out);
			strbuf_puts(out, "</h2>\n");
			html_charts(&charts, 0, out);
			strbuf_puts(out, "</section>\n");
			/* The efficiency of ranks is not their step time. */
			for (size_t k = 0; k < families[i].count; k++)
				shown[families[i].comparisons[k]] |= families[i].over <= OVER_CORES;
		}
		charts_release(&charts);
	}
	arena_release(&arena);
}

/* Adds the charts of a study, if the suite repeats one with several devices. */
static void add_study(const struct html_page *page, struct strbuf *out)
{
	struct charts charts = {.count = 0};
	charts_study(page, &charts);
	if (charts.count > 0) {
		strbuf_puts(out,
			    "<section id=\"study\"><h2>By device, as in the original study</h2>\n");
		html_charts(&charts, 0, out);
		strbuf_puts(out, "</section>\n");
	}
	charts_release(&charts);
}

static void add_run_drift(const struct html_page *page, struct strbuf *out)
{
	struct charts charts = {.count = 0};
	for (size_t run = 0; run < page->count; run++)
		charts_run_drift(page, run, &charts);
	if (charts.count > 0) {
		strbuf_puts(
			out,
			"<section id=\"drift\"><h2>Changes of the machine during the run</h2>\n");
		html_charts(&charts, 0, out);
		strbuf_puts(out, "</section>\n");
	}
	charts_release(&charts);
}

static void page_title(const struct html_page *page, struct strbuf *out)
{
	const struct run_meta *meta = page->count > 0 ? &page->summaries[0]->run->meta : NULL;
	strbuf_puts(out, "prony: ");
	if (meta && (*meta->name || *meta->suite))
		text_html(*meta->name ? meta->name : meta->suite, out);
	else if (page->count <= 1)
		strbuf_printf(out, "run %lld", meta ? (long long)meta->id : 0);
	if (page->count > 1)
		strbuf_printf(out, "%s%zu runs", *meta->name || *meta->suite ? ", " : "",
			      page->count);
}

static void add_head(const struct html_page *page, struct strbuf *out)
{
	strbuf_puts(out,
		    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n"
		    /* The content security policy makes the browser refuse all network access. */
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
		    "img-src data: blob:; base-uri 'none'; form-action 'none'\">\n<title>");
	page_title(page, out);
	strbuf_puts(out, "</title>\n<style>\n");
	strbuf_puts(out, html_style);
	strbuf_puts(out, "</style>\n"
			 "</head>\n"
			 "<body>\n"
			 "<a class=\"skip\" href=\"#summary\">To the results</a>\n");
}

/* Adds a paragraph of a class if the condition has text. */
static void add_condition(const char *class,
			  bool (*condition)(const struct summary *, struct strbuf *),
			  const struct summary *summary, struct strbuf *out)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	if (condition(summary, &line)) {
		strbuf_printf(out, "<p class=\"%s\">", class);
		text_html(strbuf_text(&line), out);
		strbuf_puts(out, "</p>\n");
	}
	strbuf_release(&line);
}

enum { RUNS_OPEN_MAX = 8 };

static void add_intro(const struct html_page *page, struct strbuf *out)
{
	strbuf_puts(out, "<header><h1>");
	page_title(page, out);
	strbuf_puts(out, "</h1>\n");
	if (*page->common)
		html_text("<p>All comparisons: ", page->common, "</p>\n", out);
	/* Of a cluster there may be a hundred. */
	if (page->count > RUNS_OPEN_MAX)
		strbuf_printf(out, "<details><summary>%zu runs</summary>\n", page->count);
	for (size_t run = 0; run < page->count; run++) {
		struct strbuf line;
		strbuf_init(&line, 0);
		summary_heading(page->summaries[run], &line);
		strbuf_puts(out, "<p class=\"run\">");
		text_html(strbuf_text(&line), out);
		strbuf_clear(&line);
		if (summary_machine(page->summaries[run], &line)) {
			strbuf_puts(out, "<br>");
			text_html(strbuf_text(&line), out);
		}
		strbuf_puts(out, "</p>\n");
		strbuf_release(&line);
	}
	strbuf_puts(out, page->count > RUNS_OPEN_MAX ? "</details></header>\n" : "</header>\n");
}

/* Adds what a reader must know of the run before he relies on its figures. */
static void add_conditions(const struct html_page *page, size_t run, struct strbuf *out)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	if (page->count > 1)
		html_text("<h3>", page->labels[run], "</h3>\n", out);
	summary_parity(page->summaries[run], &line);
	html_text("<p class=\"parity\">", strbuf_text(&line), "</p>\n", out);
	html_certainty(page->summaries[run], out);
	add_condition("banner", summary_unfinished, page->summaries[run], out);
	add_condition("banner", summary_parts, page->summaries[run], out);
	add_condition("note", summary_absent, page->summaries[run], out);
	add_condition("banner", summary_exports, page->summaries[run], out);
	add_condition("banner", summary_findings, page->summaries[run], out);
	add_condition("banner", summary_disturbance, page->summaries[run], out);
	add_condition("note", summary_power_cap, page->summaries[run], out);
	add_condition("banner", summary_settings, page->summaries[run], out);
	strbuf_release(&line);
}

/* Adds the results in words and, of few comparisons, in one chart. */
static void add_summary(const struct html_page *page, struct strbuf *out)
{
	struct charts charts = {.count = 0};
	if (charts_are_few(page))
		charts_all_ratios(page, &charts);
	strbuf_puts(out, charts.count > 0 ? "<div class=\"first\">\n<div>" : "<div>\n<div>");
	html_conclusions(page, out);
	strbuf_puts(out, "</div>\n");
	html_charts(&charts, 0, out);
	charts_release(&charts);
	strbuf_puts(out, "<div>\n");
	for (size_t run = 0; run < page->count; run++)
		add_conditions(page, run, out);
	strbuf_puts(out, "</div></div>\n");
}

/* Adds a section, unless it is empty. */
static void add_section(const char *id, const char *title,
			void (*body)(const struct html_page *page, struct strbuf *out),
			const struct html_page *page, struct strbuf *out)
{
	struct strbuf text;
	strbuf_init(&text, out->limit_bytes);
	body(page, &text);
	if (text.length > 0)
		strbuf_printf(out, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
	strbuf_puts(out, strbuf_text(&text));
	if (text.length > 0)
		strbuf_puts(out, "</section>\n");
	strbuf_release(&text);
}

static void add_method(const struct html_page *page, struct strbuf *out)
{
	(void)page;
	strbuf_puts(
		out,
		"<details><summary>Ranks, intervals and terms</summary>\n<ul>\n"
		"<li>A framework is timed only after it passed the parity gate: parameters, "
		"multiply-accumulates, logits, loss, and the change of every weight over three "
		"updates must match a reference in double precision.</li>\n"
		"<li>Each process is an independent replicate. A figure is the geometric mean of "
		"the process means, with the 95 % t interval of their logarithms. Processes of all "
		"frameworks alternate in random order.</li>\n"
		"<li>Ranks marked = cannot be told apart: the 95 % interval of their ratio "
		"contains 1 and is at most 10 % wide to each side. Possible ranks stand where a "
		"wider one contains 1, where the processes are too few to prove the order, and "
		"where other programs used the machine.</li>\n"
		"<li>native is prony's own executor, the floor of the comparison; \"vs native\" is "
		"a framework's step time divided by native's, with the 95 % interval of that "
		"ratio.</li>\n"
		"<li>\"first step\" is the time from starting the process to the end of its first "
		"step. Memory is the largest resident set of the worker's process tree. Both are "
		"medians over processes, and so is the number of busy cores in the window.</li>\n"
		"<li>Arithmetic counts two operations per multiply-accumulate, three times that in "
		"training.</li>\n"
		"</ul></details>\n");
}

/* Adds a checkbox for each value of an axis on this page, if there are several. */
static void add_filter(const struct html_page *page, const char *name, const struct names *values,
		       bool coloured, struct strbuf *out)
{
	if (values->count < 2)
		return;
	strbuf_printf(out, "<fieldset data-axis=\"%s\"><legend>%s</legend>", name, name);
	for (size_t i = 0; i < values->count; i++) {
		const char *value = values->rows[i].bytes;
		char *clean = text_line(value);
		html_text("<label><input type=\"checkbox\" checked autocomplete=\"off\" "
			  "value=\"",
			  clean, "\">", out);
		if (coloured)
			strbuf_printf(out, "<span class=\"swatch\" style=\"background:%s\"></span>",
				      html_colour(page, value));
		text_html(clean, out);
		strbuf_puts(out, "</label> ");
		free(clean);
	}
	strbuf_puts(out, "</fieldset>\n");
}

static void gather_values(const struct html_page *page, const struct axis *axis,
			  struct names *values)
{
	for (size_t run = 0; run < page->count; run++)
		for (size_t i = 0; i < page->summaries[run]->count; i++) {
			const struct summary_row *row = &page->summaries[run]->rows[i];
			char text[CELL_WORD_BYTES];
			if (row->folded || !axis_applies(axis, &row->cell->cell))
				continue;
			axis_text(axis, axis_value(axis, &row->cell->cell), text);
			names_add(values, text, strlen(text) + 1);
		}
}

static void add_filters(const struct html_page *page, struct strbuf *out)
{
	struct names statuses = {.count = 0};
	strbuf_puts(out, "<form class=\"filters\" aria-label=\"Filters\">\n");
	for (size_t i = 0; i < HTML_FILTERS; i++) {
		const struct axis *axis = &axes[html_filters[i]];
		struct names values = {.count = 0};
		gather_values(page, axis, &values);
		add_filter(page, axis->name, &values, html_filters[i] == AXIS_FRAMEWORK, out);
		names_release(&values);
	}
	for (size_t run = 0; run < page->count; run++)
		for (size_t i = 0; i < page->summaries[run]->count; i++) {
			const struct summary_row *row = &page->summaries[run]->rows[i];
			const char *name = cell_status_name(row->cell->status);
			if (!row->folded)
				names_add(&statuses, name, strlen(name) + 1);
		}
	add_filter(page, "status", &statuses, false, out);
	names_release(&statuses);
	strbuf_puts(out, "<div><button type=\"button\" data-action=\"all\">Show all</button> "
			 "<button type=\"button\" data-action=\"theme\">Light or dark</button>"
			 "</div></form>\n");
}

/* The sections listed in the contents if the page has them: the id (or its prefix: the first match)
 * and the title. */
static const char *const contents[][2] = {
	{"nodes", "Nodes"},
	{"summary", "Summary"},
	{"overview", "Overview"},
	{"method", "How to read this"},
	{"sweep-", "Curves"},
	{"comparison-", "Comparisons"},
	{"study", "By device"},
	{"drift", "Drift"},
	{"history", "Earlier runs"},
	{"ledger", "What did not run"},
	{"parity", "Proof of the same work"},
	{"frameworks", "Frameworks"},
	{"devices", "Devices"},
	{"reproduce", "Reproduce this run"},
	{"environment", "Machine"},
};

static void add_contents(const char *body, struct strbuf *out)
{
	strbuf_puts(out, "<nav aria-label=\"Contents\">");
	for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
		char opening[64];
		snprintf(opening, sizeof opening, "<section id=\"%s", contents[i][0]);
		const char *section = strstr(body, opening);
		const char *id = section ? strchr(section, '"') + 1 : NULL;
		if (id)
			strbuf_printf(out, "%s<a href=\"#%.*s\">%s</a>", i > 0 ? " " : "",
				      (int)strcspn(id, "\""), id, contents[i][1]);
	}
	strbuf_puts(out, "</nav>\n");
}

static void add_sections(const struct html_page *page, struct strbuf *out)
{
	bool *swept = memory_alloc((page->comparison_count + 1) * sizeof *swept);
	memset(swept, 0, (page->comparison_count + 1) * sizeof *swept);
	add_section("nodes", "Nodes", html_nodes, page, out);
	add_section("summary", "Summary", add_summary, page, out);
	add_filters(page, out);
	if (page->comparison_count * page->count > 1)
		add_section("overview", "Overview", html_matrix, page, out);
	add_section("method", "How to read this", add_method, page, out);
	add_sweeps(page, swept, out);
	for (size_t i = 0; i < page->comparison_count && i < HTML_SECTIONS_MAX; i++)
		add_comparison_section(page, i, swept[i], out);
	free(swept);
	if (page->comparison_count > HTML_SECTIONS_MAX)
		strbuf_printf(out,
			      "<p class=\"note\">%zu more comparisons have no section here; `prony "
			      "report --figures` and `prony export` write them.</p>\n",
			      page->comparison_count - HTML_SECTIONS_MAX);
	add_study(page, out);
	add_run_drift(page, out);
	if (page->history_count > 0)
		add_section("history", "The same cells in earlier runs", html_history, page, out);
	add_section("ledger", "What did not run, and why", html_ledger, page, out);
	add_section("parity", "Proof of the same work", html_parity, page, out);
	add_section("frameworks", "Framework versions", html_frameworks, page, out);
	add_section("devices", "Devices and their costs", html_devices, page, out);
	add_section("reproduce", "Reproduce this run", html_reproduce, page, out);
	add_section("environment", page->count > 1 ? "Runs and machines" : "Run and machine",
		    html_runs, page, out);
}

/* Adds which prony measured, which library native loaded, and which prony made the page. */
static void add_footer(const struct html_page *page, struct strbuf *out)
{
	char last[PROGRAM_BYTES] = "", program[PROGRAM_BYTES];
	strbuf_puts(out, "<footer>Measured by");
	for (size_t run = 0; run < page->count; run++) {
		const struct summary *summary = page->summaries[run];
		json_t *hash;
		const char *name;
		program_text(&summary->run->meta, summary->environment, program);
		if (strcmp(program, last) != 0) {
			strbuf_puts(out, run > 0 ? ", " : " ");
			html_text("prony ", program, "", out);
		}
		snprintf(last, sizeof last, "%s", program);
		json_object_foreach(program_libraries(summary->environment), name, hash)
		{
			char digits[PROGRAM_HASH_SHOWN + 1];
			snprintf(digits, sizeof digits, "%s",
				 json_is_string(hash) ? json_string_value(hash) : "");
			html_text(", library of ", name, " sha256 ", out);
			text_html(digits, out);
		}
	}
	html_text("; page by prony " PRONY_VERSION, *identity_build() ? " " : "", "", out);
	text_html(identity_build(), out);
	strbuf_puts(out, "</footer>\n");
}

/* The contents come first and list the sections of the page. */
static void add_body(const struct html_page *page, struct strbuf *out)
{
	struct strbuf sections;
	strbuf_init(&sections, out->limit_bytes);
	add_sections(page, &sections);
	add_intro(page, out);
	add_contents(strbuf_text(&sections), out);
	strbuf_puts(out, "<main>\n");
	strbuf_puts(out, strbuf_text(&sections));
	strbuf_puts(out, "</main>\n");
	add_footer(page, out);
	strbuf_release(&sections);
}

enum prony_status html_report(const struct summary *const *summaries, size_t count,
			      const struct history *histories, size_t history_count,
			      struct strbuf *out, struct error *err)
{
	struct html_page page;
	html_page_init(&page, summaries, count, histories, history_count);
	add_head(&page, out);
	add_body(&page, out);
	strbuf_puts(out, "<script>\n");
	strbuf_puts(out, html_script);
	strbuf_puts(out, "</script>\n</body>\n</html>\n");
	html_page_release(&page);
	if (out->truncated)
		return error_set(err, PRONY_IO,
				 "the page is larger than %zu MiB; report fewer runs at once",
				 out->limit_bytes >> 20);
	return PRONY_OK;
}
