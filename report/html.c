#include "report/html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/html_internal.h"
#include "report/text.h"
#include "stats/estimate.h"

#define BUNDLE_BYTES_MAX ((size_t)16 << 20)

/* The Vega libraries as tools/setup makes them, or as they were installed; NULL when there are
 * none. */
static char *read_bundle(void)
{
	static const char *const places[] = {"vega-bundle.js", "build/deps/vega-bundle.js"};
	char *share = path_share(), *bundle = NULL;
	for (size_t i = 0; share && !bundle && i < sizeof places / sizeof *places; i++) {
		char *path = path_join(share, places[i]);
		struct error none = ERROR_INIT;
		size_t length;
		if (file_exists(path) &&
		    file_read(path, BUNDLE_BYTES_MAX, &bundle, &length, &none) != PRONY_OK)
			bundle = NULL;
		free(path);
	}
	free(share);
	return bundle;
}

/* A script inside HTML ends at "</script" wherever it stands, also within a string, and "<!--"
 * changes how its end is found (HTML Standard, 4.12.1.3). A backslash there changes no JavaScript
 * string. */
static void add_script(const char *script, struct strbuf *out)
{
	for (; *script; script++) {
		strbuf_putc(out, *script);
		if (!strncasecmp(script, "</script", 8) || !strncmp(script, "<!--", 4))
			strbuf_putc(out, '\\');
	}
}

/* Data for a script: "<" only ever stands within strings, where JSON can spell it otherwise. */
static void add_data(const json_t *json, struct strbuf *out)
{
	char *text = json_dumps(json, JSON_COMPACT);
	for (const char *c = text ? text : "null"; *c; c++) {
		if (*c == '<')
			strbuf_puts(out, "\\u003c");
		else
			strbuf_putc(out, *c);
	}
	free(text);
}

static void add_lines(const char *const *lines, struct strbuf *out)
{
	for (; *lines; lines++) {
		strbuf_puts(out, *lines);
		strbuf_putc(out, '\n');
	}
}

static void add_chart(const char *caption, json_t *spec, struct strbuf *out)
{
	if (!spec)
		return;
	strbuf_puts(out, "<figure><figcaption>");
	text_html(caption, out);
	strbuf_puts(out, "</figcaption><div class=\"chart\"></div>"
			 "<script type=\"application/json\">");
	add_data(spec, out);
	strbuf_puts(out, "</script></figure>\n");
	json_decref(spec);
}

static void add_comparison_section(const struct html_page *page, size_t i, bool charts,
				   struct strbuf *out)
{
	char title[CELL_KEY_BYTES];
	summary_comparison_title(page->comparisons[i], title, sizeof title);
	strbuf_printf(out, "<section id=\"comparison-%zu\"><h2>", i + 1);
	text_html(title, out);
	strbuf_puts(out, "</h2>\n");
	if (charts) {
		strbuf_puts(out, "<div class=\"charts\">\n");
		add_chart("Step time: bars are the geometric mean of process means, whiskers its "
			  "95 % interval, dots the processes, the dashed line native",
			  html_step_chart(page, i), out);
		add_chart("Start-up: median time of each phase until the first step is done",
			  html_startup_chart(page, i), out);
		strbuf_puts(out, "</div>\n");
	}
	html_comparison_table(page, i, out);
	strbuf_puts(out, "</section>\n");
}

static void page_title(const struct html_page *page, struct strbuf *out)
{
	const char *suite = page->count > 0 ? page->summaries[0]->run->meta.suite : "";
	strbuf_puts(out, "prony: ");
	text_html(*suite ? suite : "results", out);
	if (page->count > 1)
		strbuf_printf(out, ", %zu runs", page->count);
}

static void add_head(const struct html_page *page, struct strbuf *out)
{
	strbuf_puts(out,
		    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n"
		    /* The browser itself refuses whatever would leave this page. */
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
		    "img-src data: blob:; base-uri 'none'; form-action 'none'\">\n<title>");
	page_title(page, out);
	strbuf_puts(out, "</title>\n<style>\n");
	add_lines(html_style, out);
	strbuf_puts(out, "</style>\n</head>\n<body>\n");
}

/* "AMD EPYC 7B13, 2 cores, 8 GiB": what a reader asks first. */
static void add_machine(const struct summary *summary, struct strbuf *out)
{
	const char *text = summary->run->meta.environment;
	json_t *environment = text ? json_loads(text, 0, NULL) : NULL;
	const json_t *fixed = json_object_get(environment, "must_match");
	const char *model = json_string_or(fixed, "cpu_model", NULL);
	int64_t cores = json_int_or(fixed, "cores_usable", json_int_or(fixed, "cores", -1));
	int64_t gib = json_int_or(fixed, "memory_gib", -1);
	if (model) {
		strbuf_puts(out, "<br>");
		text_html(model, out);
		if (cores > 0)
			strbuf_printf(out, ", %lld core%s", (long long)cores,
				      cores == 1 ? "" : "s");
		if (gib > 0)
			strbuf_printf(out, ", %lld GiB", (long long)gib);
	}
	json_decref(environment);
}

