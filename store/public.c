/* Leaves private facts out of what the readers of a store get. A view in SQLite's temporary schema
 * stands before each table, so that no reader and no format can forget it. */
#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

/* Words that are replaced wherever they occur. */
struct secrets {
	struct secret {
		char *word;
		char shown[24];
	} * rows;
	size_t count, capacity;
	int hosts;
};

static void secrets_free(void *context)
{
	struct secrets *secrets = context;

	for (size_t i = 0; i < secrets->count; i++)
		free(secrets->rows[i].word);
	free(secrets->rows);
	free(secrets);
}

/* Hosts are numbered, so that they can be told apart. root tells nothing. */
static void add_secret(struct secrets *secrets, const char *word, size_t length, bool host)
{
	struct secret row = {.shown = "[user]"};

	if (length < 2 || (length == 4 && strncmp(word, "root", 4) == 0))
		return;
	for (size_t i = 0; i < secrets->count; i++)
		if (strlen(secrets->rows[i].word) == length &&
		    strncmp(secrets->rows[i].word, word, length) == 0)
			return;
	secrets->rows = memory_grow(secrets->rows, secrets->count, &secrets->capacity,
				    sizeof *secrets->rows);
	row.word = memory_printf("%.*s", (int)length, word);
	if (host)
		snprintf(row.shown, sizeof row.shown, "machine %d", ++secrets->hosts);
	secrets->rows[secrets->count++] = row;
}

/* Users by their home folders. */
static void add_homes(struct secrets *secrets, const char *text)
{
	static const char *const above[] = {"/home/", "/Users/"};

	for (size_t i = 0; i < sizeof above / sizeof *above; i++)
		for (const char *at = text; (at = strstr(at, above[i]));) {
			at += strlen(above[i]);
			add_secret(secrets, at, strcspn(at, "/ \t\n\"':;,"), false);
		}
}

#define OF_RUN "SELECT host, command || ' ' || spec || ' ' || environment, " SQL_NODE " FROM run"

static enum prony_status find_secrets(struct store *store, struct secrets *secrets,
				      struct error *err)
{
	static const char *const variables[] = {"USER", "LOGNAME", "SUDO_USER"};
	const struct passwd *user = getpwuid(getuid());
	sqlite3_stmt *statement = NULL;
	bool row = true;
	enum prony_status status = sql_prepare(
		store,
		store->has_parts ? OF_RUN " UNION ALL SELECT host, environment, " SQL_NODE
					  " FROM run_part"
				 : OF_RUN,
		"read it", &statement, err, "");

	if (user)
		add_secret(secrets, user->pw_name, strlen(user->pw_name), false);
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		const char *value = getenv(variables[i]);
		if (value)
			add_secret(secrets, value, strlen(value), false);
	}
	while (status == PRONY_OK) {
		status = sql_step(store, statement, "read it", &row, err);
		if (status != PRONY_OK || !row)
			break;
		const char *host = sql_text(statement, 0), *node = sql_text(statement, 2);
		add_secret(secrets, host, strlen(host), true);
		add_secret(secrets, node, strlen(node), true);
		add_homes(secrets, sql_text(statement, 1));
	}
	sqlite3_finalize(statement);
	return status;
}

static bool is_path(const char *text, const char *at)
{
	char before = at > text ? at[-1] : ' ', earlier = at > text + 1 ? at[-2] : ' ';

	if (*at != '/' || !(isalnum((unsigned char)at[1]) || (at[1] && strchr("._~+@%-", at[1])) ||
			    (unsigned char)at[1] >= 0x80))
		return false;
	/* -I/usr/include; file:///home but not https://host; a quotation mark of UTF-8 */
	return strchr(" \t\n\r\"'`=:([{<>,;|&!@#", before) || (unsigned char)before >= 0x80 ||
	       earlier == '-' || (before == '/' && earlier != ':');
}

/* The length of a path and of the words that belong to it: all in quotes and in a list of a spec,
 * elsewhere those up to the last one with a slash, as in "/home/a/My Models/b.onnx: not found". */
static size_t path_length(const char *text, const char *at)
{
	char before = at > text ? at[-1] : ' ';
	size_t whole = strcspn(at, "\t\r\n\"'`,;:)]}<>|"), length = strcspn(at, " \\");

	if (strchr("=,", before) ? at[whole] == '\n' || at[whole] == ','
				 : strchr("\"'`", before) && at[whole] == before)
		return whole;
	length = length < whole ? length : whole;
	for (size_t end = length; end < whole && (at[end] == ' ' || at[end + 1] == ' ');) {
		size_t word = end + strspn(at + end, "\\ ");
		end = word + strcspn(at + word, " \\");
		end = end < whole ? end : whole;
		if (at[word] == '/' || at[word] == '-')
			break;
		if (memchr(at + word, '/', end - word))
			length = end;
	}
	return length;
}

#define DOMAIN_ENDS ". \t\r\n\"'`,;:=()[]{}<>|/@"

/* The caller frees it. */
static char *without_secrets(const struct secrets *secrets, const char *text)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	for (const char *at = text; *at;) {
		size_t length = 0, i = 0;

		if (is_path(text, at)) {
			strbuf_puts(&out, "[path]");
			at += path_length(text, at);
			continue;
		}
		if (at == text || !isalnum((unsigned char)at[-1]))
			for (; i < secrets->count && !length; i++) {
				size_t bytes = strlen(secrets->rows[i].word);
				if (strncmp(at, secrets->rows[i].word, bytes) == 0 &&
				    !isalnum((unsigned char)at[bytes]))
					length = bytes;
			}
		if (length) {
			strbuf_puts(&out, secrets->rows[i - 1].shown);
			/* its domain */
			while (at[length] == '.' && isalnum((unsigned char)at[length + 1]))
				length += 1 + strcspn(at + length + 1, DOMAIN_ENDS);
		} else {
			strbuf_putc(&out, *at);
		}
		at += length ? length : 1;
	}
	return strbuf_take(&out);
}

