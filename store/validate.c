/* Checks that a run from another store contains only values that prony itself writes. Every column
 * has a rule: its type and bounds. What a single column cannot show is checked by loading the run
 * like any command does: words, JSON, keys that follow from the axes, intervals in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"

#define TEXT_BYTES_MAX (INT64_C(64) << 20)
#define NUMBER_MAX (INT64_C(1) << 61)
/* There are about twenty sensors. */
#define PROCESS_SERIES_MAX 256

/* Rule of a column; low and high are lengths in bytes for a text or blob, otherwise the least and
 * greatest value. */
enum rule_type { RULE_TEXT, RULE_BLOB, RULE_INT, RULE_REAL };

struct rule {
	const char *column;
	enum rule_type type;
	bool nullable;
	int64_t low, high;
};

#define TEXT(column, bytes)                                                                        \
	{                                                                                          \
		column, RULE_TEXT, false, 0, (bytes)-1                                             \
	}
#define LONG_TEXT(column, null)                                                                    \
	{                                                                                          \
		column, RULE_TEXT, null, 0, TEXT_BYTES_MAX                                         \
	}
#define HEX(column, digits)                                                                        \
	{                                                                                          \
		column, RULE_TEXT, false, digits, digits                                           \
	}
#define BYTES_OF(type, member) (int64_t)sizeof(((struct type *)0)->member)

static const struct rule run_rules[] = {
	HEX("uid", 32),
	TEXT("suite", BYTES_OF(run_meta, suite)),
	TEXT("version", BYTES_OF(run_meta, version)),
	TEXT("effort", BYTES_OF(run_meta, effort)),
	/* Users' seeds go up to 2^64. */
	{"seed", RULE_INT, false, INT64_MIN, INT64_MAX},
	{"started_wall_ns", RULE_INT, false, 0, CLOCK_WALL_LATEST_NS},
	{"finished_wall_ns", RULE_INT, true, 0, CLOCK_WALL_LATEST_NS},
	TEXT("statistic", BYTES_OF(run_meta, statistic)),
	LONG_TEXT("spec", false),
	LONG_TEXT("command", false),
	LONG_TEXT("environment", false),
	HEX("environment_hash", 16),
	TEXT("host", BYTES_OF(run_meta, host)),
};

static const struct rule part_rules[] = {
	{"part", RULE_INT, false, 1, RUN_PARTS_MAX},
	{"parts", RULE_INT, false, 1, RUN_PARTS_MAX},
	{"cells", RULE_INT, false, 0, NUMBER_MAX},
	{"finished_wall_ns", RULE_INT, true, 0, CLOCK_WALL_LATEST_NS},
	LONG_TEXT("environment", false),
	HEX("environment_hash", 16),
	TEXT("host", BYTES_OF(run_part, host)),
};

/* Columns besides the axes. */
static const struct rule cell_rules[] = {
	{"part", RULE_INT, true, 1, RUN_PARTS_MAX},
	HEX("hash", CELL_HASH_BYTES - 1),
	TEXT("key", CELL_KEY_BYTES),
	TEXT("name", CELL_WORD_BYTES),
	TEXT("environment", CELL_WORD_BYTES),
	TEXT("backend", CELL_WORD_BYTES),
	TEXT("options", CELL_WORD_BYTES),
	TEXT("status", CELL_WORD_BYTES),
	TEXT("flags", 128),
	LONG_TEXT("reason", false),
	LONG_TEXT("details", true),
	{"gate", RULE_TEXT, true, 0, CELL_WORD_BYTES - 1},
	LONG_TEXT("evidence", true),
	LONG_TEXT("gate_log", true),
};

static const struct rule log_rules[] = {LONG_TEXT("log", false)};

/* A step each 40 ns in a window of 10 s fills the intervals; a series has 4096 samples, and the
 * losses one for each reading. */
#define INTERVAL_BYTES_MAX (INT64_C(1) << 28)
#define SERIES_BYTES_MAX (INT64_C(1) << 26)

