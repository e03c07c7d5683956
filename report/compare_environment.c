/* Finds the differences of two sides besides the figures: machines, programs, frameworks. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "report/compare_internal.h"
#include "report/names.h"
#include "report/program.h"
#include "report/text.h"
#include "store/machine_figures.h"

enum { VALUE_COLUMNS = 60 };

const char *difference_kind_name(enum difference_kind kind)
{
	static const char *const names[DIFFERENCE_KINDS] = {"must_match", "should_match",
							    "informational"};
	return names[kind];
}

/* Formats a value for people; the caller frees. */
static char *value_text(const json_t *value)
{
	if (!value || json_is_null(value))
		return memory_strdup("null");
	char *text = json_is_string(value)
			     ? memory_strdup(json_string_value(value))
			     : text_of_json(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
	char *line = text_line(text);
	free(text);
	size_t bytes = text_fit(line, VALUE_COLUMNS);
	if (bytes < strlen(line)) {
		char *cut = memory_printf("%.*s...", (int)bytes, line);
		free(line);
		line = cut;
	}
	return line;
}

static char *then_or_now(const json_t *value)
{
	return json_is_null(value) ? memory_strdup("none") : value_text(value);
}

bool compare_noise_elsewhere(const json_t *record, struct strbuf *out)
{
	const json_t *then = machine_noise_surroundings(record);
	json_t *now = machine_surroundings(record), *is;
	const char *name;
	bool any = false;

	json_object_foreach(now, name, is)
	{
		const json_t *was = json_object_get(then, name);
		/* A value that was not recorded is unknown. */
		if (!was || json_equal(was, is))
			continue;
		char *left = then_or_now(was), *right = then_or_now(is);
		strbuf_printf(out, "%s%s: then %s, now %s", any ? "; " : "", name, left, right);
		any = true;
		free(left);
		free(right);
	}
	json_decref(now);
	return any;
}

/* The receiver of differences. */
struct sink {
	void (*take)(struct sink *sink, const char *what, const char *a, const char *b);
	void *to;
	enum difference_kind kind;
};

static void differ(struct sink *sink, const char *what, const json_t *a, const json_t *b)
{
	char *left = value_text(a), *right = value_text(b);
	sink->take(sink, what, left, right);
	free(left);
	free(right);
}

/* Reports the unequal members of two objects; members of nested objects as "name.member". */
static void walk(struct sink *sink, const char *before, json_t *a, json_t *b)
{
	json_t *all = json_object(), *unused;
	const char *name;
	json_object_update(all, a);
	json_object_update(all, b);
	json_object_foreach(all, name, unused)
	{
		json_t *left = json_object_get(a, name), *right = json_object_get(b, name);
		char *what = memory_printf("%s%s%s", before, *before ? "." : "", name);
		if (json_is_object(left) && json_is_object(right))
			walk(sink, what, left, right);
		else if (!(left && right && json_equal(left, right)) &&
			 !(json_is_null(left) && !right) && !(json_is_null(right) && !left))
			differ(sink, what, left, right);
		free(what);
	}
	json_decref(all);
}

static json_t *parse(const char *text)
{
	struct error ignored = ERROR_INIT;
	json_t *json = NULL;
	if (text && json_parse(text, strlen(text), "environment", &json, &ignored) != PRONY_OK)
		return NULL;
	return json;
}

/* Adds the must-match differences to a sentence. */
static void take_words(struct sink *sink, const char *what, const char *a, const char *b)
{
	struct strbuf *out = sink->to;
	strbuf_printf(out, "%s%s (%s and %s)", out->length ? ", " : "", what, a, b);
}

bool compare_machines(const char *environment_a, const char *environment_b, struct strbuf *out)
{
	json_t *a = parse(environment_a), *b = parse(environment_b);
	struct strbuf words;
	const char *name = difference_kind_name(DIFFERENCE_MUST);
	strbuf_init(&words, 0);
	struct sink sink = {.take = take_words, .to = &words};
	walk(&sink, "", json_object_get(a, name), json_object_get(b, name));
	bool any = words.length > 0;
	if (any)
		strbuf_puts(out, strbuf_text(&words));
	strbuf_release(&words);
	json_decref(a);
	json_decref(b);
	return any;
}

bool compare_obstacles(const struct compare *compare, struct strbuf *out)
{
	bool any = false;
	for (size_t i = 0; i < compare->difference_count; i++) {
		const struct compare_difference *at = &compare->differences[i];
		if (at->kind != DIFFERENCE_MUST)
			continue;
		strbuf_printf(out, "%s%s (%s and %s)", any ? ", " : "", at->what, at->a, at->b);
		any = true;
	}
	return any;
}

/* Adds to the comparison's list, without duplicates. */
struct list {
	struct compare *compare;
	struct names names;
	size_t capacity;
};

static void take_row(struct sink *sink, const char *what, const char *a, const char *b)
{
	struct list *list = sink->to;
	struct compare *compare = list->compare;
	char *key = memory_printf("%s\n%s\n%s", what, a, b);
	size_t known = list->names.count;
	bool is_new = names_add(&list->names, key, strlen(key)) == known;
	free(key);
	if (!is_new)
		return;
	compare->differences =
		arena_grow(&compare->arena, compare->differences, compare->difference_count,
			   &list->capacity, sizeof *compare->differences);
	compare->differences[compare->difference_count++] =
		(struct compare_difference){.kind = sink->kind,
					    .what = arena_strdup(&compare->arena, what),
					    .a = arena_strdup(&compare->arena, a),
					    .b = arena_strdup(&compare->arena, b)};
	compare->of_kind[sink->kind]++;
}

static void add_text(struct sink *sink, enum difference_kind kind, const char *what, const char *a,
		     const char *b)
{
	sink->kind = kind;
	if (strcmp(a, b) != 0)
		sink->take(sink, what, *a ? a : "null", *b ? b : "null");
}

/* Compares the libraries of native that both runs loaded. */
static void add_libraries(struct sink *sink, json_t *a, json_t *b)
{
	const json_t *was;
	const char *name;
	json_object_foreach(a, name, was)
	{
		const char *hash = json_string_value(was);
		const char *now = json_string_value(json_object_get(b, name));
		if (!hash || !now)
			continue;
		char *what = memory_printf("library of %s, the floor", name);
		char *left = memory_printf("sha256 %.*s", PROGRAM_HASH_SHOWN, hash);
		char *right = memory_printf("sha256 %.*s", PROGRAM_HASH_SHOWN, now);
		add_text(sink, DIFFERENCE_SHOULD, what, left, right);
		free(what);
		free(left);
		free(right);
	}
}

/* Compares the two pronys, as one difference. Removes the parts from both records. */
static void add_programs(struct sink *sink, const struct compare *compare, json_t *a, json_t *b)
{
	char left[PROGRAM_BYTES], right[PROGRAM_BYTES];
	program_text(&compare->a.run->meta, a, left);
	program_text(&compare->b.run->meta, b, right);
	add_text(sink, DIFFERENCE_SHOULD, "prony", left, right);
	add_libraries(sink, program_libraries(a), program_libraries(b));
	program_remove(a);
	program_remove(b);
}

/* Compares the options of the two runs. */
static void add_runs(struct sink *sink, const struct run_meta *a, const struct run_meta *b)
{
	char seed_a[24], seed_b[24];
	add_text(sink, DIFFERENCE_SHOULD, "effort", a->effort, b->effort);
	add_text(sink, DIFFERENCE_SHOULD, "statistic", a->statistic, b->statistic);
	snprintf(seed_a, sizeof seed_a, "%lld", (long long)a->seed);
	snprintf(seed_b, sizeof seed_b, "%lld", (long long)b->seed);
	add_text(sink, DIFFERENCE_INFORMATIONAL, "seed", seed_a, seed_b);
	add_text(sink, DIFFERENCE_INFORMATIONAL, "suite", a->suite, b->suite);
}

static const struct process_record *first_ok(const struct stored_cell *cell)
{
	for (size_t i = 0; i < cell->process_count; i++)
		if (!strcmp(cell->processes[i].status, cell_status_name(CELL_OK)))
			return &cell->processes[i];
	return NULL;
}

/* Compares the settings that took effect in matched cells. */
static void add_effective(struct sink *sink, const struct compare_row *row)
{
	const struct process_record *a = first_ok(row->a), *b = first_ok(row->b);
	char threads_a[24], threads_b[24];
	if (!a || !b)
		return;
	char *what = memory_printf("%s: threads", row->b->cell.framework);
	snprintf(threads_a, sizeof threads_a, "%lld", (long long)a->threads);
	snprintf(threads_b, sizeof threads_b, "%lld", (long long)b->threads);
	if (a->threads != RECORD_NONE && b->threads != RECORD_NONE)
		add_text(sink, DIFFERENCE_MUST, what, threads_a, threads_b);
	free(what);
	what = memory_printf("%s: precision", row->b->cell.framework);
	if (*a->precision && *b->precision)
		add_text(sink, DIFFERENCE_MUST, what, a->precision, b->precision);
	free(what);
}

/* Compares the frameworks, which often differ because they are the subject of the comparison. */
static void add_framework(struct sink *sink, const struct compare_row *row)
{
	static const char *const members[] = {"version", "libraries", "settings", "instruction_set",
					      "origin"};
	const json_t *a = row->a->framework, *b = row->b->framework;
	if (!a || !b)
		return;
	sink->kind = DIFFERENCE_SHOULD;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		json_t *left = json_object_get(a, members[i]);
		json_t *right = json_object_get(b, members[i]);
		char *what = memory_printf("%s: %s", row->b->cell.framework, members[i]);
		if (json_is_object(left) && json_is_object(right))
			walk(sink, what, left, right);
		else if (left && right && !json_equal(left, right))
			differ(sink, what, left, right);
		free(what);
	}
}