/* A new reference. */
static json_t *json_without_secrets(const struct secrets *secrets, json_t *value)
{
	json_t *copy, *member;
	const char *key;
	size_t i;

	if (json_is_string(value)) {
		char *text = without_secrets(secrets, json_string_value(value));
		copy = json_string(text);
		free(text);
	} else if (json_is_array(value)) {
		copy = json_array();
		json_array_foreach(value, i, member)
			json_array_append_new(copy, json_without_secrets(secrets, member));
	} else if (json_is_object(value)) {
		copy = json_object();
		json_object_foreach(value, key, member)
		{
			/* A host may be called as a member that prony looks for. */
			bool own = !key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")];
			char *text = own ? memory_strdup(key) : without_secrets(secrets, key);
			json_object_set_new(copy, text, json_without_secrets(secrets, member));
			free(text);
		}
	} else {
		copy = json_incref(value);
	}
	return copy;
}

/* The SQL function public(text). The kernel's command line, and the variables that hold paths and
 * prony's settings, are left out of a machine's record. */
static void sql_public(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct secrets *secrets = sqlite3_user_data(context);
	const char *text = (const char *)sqlite3_value_text(values[0]);
	json_t *document = NULL, *shown;
	char *result;

	(void)count;
	if (!text)
		return;
	if (*text == '{' &&
	    json_parse(text, strlen(text), "a record", &document, NULL) == PRONY_OK) {
		json_t *facts = json_object_get(document, "informational");
		json_object_del(facts, "command_line");
		json_object_del(facts, "environment");
		json_object_del(facts, "job");
		json_object_del(facts, "partition");
		json_object_del(facts, "nodes_allocated");
		shown = json_without_secrets(secrets, document);
		result = json_dumps(shown, JSON_COMPACT);
		json_decref(shown);
		json_decref(document);
	} else {
		result = without_secrets(secrets, text);
	}
	if (result)
		sqlite3_result_text(context, result, -1, free);
}

/* What to select instead of a column; NULL: the column itself. */
static const char *replacement(const char *table, const char *column)
{
	static const struct {
		const char *table, *column, *shown;
	} rows[] = {
		{"run", "host", "public(host)"},
		{"run", "command", "''"},
		{"run", "suite", "public(suite)"},
		{"run", "spec", "public(spec)"},
		{"run", "environment", "public(environment)"},
		{"run_part", "host", "public(host)"},
		{"run_part", "environment", "public(environment)"},
		{"cell", "reason", "public(reason)"},
		{"cell", "details", "public(details)"},
		{"cell", "evidence", "public(evidence)"},
		{"cell", "gate_log", "public(gate_log)"},
		{"process", "error", "public(error)"},
		{"process", "null_reasons", "public(null_reasons)"},
		{"process_log", "log", "public(log)"},
		{"process_series", "absent", "public(absent)"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].table, table) && !strcmp(rows[i].column, column))
			return rows[i].shown;
	return NULL;
}

static enum prony_status make_view(struct store *store, const char *table, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	struct strbuf sql;
	bool row = true, any = false;
	enum prony_status status = sql_prepare(store, "SELECT name FROM pragma_table_info(?1)",
					       "read it", &statement, err, "t", table);

	strbuf_init(&sql, 0);
	strbuf_printf(&sql, "CREATE TEMP VIEW \"%s\" AS SELECT ", table);
	while (status == PRONY_OK) {
		status = sql_step(store, statement, "read it", &row, err);
		if (status != PRONY_OK || !row)
			break;
		const char *column = sql_text(statement, 0), *shown = replacement(table, column);
		strbuf_printf(&sql, "%s%s AS \"%s\"", any ? ", " : "", shown ? shown : column,
			      column);
		any = true;
	}
	sqlite3_finalize(statement);
	strbuf_printf(&sql, " FROM main.\"%s\"", table);
	/* A table that was added later may not be there. */
	if (status == PRONY_OK && any)
		status = sql_run(store, strbuf_text(&sql), "read it", err);
	strbuf_release(&sql);
	return status;
}

enum prony_status store_make_public(struct store *store, struct error *err)
{
	static const char *const tables[] = {"run",	"run_part",    "cell",
					     "process", "process_log", "process_series"};
	struct secrets *secrets = memory_alloc(sizeof *secrets);

	*secrets = (struct secrets){.count = 0};
	enum prony_status status = find_secrets(store, secrets, err);
	/* SQLite frees the secrets, also when this fails. */
	if (sqlite3_create_function_v2(store->db, "public", 1, SQLITE_UTF8 | SQLITE_INNOCUOUS,
				       secrets, sql_public, NULL, NULL,
				       secrets_free) != SQLITE_OK &&
	    status == PRONY_OK)
		status = sql_fail(store, err, "read it");
	if (status == PRONY_OK)
		status = sql_run(store, "PRAGMA temp_store = MEMORY; PRAGMA query_only = OFF",
				 "read it", err);
	for (size_t i = 0; i < sizeof tables / sizeof *tables && status == PRONY_OK; i++)
		status = make_view(store, tables[i], err);
	return status == PRONY_OK ? sql_run(store, "PRAGMA query_only = ON", "read it", err)
				  : status;
}