static const struct rule interval_rules[] = {
	{"intervals", RULE_BLOB, false, 0, INTERVAL_BYTES_MAX},
};

static const struct rule series_rules[] = {
	TEXT("sensor", SERIES_WORD_BYTES),
	TEXT("kind", SERIES_WORD_BYTES),
	TEXT("unit", SERIES_WORD_BYTES),
	TEXT("rate_unit", SERIES_WORD_BYTES),
	TEXT("absent", SERIES_REASON_BYTES),
	LONG_TEXT("channels", false),
	{"samples", RULE_BLOB, false, 0, SERIES_BYTES_MAX},
};

static const struct rule rank_rules[] = {
	{"rank", RULE_INT, false, 0, 63},
	{"begin_ns", RULE_INT, true, 0, NUMBER_MAX},
	{"length_ns", RULE_INT, true, 0, NUMBER_MAX},
	{"rss_bytes", RULE_INT, true, 0, NUMBER_MAX},
	{"user_ns", RULE_INT, true, 0, NUMBER_MAX},
	{"system_ns", RULE_INT, true, 0, NUMBER_MAX},
};

static const struct rule name_rules[] = {TEXT("name", RUN_WORD_BYTES)};
static const struct rule tag_rules[] = {TEXT("tag", RUN_WORD_BYTES)};

/* The bounds of real numbers are checked when they are read. */
static struct rule axis_rule(const struct axis *axis)
{
	/* The column may be missing in a store that is older than this axis. */
	bool later = axis->texts != AXIS_IN_KEY_AND_SPEC;

	switch (axis->type) {
	case AXIS_INT:
		return (struct rule){axis->name, RULE_INT, later, (int64_t)axis->min,
				     (int64_t)axis->max};
	case AXIS_SWITCH:
		return (struct rule){axis->name, RULE_INT, later, 0, 1};
	case AXIS_REAL:
		return (struct rule){axis->name, RULE_REAL, later, 0, 0};
	case AXIS_FRAMEWORK_TYPE:
	case AXIS_TEXT:
	case AXIS_WORD:
		break;
	}
	return (struct rule){axis->name, RULE_TEXT, later, 0, CELL_WORD_BYTES - 1};
}

static struct rule field_rule(const struct record_field *field)
{
	switch (field->type) {
	case FIELD_TYPE_INT:
		return (struct rule){field->name, RULE_INT, strcmp(field->name, "replicate") != 0,
				     strcmp(field->name, "replicate") ? -NUMBER_MAX : 0,
				     NUMBER_MAX};
	case FIELD_TYPE_REAL:
		return (struct rule){field->name, RULE_REAL, true, 0, 0};
	case FIELD_TYPE_TEXT:
		break;
	}
	return (struct rule){field->name, RULE_TEXT, true, 0, (int64_t)field->bytes - 1};
}

static enum prony_status wrong(const char *column, const char *table, struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT,
			 "`%s` of table `%s` has a value that prony never writes", column, table);
}

/* SQL for the number (from 1) of the first rule that a row breaks. */
static void add_rule(const struct rule *rule, int number, struct strbuf *sql)
{
	const char *c = rule->column;

	strbuf_printf(sql, " WHEN %s IS %sNULL %s", c, rule->nullable ? "NOT " : "",
		      rule->nullable ? "AND (" : "OR (");
	switch (rule->type) {
	case RULE_TEXT:
	case RULE_BLOB:
		strbuf_printf(sql,
			      "typeof(%s) <> '%s' OR length(CAST(%s AS BLOB)) NOT BETWEEN %lld AND "
			      "%lld",
			      c, rule->type == RULE_TEXT ? "text" : "blob", c, (long long)rule->low,
			      (long long)rule->high);
		if (rule->type == RULE_TEXT)
			strbuf_printf(sql, " OR instr(CAST(%s AS BLOB), x'00') > 0", c);
		break;
	case RULE_INT:
		/* -9223372036854775808 is not a valid SQL literal. */
		strbuf_printf(sql, "typeof(%s) <> 'integer' OR %s > %lld OR %s < %lld - 1", c, c,
			      (long long)rule->high, c, (long long)rule->low + 1);
		break;
	case RULE_REAL:
		strbuf_printf(sql, "typeof(%s) NOT IN ('real', 'integer') OR abs(%s) > 1.7e308", c,
			      c);
		break;
	}
	strbuf_printf(sql, ") THEN %d", number);
}

