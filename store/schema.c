/* Creates, migrates and checks the tables of a store. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "store/sql_internal.h"
#include "store/store.h"

#define APPLICATION_ID 0x70726f6e /* "pron", distinguishes a store from other SQLite files */

/* Schema n is made by migrations[0..n-1]; a released migration never changes. The columns of
 * `process` come from PROCESS_FIELDS and those of later axes from cell/axes.h. Missing columns are
 * added, and so are the tables of sensor series and of run names: adding them keeps older stores
 * readable. Logs, intervals and series have their own tables, because SQLite would otherwise have
 * to read past them to reach a later column. */
static const char *const migrations[STORE_SCHEMA] = {
	"CREATE TABLE run ("
	" id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, suite TEXT NOT NULL,"
	" version TEXT NOT NULL, effort TEXT NOT NULL, seed INTEGER NOT NULL,"
	" started_wall_ns INTEGER NOT NULL, finished_wall_ns INTEGER, statistic TEXT NOT NULL,"
	" spec TEXT NOT NULL, command TEXT NOT NULL, environment TEXT NOT NULL,"
	" environment_hash TEXT NOT NULL, host TEXT NOT NULL);"
	"CREATE TABLE cell ("
	" id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"
	" hash TEXT NOT NULL, key TEXT NOT NULL, framework TEXT NOT NULL, name TEXT NOT NULL,"
	" environment TEXT NOT NULL, backend TEXT NOT NULL, options TEXT NOT NULL,"
	" network TEXT NOT NULL, dataset TEXT NOT NULL, device TEXT NOT NULL,"
	" precision TEXT NOT NULL, batch INTEGER NOT NULL, stage TEXT NOT NULL,"
	" input TEXT NOT NULL, sync TEXT NOT NULL, optimiser TEXT NOT NULL,"
	" dropout INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'pending',"
	" flags TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', details TEXT,"
	" gate TEXT, evidence TEXT, gate_log TEXT, UNIQUE (run, hash));"
	"CREATE TABLE process ("
	" id INTEGER PRIMARY KEY, cell INTEGER NOT NULL REFERENCES cell ON DELETE CASCADE,"
	" replicate INTEGER NOT NULL, UNIQUE (cell, replicate));"
	"CREATE TABLE process_log ("
	" process INTEGER PRIMARY KEY REFERENCES process ON DELETE CASCADE, log TEXT NOT NULL);"
	"CREATE TABLE process_intervals ("
	" process INTEGER PRIMARY KEY REFERENCES process ON DELETE CASCADE,"
	" intervals BLOB NOT NULL);",
};

static const char series_table[] =
	"CREATE TABLE IF NOT EXISTS process_series ("
	" process INTEGER NOT NULL REFERENCES process ON DELETE CASCADE, sensor TEXT NOT NULL,"
	" kind TEXT NOT NULL, unit TEXT NOT NULL, rate_unit TEXT NOT NULL, absent TEXT NOT NULL,"
	" channels TEXT NOT NULL, samples BLOB NOT NULL, UNIQUE (process, sensor))";

static const char rank_table[] =
	"CREATE TABLE IF NOT EXISTS process_rank ("
	" process INTEGER NOT NULL REFERENCES process ON DELETE CASCADE, rank INTEGER NOT NULL,"
	" begin_ns INTEGER, length_ns INTEGER, rss_bytes INTEGER, user_ns INTEGER,"
	" system_ns INTEGER, UNIQUE (process, rank))";

/* A name belongs to one run, and a run has at most one name. Tags are unlimited. */
static const char names_tables[] =
	"CREATE TABLE IF NOT EXISTS run_name ("
	" name TEXT NOT NULL UNIQUE,"
	" run INTEGER NOT NULL UNIQUE REFERENCES run ON DELETE CASCADE);"
	"CREATE TABLE IF NOT EXISTS run_tag ("
	" run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, tag TEXT NOT NULL,"
	" UNIQUE (run, tag))";

static const char parts_table[] =
	"CREATE TABLE IF NOT EXISTS run_part ("
	" run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, part INTEGER NOT NULL,"
	" parts INTEGER NOT NULL, cells INTEGER NOT NULL, finished_wall_ns INTEGER,"
	" environment TEXT NOT NULL, environment_hash TEXT NOT NULL, host TEXT NOT NULL,"
	" UNIQUE (run, part))";

/* How the SQL text of each of our tables begins. Rows are found by their number, so that column
 * must be the rowid. */
