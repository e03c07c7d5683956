#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

#define BUSY_TIMEOUT_MS 10000
#define APPLICATION_ID 0x70726f6e /* "pron", tells a store from other SQLite files */

/*
 * Schema n is made by migrations[0..n-1]; a migration that was released never changes. The columns
 * of `process` come from PROCESS_FIELDS, those of axes that came later from cell/axes.h; they are
 * added when they are missing, as is the table of the sensors' series: what is new in them makes no
 * older store unreadable. Logs, intervals and series have tables of their own: SQLite would have to
 * walk through them to reach a column that was added later.
 */
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

/* "file:PATH?QUERY" with what means something in a URI escaped; caller frees. */
static char *make_uri(const char *path, const char *query)
{
	struct strbuf uri;

	strbuf_init(&uri, 0);
	/* "./" keeps a file named ":memory:" a file. */
	strbuf_puts(&uri, path[0] == '/' ? "file:" : "file:./");
	for (const char *c = path; *c; c++) {
		if (strchr("%?#", *c))
			strbuf_printf(&uri, "%%%02x", (unsigned)*c);
		else
			strbuf_putc(&uri, *c);
	}
	strbuf_puts(&uri, query);
	return strbuf_take(&uri);
}

static enum prony_status connect_to(struct store *store, const char *query, int flags,
				    struct error *err)
{
	sqlite3_close(store->db);
	free(store->uri);
	store->uri = make_uri(store->path, query);
	store->db = NULL;
	if (sqlite3_open_v2(store->uri, &store->db, flags | SQLITE_OPEN_URI, NULL) != SQLITE_OK) {
		if (!store->db)
			return error_set(err, PRONY_NOMEM, "%s: no memory to open it", store->path);
		return sql_fail(store, err, "open it");
	}
	sqlite3_extended_result_codes(store->db, 1);
	sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
	return PRONY_OK;
}

/* Refuses files that are no store, or one of a newer prony. *version 0: nothing is in it yet. */
static enum prony_status check_kind(struct store *store, int64_t *version, struct error *err)
{
	int64_t tables = 0, application = 0;
	enum prony_status status =
		sql_int(store, "SELECT count(*) FROM sqlite_master", "use it", 0, &tables, err, "");

	*version = 0;
	if (status != PRONY_OK || tables == 0)
		return status;
	status = sql_int(store, "PRAGMA application_id", "use it", 0, &application, err, "");
	if (status == PRONY_OK)
		status = sql_int(store, "PRAGMA user_version", "use it", 0, version, err, "");
	if (status == PRONY_OK && application != APPLICATION_ID)
		return error_set(err, PRONY_STORE,
				 "%s: it is an SQLite file of another program; --store FILE names "
				 "another store",
				 store->path);
	if (status == PRONY_OK && *version > STORE_SCHEMA)
		return error_set(err, PRONY_STORE,
				 "%s: it was written by a newer prony (schema %lld, this one knows "
				 "%d); update prony, or name another store with --store FILE",
				 store->path, (long long)*version, STORE_SCHEMA);
	return status;
}

static enum prony_status find_series(struct store *store, struct error *err)
{
	int64_t tables = 0;
	enum prony_status status =
		sql_int(store, "SELECT count(*) FROM sqlite_master WHERE name = 'process_series'",
			"read it", 0, &tables, err, "");

	store->has_series = tables > 0;
	return status;
}

/* A column that a table of ours gives: its name, its type, and whether the store has it. */
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

static struct column column_at(struct store *store, size_t i)
{
	static const char *const types[] = {[FIELD_TYPE_INT] = "INTEGER",
					    [FIELD_TYPE_REAL] = "REAL",
					    [FIELD_TYPE_TEXT] = "TEXT"};

	if (i < AXIS_COUNT)
		return (struct column){"cell", axes[i].name, axis_column_type(axes[i].type),
				       &store->axis_columns[i]};
	i -= AXIS_COUNT;
	return (struct column){"process", process_fields[i].name, types[process_fields[i].type],
			       &store->columns[i]};
}

/* Which of them there are, and whether there are series. */
static enum prony_status find_columns(struct store *store, struct error *err)
{
	enum prony_status status = find_series(store, err);

	for (size_t i = 0; i < AXIS_COUNT + process_field_count && status == PRONY_OK; i++) {
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
	enum prony_status status = find_columns(store, err);

	for (size_t i = 0; i < AXIS_COUNT + process_field_count && status == PRONY_OK; i++) {
		struct column column = column_at(store, i);
		char sql[160];

		if (*column.present)
			continue;
		snprintf(sql, sizeof sql, "ALTER TABLE %s ADD COLUMN %s %s", column.table,
			 column.name, column.type);
		status = sql_run(store, sql, "bring it up to date", err);
		*column.present = status == PRONY_OK;
	}
	return status;
}

/* Makes or brings up to date the tables, all or nothing, and finds out whether it can be written.
 */
static enum prony_status migrate(struct store *store, struct error *err)
{
	int64_t version = 0;
	enum prony_status status = sql_begin(store, "write to it", err);