/* A table, the rules of its columns, and the condition for rows of run ?1. */
struct rules {
	const char *table, *where;
	const struct rule *rows;
	size_t count;
};

static enum prony_status check_rules(struct store *store, const struct rules *rules, int64_t run,
				     struct error *err)
{
	struct strbuf sql;
	sqlite3_stmt *statement = NULL;
	bool row = false;

	strbuf_init(&sql, 0);
	strbuf_puts(&sql, "SELECT wrong FROM (SELECT CASE");
	for (size_t i = 0; i < rules->count; i++)
		add_rule(&rules->rows[i], (int)i + 1, &sql);
	strbuf_printf(&sql, " END AS wrong FROM main.%s WHERE %s) WHERE wrong IS NOT NULL LIMIT 1",
		      rules->table, rules->where);
	enum prony_status status =
		sql_prepare(store, strbuf_text(&sql), "check a run", &statement, err, "n", run);
	strbuf_release(&sql);
	if (status == PRONY_OK)
		status = sql_step(store, statement, "check a run", &row, err);
	if (status == PRONY_OK && row) {
		size_t broken = (size_t)sqlite3_column_int64(statement, 0) - 1;
		status = wrong(rules->rows[broken].column, rules->table, err);
	}
	sqlite3_finalize(statement);
	return status;
}

#define OF_RUN "cell IN (SELECT id FROM main.cell WHERE run = ?1)"
#define OF_PROCESS "process IN (SELECT id FROM main.process WHERE " OF_RUN ")"
#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum prony_status check_columns(struct store *store, int64_t run, struct error *err)
{
	struct rule axis_rules[AXIS_COUNT];
	struct rule *field_rules = memory_alloc(process_field_count * sizeof *field_rules);
	const struct rules tables[] = {
		{"run", "id = ?1", run_rules, COUNT(run_rules)},
		{"cell", "run = ?1", cell_rules, COUNT(cell_rules)},
		{"cell", "run = ?1", axis_rules, AXIS_COUNT},
		{"process", OF_RUN, field_rules, process_field_count},
		{"process_log", OF_PROCESS, log_rules, COUNT(log_rules)},
		{"process_intervals", OF_PROCESS, interval_rules, COUNT(interval_rules)},
		{"process_series", OF_PROCESS, series_rules, COUNT(series_rules)},
		{"process_rank", OF_PROCESS, rank_rules, COUNT(rank_rules)},
		{"run_name", "run = ?1", name_rules, COUNT(name_rules)},
		{"run_tag", "run = ?1", tag_rules, COUNT(tag_rules)},
		{"run_part", "run = ?1", part_rules, COUNT(part_rules)},
	};
	enum prony_status status = PRONY_OK;

	for (int id = 0; id < AXIS_COUNT; id++)
		axis_rules[id] = axis_rule(&axes[id]);
	for (size_t i = 0; i < process_field_count; i++)
		field_rules[i] = field_rule(&process_fields[i]);
	for (size_t i = 0; i < COUNT(tables) && status == PRONY_OK; i++)
		status = check_rules(store, &tables[i], run, err);
	free(field_rules);
	return status;
}

static bool is_hex(const char *text)
{
	return !text[strspn(text, "0123456789abcdef")];
}

static bool flags_are_known(const char *text)
{
	char known[CELL_FLAGS_BYTES];

	cell_flags_text(cell_flags_parse(text), known, sizeof known);
	return !strcmp(known, text);
}

/* Counts are null for frameworks that cannot count. */
static bool count_is_sound(const json_t *evidence, const char *key)
{
	const json_t *count = json_object_get(evidence, key);

	return !count || json_is_null(count) ||
	       (json_is_integer(count) && json_integer_value(count) >= 0);
}