static const struct {
	const char *name, *head;
} tables[] = {
	{"run", "CREATE TABLE run ( id INTEGER PRIMARY KEY,"},
	{"cell", "CREATE TABLE cell ( id INTEGER PRIMARY KEY,"},
	{"process", "CREATE TABLE process ( id INTEGER PRIMARY KEY,"},
	{"process_log", "CREATE TABLE process_log ( process INTEGER PRIMARY KEY "},
	{"process_intervals", "CREATE TABLE process_intervals ( process INTEGER PRIMARY KEY "},
	{"process_series", "CREATE TABLE process_series ( process INTEGER NOT NULL "},
	{"process_rank", "CREATE TABLE process_rank ( process INTEGER NOT NULL "},
	{"run_name", "CREATE TABLE run_name ( name TEXT NOT NULL UNIQUE,"},
	{"run_tag", "CREATE TABLE run_tag ( run INTEGER NOT NULL "},
	{"run_part", "CREATE TABLE run_part ( run INTEGER NOT NULL "},
};

enum { TABLE_COUNT = sizeof tables / sizeof *tables, TABLES_OF_SCHEMA_1 = 5 };

static int find_table(const char *name)
{
	for (int i = 0; i < TABLE_COUNT; i++)
		if (!sqlite3_stricmp(tables[i].name, name))
			return i;
	return -1;
}

/* Whether the SQL text of a table or index contains only names, types and constraints and nothing
 * that would be evaluated. In the list of columns a parenthesis may only follow UNIQUE (not CHECK,
 * DEFAULT, or AS for a computed column), and nothing follows the list. A hostile CHECK with LIKE
 * alone could run practically for ever. */
static bool is_plain(const char *sql)
{
	int depth = 0;
	bool unique = false;

	for (const char *at = sql; *at;) {
		size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_");
		if (length > 0) {
			unique = length == 6 && !sqlite3_strnicmp(at, "UNIQUE", 6);
			at += length;
			continue;
		}
		if (isspace((unsigned char)*at)) {
			at++;
			continue;
		}
		if (*at == '\'') { /* a default value; '' inside it reads as two strings */
			at = strchr(at + 1, '\'');
			if (!at)
				return false;
		} else if (*at == '(') {
			if (++depth > 1 && !(unique && depth == 2))
				return false;
		} else if (*at == ')') {
			depth--;
			if (depth <= 0)
				return depth == 0 && !at[1 + strspn(at + 1, " ")];
		} else if (*at != ',') {
			return false;
		}
		unique = false;
		at++;
	}
	return false;
}

/* What is wrong with an object that has the name of one of our tables or belongs to one; NULL when
 * it is fine. Virtual tables have no root page. */
static const char *object_fault(int table, const char *type, int64_t root_page, const char *sql)
{
	if (!strcmp(type, "index"))
		return !*sql || is_plain(sql) ? NULL : "it has an index on an expression";
	if (strcmp(type, "table") != 0 || root_page <= 0)
		return strcmp(type, "trigger") ? "it is not a table" : "it has a trigger";
	if (strncmp(sql, tables[table].head, strlen(tables[table].head)) != 0 || !is_plain(sql))
		return "its definition differs from prony's";
	return NULL;
}

/* Every object with one of our names must be a plain table: a view, a trigger or a computed column
 * could return different rows each time or never end. */
static enum prony_status check_tables(struct store *store, struct error *err)
{
	bool found[TABLE_COUNT] = {false}, row = true;
	sqlite3_stmt *statement = NULL;
	enum prony_status status =
		sql_prepare(store, "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master",
			    "read it", &statement, err, "");

	while (status == PRONY_OK) {
		status = sql_step(store, statement, "read it", &row, err);
		if (status != PRONY_OK || !row)
			break;
		int own = find_table(sql_text(statement, 1));
		int table = own >= 0 ? own : find_table(sql_text(statement, 2));
		const char *fault = table < 0 ? NULL
					      : object_fault(table, sql_text(statement, 0),
							     sqlite3_column_int64(statement, 3),
							     sql_text(statement, 4));
		if (fault)
			status = error_set(err, PRONY_STORE,
					   "%s: '%s' is not prony's table: %s; another program "
					   "changed the file (use --store FILE for another store)",
					   store->path, tables[table].name, fault);
		if (own >= 0)
			found[own] = true;
	}
	sqlite3_finalize(statement);
	for (int i = 0; i < TABLES_OF_SCHEMA_1 && status == PRONY_OK; i++)
		if (!found[i])
			status = error_set(err, PRONY_STORE,
					   "%s: is damaged: table '%s' is missing (use --store "
					   "FILE for another store)",
					   store->path, tables[i].name);
	return status;
}

enum prony_status schema_version(struct store *store, int64_t *version, struct error *err)
{
	int64_t count = 0, application = 0, found = 0;
	enum prony_status status =
		sql_int(store, "SELECT count(*) FROM sqlite_master", "use it", 0, &count, err, "");