static int compare_kinds(const void *a, const void *b)
{
	const struct compare_difference *x = a, *y = b;
	int kind = (x->kind > y->kind) - (x->kind < y->kind);
	return kind ? kind : strcmp(x->what, y->what);
}

void compare_find_differences(struct compare *compare)
{
	struct list list = {.compare = compare};
	struct sink sink = {.take = take_row, .to = &list};
	const struct run_meta *a = &compare->a.run->meta, *b = &compare->b.run->meta;
	/* Two frameworks of one run differ on purpose. */
	if (compare->paired)
		return;
	json_t *left = parse(a->environment), *right = parse(b->environment);
	add_programs(&sink, compare, left, right);
	for (int kind = 0; kind < DIFFERENCE_KINDS; kind++) {
		const char *name = difference_kind_name((enum difference_kind)kind);
		sink.kind = (enum difference_kind)kind;
		walk(&sink, "", json_object_get(left, name), json_object_get(right, name));
	}
	json_decref(left);
	json_decref(right);
	add_runs(&sink, a, b);
	for (size_t i = 0; i < compare->matched; i++) {
		const struct compare_row *row = &compare->rows[i];
		add_effective(&sink, row);
		if (!strcmp(row->a->cell.framework, row->b->cell.framework))
			add_framework(&sink, row);
	}
	if (compare->difference_count)
		qsort(compare->differences, compare->difference_count, sizeof *compare->differences,
		      compare_kinds);
	names_release(&list.names);
}