/* The first axis with a value that would be refused on the command line (words, bounds, grammar),
 * or NULL. */
static const char *bad_axis(const struct cell *cell)
{
	for (int id = 0; id < AXIS_COUNT; id++) {
		struct cell parsed = *cell;
		char text[CELL_WORD_BYTES];

		axis_text(&axes[id], axis_value(&axes[id], cell), text);
		if (!axis_set(&axes[id], text, &parsed))
			return axes[id].name;
	}
	return NULL;
}

static enum prony_status check_cell(const struct stored_cell *cell, struct error *err)
{
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];

	const char *axis = bad_axis(&cell->cell);
	if (axis)
		return wrong(axis, "cell", err);
	cell_key(&cell->cell, key);
	cell_hash(&cell->cell, hash);
	/* An axis unknown to this prony is in the key but not in the cell. */
	if (strcmp(key, cell->key) != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "a `key` in table `cell` does not match its columns; a newer "
				 "prony may have written it");
	if (strcmp(hash, cell->hash) != 0)
		return wrong("hash", "cell", err);
	if (cell->framework && !json_is_object(cell->framework))
		return wrong("details", "cell", err);
	if (cell->evidence &&
	    (!json_is_object(cell->evidence) || !count_is_sound(cell->evidence, "parameters") ||
	     !count_is_sound(cell->evidence, "macs") || !count_is_sound(cell->evidence, "tokens") ||
	     !count_is_sound(cell->evidence, "weights_read") ||
	     !count_is_sound(cell->evidence, "caches_read") ||
	     !count_is_sound(cell->evidence, "gate_batch")))
		return wrong("evidence", "cell", err);
	return PRONY_OK;
}

static enum prony_status check_process(const struct process_record *record, struct error *err)
{
	enum cell_status status;

	if (*record->status && !cell_status_parse(record->status, &status))
		return wrong("status", "process", err);
	if (!flags_are_known(record->flags))
		return wrong("flags", "process", err);
	for (size_t i = 0; i < record->interval_count; i++) {
		const struct step_record *at = &record->intervals[i];
		if (at->begin_ns < 0 || at->end_ns < at->begin_ns || at->end_ns > NUMBER_MAX ||
		    (i > 0 && at->begin_ns < at[-1].end_ns))
			return wrong("intervals", "process_intervals", err);
	}
	return PRONY_OK;
}

/* The parts of a framework follow from its text. Returns the first column that does not match, or
 * NULL. */
static const char *bad_part(sqlite3_stmt *row, int first)
{
	struct cell cell;
	const struct {
		const char *name, *text;
	} parts[] = {{"framework", cell.framework},
		     {"name", cell.name},
		     {"environment", cell.environment},
		     {"backend", cell.backend},
		     {"options", cell.options}};

	if (cell_parse_framework(sql_text(row, first), &cell, NULL) != PRONY_OK)
		return "framework";
	for (int i = 0; i < (int)COUNT(parts); i++)
		if (strcmp(parts[i].text, sql_text(row, first + i)) != 0)
			return parts[i].name;
	return NULL;
}

/* Checks what the loader ignores: unknown flag words, and the parts of the framework. */
static enum prony_status check_words(struct store *store, int64_t run, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = true;
	enum prony_status status = sql_prepare(
		store,
		"SELECT DISTINCT flags, framework, name, environment, backend, options FROM "
		"main.cell WHERE run = ?1",
		"check a run", &statement, err, "n", run);

	while (status == PRONY_OK) {
		status = sql_step(store, statement, "check a run", &row, err);
		if (status != PRONY_OK || !row)
			break;
		const char *bad =
			flags_are_known(sql_text(statement, 0)) ? bad_part(statement, 1) : "flags";
		if (bad)
			status = wrong(bad, "cell", err);
	}
	sqlite3_finalize(statement);
	return status;
}

/* Names and tags must be words that prony would accept. */
static enum prony_status check_names(const struct run_meta *meta, struct error *err)
{
	char tag[RUN_WORD_BYTES];
	struct error why = ERROR_INIT;