/* A banner, where there is something to say. */
static void add_condition(bool (*condition)(const struct summary *, struct strbuf *),
			  const struct summary *summary, struct strbuf *out)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	if (condition(summary, &line)) {
		strbuf_puts(out, "<p class=\"banner\">");
		text_html(strbuf_text(&line), out);
		strbuf_puts(out, "</p>\n");
	}
	strbuf_release(&line);
}

static void add_intro(const struct html_page *page, struct strbuf *out)
{
	strbuf_puts(out, "<header><h1>");
	page_title(page, out);
	strbuf_puts(out, "</h1>\n");
	for (size_t run = 0; run < page->count; run++) {
		struct strbuf line;
		strbuf_init(&line, 0);
		summary_heading(page->summaries[run], &line);
		strbuf_puts(out, "<p class=\"run\">");
		text_html(strbuf_text(&line), out);
		add_machine(page->summaries[run], out);
		strbuf_clear(&line);
		summary_parity(page->summaries[run], &line);
		strbuf_puts(out, "</p><p class=\"parity\">");
		text_html(strbuf_text(&line), out);
		strbuf_puts(out, "</p>\n");
		add_condition(summary_disturbance, page->summaries[run], out);
		add_condition(summary_settings, page->summaries[run], out);
		strbuf_release(&line);
	}
	strbuf_puts(out, "</header>\n");
}

static void add_section(const char *id, const char *title,
			void (*body)(const struct html_page *page, struct strbuf *out),
			const struct html_page *page, struct strbuf *out)
{
	strbuf_printf(out, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
	body(page, out);
	strbuf_puts(out, "</section>\n");
}

static void add_method(const struct html_page *page, struct strbuf *out)
{
	(void)page;
	strbuf_puts(out, "<ul>\n<li>A framework is timed only after it has shown that it does the "
			 "same work: parameters, "
			 "multiply-accumulates, logits, loss, and the change of every weight over "
			 "three updates, against "
			 "an interpreter in double precision.</li>\n"
			 "<li>Each process is one independent replicate. A figure is the geometric "
			 "mean of process means, "
			 "its interval the 95 % t interval of their logarithms. Processes of all "
			 "frameworks alternate in "
			 "random order.</li>\n"
			 "<li>Ranks marked = cannot be told apart: the 95 % Welch interval of "
			 "their ratio includes 1.</li>\n"
			 "<li>native is prony's own executor, the floor under the other figures; "
			 "\"vs native\" is "
			 "a framework's step time over it.</li>\n"
			 "<li>\"first step\" is the time from starting the process to the end of "
			 "its first step. Memory is "
			 "the largest resident set of the worker's process tree. Both are medians "
			 "over processes, as is "
			 "the number of cores kept busy in the window.</li>\n"
			 "<li>Arithmetic counts two operations per multiply-accumulate, three "
			 "times that in training.</li>\n"
			 "</ul>\n");
}

static void add_body(const struct html_page *page, bool charts, struct strbuf *out)
{
	add_intro(page, out);
	strbuf_puts(out, "<main>\n");
	if (!charts)
		strbuf_puts(
			out,
			"<p class=\"warning\">The charts are missing: prony found no chart "
			"libraries "
			"(vega-bundle.js) when it wrote this page. tools/setup fetches them. The "
			"tables below have every figure.</p>\n");
	strbuf_puts(
		out,
		"<noscript><p class=\"warning\">The charts need JavaScript, which is off here. The "
		"tables have every figure.</p></noscript>\n");
	add_section("overview", "Overview", html_overview, page, out);
	for (size_t i = 0; i < page->comparison_count; i++)
		add_comparison_section(page, i, charts, out);
	add_section("ledger", "What did not run, and why", html_ledger, page, out);
	add_section("parity", "Proof of the same work", html_parity, page, out);
	add_section("frameworks", "Frameworks as they were", html_frameworks, page, out);
	add_section("environment", page->count > 1 ? "Runs and machines" : "Run and machine",
		    html_runs, page, out);
	add_section("method", "How to read this", add_method, page, out);
	strbuf_puts(out, "</main>\n<footer>prony " PRONY_VERSION "</footer>\n");
}

enum prony_status html_report(const struct summary *const *summaries, size_t count,
			      struct strbuf *out, struct error *err)
{
	struct html_page page;
	char *bundle = read_bundle();
	html_page_init(&page, summaries, count);
	add_head(&page, out);
	add_body(&page, bundle != NULL, out);
	if (bundle) {
		strbuf_puts(out, "<script>\n");
		add_script(bundle, out);
		strbuf_puts(out, "\n</script>\n<script>\n");
		add_lines(html_script, out);
		strbuf_puts(out, "</script>\n");
	}
	strbuf_puts(out, "</body>\n</html>\n");
	html_page_release(&page);
	free(bundle);
	if (out->truncated)
		return error_set(err, PRONY_IO,
				 "the page is larger than %zu MiB; report fewer runs at once",
				 out->limit_bytes >> 20);
	return PRONY_OK;
}
