/* Writes the machines, and how to reproduce the runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/html_internal.h"
#include "report/program.h"
#include "report/text.h"

void html_join_json(const json_t *value, struct strbuf *out)
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
			html_join_json(member, out);
			first = false;
		}
	} else if (json_is_array(value)) {
		json_array_foreach(value, index, member)
		{
			strbuf_puts(out, index > 0 ? ", " : "");
			html_join_json(member, out);
		}
	} else if (json_is_null(value) || !value) {
		strbuf_puts(out, "-");
	} else {
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
		strbuf_puts(out, text ? text : "");
		free(text);
	}
}

/* One fact of the environment with its value in every run; NULL if the run has none. */
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

/* Adds nested objects as paths, and everything else as values. */
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
	html_join_json(value, &text);
	add_fact(facts, name, run, strbuf_text(&text));
	strbuf_release(&text);
}

static void add_meta(struct facts *facts, size_t run, const struct summary *summary)
{
	static const char *const keys[] = {
		"uid",	"suite",     "host",	"started", "finished",	      "effort",
		"seed", "statistic", "version", "command", "environment_hash"};
	/* The most important facts come first. */
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

/* Adds the facts that differ between the runs, or those that do not, with one value for all. */
static void add_table(const struct html_page *page, const struct facts *facts, bool different,
		      struct strbuf *out)
{
	size_t values = different ? page->count : 1;
	strbuf_puts(out, "<div class=\"wide\" tabindex=\"0\"><table class=\"facts\"><thead><tr>"
			 "<th scope=\"col\">fact</th>");
	for (size_t run = 0; run < values; run++)
		html_text("<th scope=\"col\">", values > 1 ? page->labels[run] : "value", "</th>",
			  out);
	strbuf_puts(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->rows[i];
		if (differs(fact, page->count) != different)
			continue;
		strbuf_puts(out, different ? "<tr class=\"differs\">" : "<tr>");
		html_cell("name", fact->name, out);
		for (size_t run = 0; run < values; run++)
			html_cell(NULL, fact->values[run] ? fact->values[run] : "-", out);
		strbuf_puts(out, "</tr>\n");
	}
	html_foot(out);
}

void html_runs(const struct html_page *page, struct strbuf *out)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct facts facts = {.runs = page->count, .arena = &arena};
	facts.rows = arena_array(&arena, FACTS_MAX, sizeof *facts.rows);
	for (size_t run = 0; run < page->count; run++)
		add_meta(&facts, run, page->summaries[run]);
	if (page->count > 1)
		add_table(page, &facts, true, out);
	html_text("<details><summary>",
		  page->count > 1 ? "What is the same in all of them" : "All recorded facts",
		  "</summary>\n", out);
	add_table(page, &facts, false, out);
	strbuf_puts(out, "</details>\n");
	arena_release(&arena);
}

static void add_code(const char *text, struct strbuf *out)
{
	char *clean = text_block(text);
	html_text("<pre><code>", clean, "</code></pre>\n", out);
	free(clean);
}

/* Adds the frameworks that ran, in the spelling of `prony framework install`. */
static void add_install(const struct html_page *page, size_t run, struct strbuf *out)
{
	struct names names = {.count = 0};
	struct strbuf words;
	strbuf_init(&words, 0);
	for (size_t i = 0; i < page->summaries[run]->count; i++) {
		const struct stored_cell *cell = page->summaries[run]->rows[i].cell;
		const char *origin = json_string_or(cell->framework, "origin", "");
		size_t known = names.count, length = strcspn(cell->cell.framework, "@+");
		if (strcmp(origin, "installed") != 0 ||
		    names_add(&names, cell->cell.framework, length) < known)
			continue;
		strbuf_printf(&words, " %.*s", (int)length, cell->cell.framework);
	}
	if (words.length > 0) {
		strbuf_puts(out, "<p>Frameworks that prony installed, each in its own environment, "
				 "by hash (versions above):</p>\n");
		struct strbuf line;
		strbuf_init(&line, 0);
		strbuf_printf(&line, "prony framework install%s", strbuf_text(&words));
		add_code(strbuf_text(&line), out);
		strbuf_release(&line);
	}
	strbuf_release(&words);
	names_release(&names);
}

void html_reproduce(const struct html_page *page, struct strbuf *out)
{
	for (size_t run = 0; run < page->count; run++) {
		const struct run_meta *meta = &page->summaries[run]->run->meta;
		const char *command = meta->command ? meta->command : "";
		char program[PROGRAM_BYTES];
		struct strbuf line;
		program_text(meta, page->summaries[run]->environment, program);
		strbuf_init(&line, 0);
		strbuf_printf(&line, "prony %s, effort %s, seed %lld.%s", program, meta->effort,
			      (long long)meta->seed,
			      *command ? " Run this command in the same folder:" : "");
		if (page->count > 1) {
			html_text("<h3>", page->labels[run], "</h3>\n", out);
		}
		html_text("<p>", strbuf_text(&line), "</p>\n", out);
		if (*command)
			add_code(command, out);
		add_install(page, run, out);
		strbuf_puts(out, "<details><summary>The cells and settings of the run</summary>\n");
		add_code(meta->spec ? meta->spec : "", out);
		strbuf_puts(out, "</details>\n");
		strbuf_release(&line);
	}
}