	if (status == PRONY_OK && count > 0)
		status =
			sql_int(store, "PRAGMA application_id", "use it", 0, &application, err, "");
	if (status == PRONY_OK && count > 0)
		status = sql_int(store, "PRAGMA user_version", "use it", 0, &found, err, "");
	if (status == PRONY_OK && count > 0 && application != APPLICATION_ID)
		return error_set(err, PRONY_STORE,
				 "%s: is an SQLite file of another program; use --store FILE for "
				 "another store",
				 store->path);
	if (status == PRONY_OK && found > STORE_SCHEMA)
		return error_set(
			err, PRONY_STORE,
			"%s: was written by a newer prony (schema %lld; this version reads up to "
			"%d); update prony, or use --store FILE for another store",
			store->path, (long long)found, STORE_SCHEMA);
	/* Tables and version are written in one transaction. */
	if (status == PRONY_OK && count > 0 && found < 1)
		return error_set(err, PRONY_STORE,
				 "%s: unknown schema %lld; another program changed the file (use "
				 "--store FILE for another store)",
				 store->path, (long long)found);
	if (status == PRONY_OK && count > 0)
		status = check_tables(store, err);
	if (status == PRONY_OK)
		*version = found;
	return status;
}

/* Finds the tables that were added later; a write-protected older store lacks them. */
static enum prony_status find_tables(struct store *store, struct error *err)
{
	int64_t series = 0, ranks = 0, names = 0;
	enum prony_status status =
		sql_int(store, "SELECT count(*) FROM sqlite_master WHERE name = 'process_series'",
			"read it", 0, &series, err, "");

	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT count(*) FROM sqlite_master WHERE name = 'process_rank'",
				 "read it", 0, &ranks, err, "");
	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT count(*) FROM sqlite_master"
				 " WHERE name IN ('run_name', 'run_tag')",
				 "read it", 0, &names, err, "");
	store->has_series = series > 0;
	store->has_ranks = ranks > 0;
	store->has_names = names == 2;
	return status;
}

/* A column of our tables: name, type, and whether the store has it. */
struct column {
	const char *table, *name, *type;
	bool *present;
};

static const char *axis_column_type(enum axis_type type)
{
	return type == AXIS_INT || type == AXIS_SWITCH ? "INTEGER"
	       : type == AXIS_REAL		       ? "REAL"
						       : "TEXT";
}

/* Of the axes, `part` of a cell, and the fields. */
#define COLUMN_COUNT (AXIS_COUNT + 1 + process_field_count)

static struct column column_at(struct store *store, size_t i)
{
	static const char *const types[] = {[FIELD_TYPE_INT] = "INTEGER",
					    [FIELD_TYPE_REAL] = "REAL",
					    [FIELD_TYPE_TEXT] = "TEXT"};

	if (i < AXIS_COUNT)
		return (struct column){"cell", axes[i].name, axis_column_type(axes[i].type),
				       &store->axis_columns[i]};
	if (i == AXIS_COUNT)
		return (struct column){"cell", "part", "INTEGER", &store->has_parts};
	i -= AXIS_COUNT + 1;
	return (struct column){"process", process_fields[i].name, types[process_fields[i].type],
			       &store->columns[i]};
}

enum prony_status schema_find(struct store *store, struct error *err)
{
	enum prony_status status = find_tables(store, err);

	for (size_t i = 0; i < COLUMN_COUNT && status == PRONY_OK; i++) {
		struct column column = column_at(store, i);
		int64_t count = 0;

		status =
			sql_int(store, "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2",
				"read it", 0, &count, err, "tt", column.table, column.name);
		*column.present = count > 0;
	}
	return status;
}

static enum prony_status add_columns(struct store *store, struct error *err)
{
	enum prony_status status = schema_find(store, err);

	for (size_t i = 0; i < COLUMN_COUNT && status == PRONY_OK; i++) {
		struct column column = column_at(store, i);
		char sql[160];

		if (*column.present)
			continue;
		snprintf(sql, sizeof sql, "ALTER TABLE %s ADD COLUMN %s %s", column.table,
			 column.name, column.type);
		status = sql_run(store, sql, "update it", err);
		*column.present = status == PRONY_OK;
	}
	return status;
}

enum prony_status schema_migrate(struct store *store, struct error *err)
{
	int64_t version = 0;
	enum prony_status status = sql_begin(store, "write to it", err);

	if (status != PRONY_OK)
		return status;
	/* Check again under the lock: another prony may have migrated meanwhile. */
	status = schema_version(store, &version, err);
	for (int64_t i = version; i < STORE_SCHEMA && status == PRONY_OK; i++)
		status = sql_run(store, migrations[i], "make its tables", err);
	if (status == PRONY_OK)
		status = sql_run(store, series_table, "make its tables", err);
	if (status == PRONY_OK)
		status = sql_run(store, rank_table, "make its tables", err);
	if (status == PRONY_OK)
		status = sql_run(store, names_tables, "make its tables", err);
	if (status == PRONY_OK)
		status = sql_run(store, parts_table, "make its tables", err);
	if (status == PRONY_OK)
		status = add_columns(store, err);
	if (status == PRONY_OK && version < STORE_SCHEMA) {
		char sql[96];
		snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
			 APPLICATION_ID, STORE_SCHEMA);
		status = sql_run(store, sql, "make its tables", err);
	}
	return sql_end(store, status, "make its tables", err);
}