	if (status != PRONY_OK)
		return status;
	/* Asked again under the lock: another prony may have been quicker. */
	status = check_kind(store, &version, err);
	for (int64_t i = version; i < STORE_SCHEMA && status == PRONY_OK; i++)
		status = sql_run(store, migrations[i], "make its tables", err);
	if (status == PRONY_OK)
		status = sql_run(store, series_table, "make its tables", err);
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

/*
 * The write-ahead log lets `show` and `report` read while a run writes, but its index is memory
 * that processes share, which network file systems cannot do between hosts (sqlite.org/wal.html).
 */
static bool on_network(const char *path)
{
	static const long kinds[] = {
		0x6969,	    /* NFS */ 0x517b,	    /* SMB */ 0xff534d42,    /* CIFS */
		0xfe534d42, /* SMB 2 */ 0x0bd00bd0, /* Lustre */ 0x47504653, /* GPFS */
		0x00c36400, /* Ceph */ 0x5346414f,  /* AFS */ 0x01021997,    /* 9P */
		0x19830326,						     /* BeeGFS */
	};
	struct statfs place;

	if (statfs(path, &place))
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if ((place.f_type & 0xffffffffL) == kinds[i])
			return true;
	return false;
}

static enum prony_status set_journal(struct store *store, struct error *err)
{
	const char *sql = on_network(store->path) ? "PRAGMA journal_mode = DELETE"
						  : "PRAGMA journal_mode = WAL";
	/* Fails while another connection is there, which then has chosen; either mode is safe. */
	sqlite3_exec(store->db, sql, NULL, NULL, NULL);
	return sql_run(store,
		       "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
		       "PRAGMA trusted_schema = OFF",
		       "set it up", err);
}

static enum prony_status make_folder(const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	struct error why = ERROR_INIT;

	if (!slash || slash == path)
		return PRONY_OK;
	char *folder = memory_printf("%.*s", (int)(slash - path), path);
	enum prony_status status = directory_make(folder, &why);
	free(folder);
	if (status != PRONY_OK)
		return error_set(err, PRONY_STORE,
				 "%s: cannot make its folder: %s (--store FILE names another "
				 "place)",
				 path, why.text);
	return PRONY_OK;
}

static enum prony_status open_to_write(struct store *store, struct error *err)
{
	int64_t version = 0;
	enum prony_status status = make_folder(store->path, err);

	if (status == PRONY_OK)
		status = connect_to(store, "?mode=rwc", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
				    err);
	/* SQLite opens what it may not write for reading, and says so at the first result only. */
	if (status == PRONY_OK && sqlite3_db_readonly(store->db, "main") == 1)
		return error_set(err, PRONY_STORE,
				 "%s: it may not be written; give it write permission, or name "
				 "another store with --store FILE",
				 store->path);
	if (status == PRONY_OK)
		status = check_kind(store, &version, err);
	if (status == PRONY_OK)
		status = set_journal(store, err);
	if (status == PRONY_OK)
		status = migrate(store, err);
	return status;
}

/* Whether what was committed last may still stand in the write-ahead log beside the file. */
static bool log_is_left(const char *path)
{
	struct stat there;
	char *log = memory_printf("%s-wal", path);
	bool left = stat(log, &there) == 0 && there.st_size > 0;

	free(log);
	return left;
}

static enum prony_status open_to_read(struct store *store, struct error *err)
{
	struct error first = ERROR_INIT;
	int64_t version = 0;

	if (!file_exists(store->path))
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: there is no store yet; `prony run` makes it, --store FILE "
				 "names another",
				 store->path);
	/* To write, because the last one to close tidies up the log; falls back where it may not.
	 */
	enum prony_status status = connect_to(store, "?mode=rw", SQLITE_OPEN_READWRITE, &first);
	if (status == PRONY_OK)
		status = check_kind(store, &version, &first);
	if (status != PRONY_OK) {
		int code = store->db ? sqlite3_errcode(store->db) & 0xff : SQLITE_NOMEM;
		bool unwritable = code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
		if (!unwritable || log_is_left(store->path))
			return error_set(err, status, "%s", first.text);
		/* A folder that may not be written cannot get the log's index: nobody else writes.
		 */
		status = connect_to(store, "?mode=ro&immutable=1", SQLITE_OPEN_READONLY, err);
		if (status == PRONY_OK)
			status = check_kind(store, &version, err);
	}
	if (status == PRONY_OK && version == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: nothing is stored yet; `prony run` does that", store->path);
	if (status == PRONY_OK && version < STORE_SCHEMA)
		return error_set(err, PRONY_STORE,
				 "%s: it was written by an older prony; `prony run --store %s` "
				 "brings it up to date",
				 store->path, store->path);
	if (status == PRONY_OK)
		status = sql_run(store, "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF",
				 "set it up", err);
	if (status == PRONY_OK)
		status = find_columns(store, err);
	return status;
}

enum prony_status store_open(const char *path, bool read_only, struct store **out,
			     struct error *err)
{
	struct store *store = memory_alloc(sizeof *store);
	enum prony_status status;

	*store = (struct store){.db = NULL};
	store->columns = memory_alloc(process_field_count * sizeof *store->columns);
	if (path) {
		store->path = memory_strdup(path);
	} else {
		char *home = path_data_home();
		store->path = path_join(home, "prony.db");
		free(home);
	}
	if (file_is_directory(store->path))
		status = error_set(err, PRONY_STORE,
				   "%s: it is a folder; --store takes the name of a file",
				   store->path);
	else
		status = read_only ? open_to_read(store, err) : open_to_write(store, err);
	if (status != PRONY_OK) {
		store_close(store);
		return status;
	}
	*out = store;
	return PRONY_OK;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	sqlite3_close(store->db);
	free(store->columns);
	free(store->path);
	free(store->uri);
	free(store);
}