	if (*meta->name && run_name_check(meta->name, &why) != PRONY_OK)
		return wrong("name", "run_name", err);
	for (const char *at = meta->tags; *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		snprintf(tag, sizeof tag, "%.*s", (int)length, at);
		if (length >= sizeof tag || run_tag_check(tag, &why) != PRONY_OK)
			return wrong("tag", "run_tag", err);
		at += length;
	}
	return PRONY_OK;
}

static enum prony_status check_machine(const char *environment, const char *table,
				       struct error *err)
{
	struct error why = ERROR_INIT;
	json_t *machine = NULL;

	if (!*environment)
		return PRONY_OK;
	enum prony_status status =
		json_parse(environment, strlen(environment), "environment", &machine, &why);
	if (status != PRONY_OK || !json_is_object(machine))
		status = wrong("environment", table, err);
	json_decref(machine);
	return status;
}

static enum prony_status check_loaded(const struct stored_run *run, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (!is_hex(run->meta.uid))
		return wrong("uid", "run", err);
	status = check_names(&run->meta, err);
	if (status == PRONY_OK)
		status = check_machine(run->meta.environment, "run", err);
	for (size_t i = 0; i < run->meta.part_count && status == PRONY_OK; i++)
		status = check_machine(run->meta.parts[i].environment, "run_part", err);
	for (size_t i = 0; i < run->cell_count && status == PRONY_OK; i++) {
		const struct stored_cell *cell = &run->cells[i];
		status = check_cell(cell, err);
		for (size_t p = 0; p < cell->process_count && status == PRONY_OK; p++)
			status = check_process(&cell->processes[p], err);
	}
	return status;
}

/* Limits what loading the run takes: all of it is in memory at once. */
static enum prony_status check_size(struct store *store, int64_t id, struct error *err)
{
	int64_t most = memory_physical_bytes() / 8, bytes = 0, series = 0;
	enum prony_status status =
		sql_int(store,
			"SELECT (SELECT ifnull(sum(length(intervals)), 0) FROM "
			"main.process_intervals WHERE " OF_PROCESS
			") + (SELECT ifnull(sum(length(samples)), 0) FROM main.process_series "
			"WHERE " OF_PROCESS ")",
			"check a run", 0, &bytes, err, "n", id);

	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT max(n) FROM (SELECT count(*) AS n FROM "
				 "main.process_series WHERE " OF_PROCESS " GROUP BY process)",
				 "check a run", 0, &series, err, "n", id);
	if (status == PRONY_OK && bytes > most)
		return error_set(err, PRONY_BAD_INPUT,
				 "its intervals and series take %lld MiB, more than an eighth of "
				 "this machine's memory",
				 (long long)(bytes >> 20));
	if (status == PRONY_OK && series > PROCESS_SERIES_MAX)
		return error_set(err, PRONY_BAD_INPUT,
				 "a process of it has %lld series of sensors; at most %d are read",
				 (long long)series, PROCESS_SERIES_MAX);
	return status;
}

enum prony_status validate_run(struct store *store, int64_t id, struct error *err)
{
	struct stored_run run;
	enum prony_status status = check_columns(store, id, err);

	if (status == PRONY_OK)
		status = check_size(store, id, err);

	if (status == PRONY_OK)
		status = check_words(store, id, err);
	if (status == PRONY_OK) {
		/* Words and JSON that the loader refuses are also faults of the other store. */
		struct error why = ERROR_INIT;
		status = load_run(store, id, NULL, STORE_ALL, &run, &why);
		if (status != PRONY_OK) {
			/* Remove this store's name from the message. */
			size_t length = strlen(store->path);
			bool named = !strncmp(why.text, store->path, length) &&
				     !strncmp(why.text + length, ": ", 2);
			return error_set(err, status == PRONY_STORE ? PRONY_BAD_INPUT : status,
					 "%s", why.text + (named ? length + 2 : 0));
		}
		status = check_loaded(&run, err);
		stored_run_release(&run);
	}
	return status;
}
