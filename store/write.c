#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static enum prony_status make_uid(char uid[33], struct error *err)
{
	unsigned char bytes[16];

	/* getrandom(2) returns this few bytes at once. */
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return error_errno(err, PRONY_INTERNAL, errno, "no random number for a run");
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(uid + 2 * i, 3, "%02x", bytes[i]);
	return PRONY_OK;
}

enum prony_status run_insert(struct store *store, const char uid[33], struct run_meta *meta,
			     struct error *err)
{
	static const char doing[] = "store a run";
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	status = sql_change(store,
			    "INSERT INTO run (uid, suite, version, effort, seed, started_wall_ns,"
			    " finished_wall_ns, statistic, spec, command, environment,"
			    " environment_hash, host)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
			    doing, NULL, err, "ttttniitttttt", uid, meta->suite, meta->version,
			    meta->effort, meta->seed, meta->started_wall_ns, meta->finished_wall_ns,
			    meta->statistic, or_empty(meta->spec), or_empty(meta->command),
			    or_empty(meta->environment), meta->environment_hash, meta->host);
	int64_t id = sqlite3_last_insert_rowid(store->db);
	if (status == PRONY_OK && *meta->name)
		status = names_insert(store, id, meta->name, err);
	status = sql_end(store, status, doing, err);
	if (status != PRONY_OK)
		return status;
	meta->id = id;
	memmove(meta->uid, uid, sizeof meta->uid);
	return PRONY_OK;
}

enum prony_status store_run_begin(struct store *store, struct run_meta *meta, struct error *err)
{
	char uid[33];
	enum prony_status status = make_uid(uid, err);

	return status == PRONY_OK ? run_insert(store, uid, meta, err) : status;
}

/* Ends a transaction that changed one row. If the id is gone, the run was deleted meanwhile. */
static enum prony_status end_one(struct store *store, enum prony_status status, int changes,
				 const char *what, int64_t id, const char *doing, struct error *err)
{
	if (status == PRONY_OK && changes != 1)
		status = error_set(err, PRONY_STORE,
				   "%s: cannot %s: %s %lld no longer exists; was the run deleted?",
				   store->path, doing, what, (long long)id);
	return sql_end(store, status, doing, err);
}

enum prony_status store_run_finish(struct store *store, int64_t run, int64_t wall_ns,
				   struct error *err)
{
	static const char doing[] = "store the end of a run";
	int changes = 0;
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	status = sql_change(store, "UPDATE run SET finished_wall_ns = ?2 WHERE id = ?1", doing,
			    &changes, err, "ii", run, wall_ns);
	return end_one(store, status, changes, "run", run, doing, err);
}

enum prony_status store_run_unfinished(struct store *store, const char *spec,
				       const char *environment_hash, int64_t *run,
				       struct error *err)
{
	int64_t found = 0;
	enum prony_status status = sql_int(
		store,
		"SELECT id FROM run WHERE finished_wall_ns IS NULL AND spec = ?1"
		" AND environment_hash = ?2 AND id NOT IN (SELECT run FROM run_part) ORDER "
		"BY " SQL_NEWEST_FIRST " LIMIT 1",
		"look for an unfinished run", -1, &found, err, "tt", spec, environment_hash);

	if (status != PRONY_OK)
		return status;
	if (found < 0)
		return error_set(err, PRONY_MISSING,
				 "%s has no unfinished run of the same cells on this machine",
				 store->path);
	*run = found;
	return PRONY_OK;
}

static int bind_axis(sqlite3_stmt *statement, int index, const struct axis *axis,
		     const struct cell *cell)
{
	const void *value = axis_value(axis, cell);
	char text[CELL_WORD_BYTES];

	switch (axis->type) {
	case AXIS_INT:
		return sqlite3_bind_int64(statement, index, *(const int64_t *)value);
	case AXIS_REAL:
		return sqlite3_bind_double(statement, index, *(const double *)value);
	case AXIS_SWITCH:
		return sqlite3_bind_int(statement, index, *(const bool *)value);
	case AXIS_FRAMEWORK_TYPE:
	case AXIS_TEXT:
	case AXIS_WORD:
		break;
	}
	axis_text(axis, value, text);
	return sqlite3_bind_text(statement, index, text, -1, SQLITE_TRANSIENT);
}

/* The axes follow the other parameters. */
enum { CELL_FIXED = 7 };

static enum prony_status insert_cell(struct store *store, int64_t run, const struct cell *cell,
				     const char *hash, struct error *err)
{
	static const char doing[] = "store a cell";
	char key[CELL_KEY_BYTES];
	sqlite3_stmt *statement = NULL;
	struct strbuf sql;
	bool row = false;

	cell_key(cell, key);
	strbuf_init(&sql, 0);
	strbuf_puts(&sql, "INSERT INTO cell (run, hash, key, name, environment, backend, options");
	for (int id = 0; id < AXIS_COUNT; id++)
		strbuf_printf(&sql, ", %s", axes[id].name);
	strbuf_puts(&sql, ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7");
	for (int id = 0; id < AXIS_COUNT; id++)
		strbuf_printf(&sql, ", ?%d", CELL_FIXED + 1 + id);
	strbuf_puts(&sql, ") ON CONFLICT (run, hash) DO NOTHING");
	enum prony_status status =
		sql_prepare(store, strbuf_text(&sql), doing, &statement, err, "ntttttt", run, hash,
			    key, cell->name, cell->environment, cell->backend, cell->options);
	strbuf_release(&sql);
	for (int id = 0; id < AXIS_COUNT && status == PRONY_OK; id++)
		if (bind_axis(statement, CELL_FIXED + 1 + id, &axes[id], cell) != SQLITE_OK)
			status = sql_fail(store, err, doing);
	if (status == PRONY_OK)
		status = sql_step(store, statement, doing, &row, err);
	sqlite3_finalize(statement);
	return status;
}

enum prony_status store_cell(struct store *store, int64_t run, const struct cell *cell, int64_t *id,
			     struct error *err)
{
	char hash[CELL_HASH_BYTES];

	cell_hash(cell, hash);
	enum prony_status status = sql_begin(store, "store a cell", err);
	if (status != PRONY_OK)
		return status;
	status = insert_cell(store, run, cell, hash, err);
	if (status == PRONY_OK)
		status = sql_int(store, "SELECT id FROM cell WHERE run = ?1 AND hash = ?2",
				 "read a cell", -1, id, err, "nt", run, hash);
	return sql_end(store, status, "store a cell", err);
}

enum prony_status store_cell_status(struct store *store, int64_t cell, enum cell_status status,
				    unsigned flags, const char *reason, struct error *err)
{
	static const char doing[] = "store how a cell ended";
	char text[CELL_FLAGS_BYTES];
	int changes = 0;

	cell_flags_text(flags, text, sizeof text);
	enum prony_status result = sql_begin(store, doing, err);
	if (result != PRONY_OK)
		return result;
	result = sql_change(
		store, "UPDATE cell SET status = ?2, flags = ?3, reason = ?4 WHERE id = ?1", doing,
		&changes, err, "ittt", cell, cell_status_name(status), text, or_empty(reason));
	return end_one(store, result, changes, "cell", cell, doing, err);
}

/* Caller frees. */
static enum prony_status dump(const json_t *json, char **out, struct error *err)
{
	char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

	if (!text)
		return error_set(err, PRONY_NOMEM, "no memory for a JSON text");
	*out = text;
	return PRONY_OK;
}

enum prony_status store_cell_framework(struct store *store, int64_t cell, const json_t *details,
				       struct error *err)
{
	static const char doing[] = "store what a framework is";
	char *text = NULL;
	int changes = 0;
	enum prony_status status = dump(details, &text, err);

	if (status == PRONY_OK)
		status = sql_begin(store, doing, err);
	if (status == PRONY_OK) {
		status = sql_change(store,
				    "UPDATE cell SET details = coalesce(details, ?2) WHERE id = ?1",
				    doing, &changes, err, "it", cell, text);
		status = end_one(store, status, changes, "cell", cell, doing, err);
	}
	free(text);
	return status;
}

enum prony_status store_gate(struct store *store, int64_t cell, enum cell_status verdict,
			     const json_t *evidence, const char *log, struct error *err)
{
	static const char doing[] = "store the gate's verdict";
	char *text = NULL;
	int changes = 0;
	enum prony_status status = evidence ? dump(evidence, &text, err) : PRONY_OK;

	if (status == PRONY_OK)
		status = sql_begin(store, doing, err);
	if (status == PRONY_OK) {
		status = sql_change(
			store,
			"UPDATE cell SET gate = ?2, evidence = ?3, gate_log = ?4 WHERE id = ?1",
			doing, &changes, err, "ittt", cell, cell_status_name(verdict), text,
			or_empty(log));
		status = end_one(store, status, changes, "cell", cell, doing, err);
	}
	free(text);
	return status;
}

/* Binds the fields of a record to ?2, ?3...; ?1 is the cell. */
static int bind_record(sqlite3_stmt *statement, const struct process_record *record)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < process_field_count && code == SQLITE_OK; i++) {
		const char *member = (const char *)record + process_fields[i].offset;
		int index = (int)i + 2;
		int64_t number;
		double real;
		switch (process_fields[i].type) {
		case FIELD_TYPE_INT:
			memcpy(&number, member, sizeof number);
			if (number != RECORD_NONE)
				code = sqlite3_bind_int64(statement, index, number);
			break;
		case FIELD_TYPE_REAL:
			memcpy(&real, member, sizeof real);
			code = sqlite3_bind_double(statement, index, real); /* NaN becomes NULL */
			break;
		case FIELD_TYPE_TEXT:
			if (*member)
				code = sqlite3_bind_text(statement, index, member, -1,
							 SQLITE_STATIC);
			break;
		}
	}
	return code;
}

static enum prony_status insert_process(struct store *store, int64_t cell,
					const struct process_record *record, int64_t *id,
					struct error *err)
{
	struct strbuf sql;
	sqlite3_stmt *statement = NULL;

	strbuf_init(&sql, 0);
	strbuf_puts(&sql, "INSERT INTO process (cell");
	for (size_t i = 0; i < process_field_count; i++)
		strbuf_printf(&sql, ", %s", process_fields[i].name);
	strbuf_puts(&sql, ") VALUES (?1");
	for (size_t i = 0; i < process_field_count; i++)
		strbuf_printf(&sql, ", ?%zu", i + 2);
	strbuf_puts(&sql, ")");
	enum prony_status status =
		sql_prepare(store, strbuf_text(&sql), "store a result", &statement, err, "i", cell);
	strbuf_release(&sql);
	if (status == PRONY_OK && bind_record(statement, record) != SQLITE_OK)
		status = sql_fail(store, err, "store a result");
	if (status == PRONY_OK && sqlite3_step(statement) != SQLITE_DONE) {
		if (sqlite3_extended_errcode(store->db) == SQLITE_CONSTRAINT_UNIQUE)
			status = error_set(err, PRONY_STORE,
					   "%s: process %lld of cell %lld is already stored; "
					   "another prony may be resuming the same run",
					   store->path, (long long)record->replicate,
					   (long long)cell);
		else if (sqlite3_extended_errcode(store->db) == SQLITE_CONSTRAINT_FOREIGNKEY)
			status = error_set(err, PRONY_STORE,
					   "%s: cannot store a result: cell %lld no longer exists; "
					   "was the run deleted?",
					   store->path, (long long)cell);
		else
			status = sql_fail(store, err, "store a result");
	}
	sqlite3_finalize(statement);
	if (status == PRONY_OK)
		*id = sqlite3_last_insert_rowid(store->db);
	return status;
}

/* Pairs of little-endian 64-bit integers: begin_ns, end_ns. */
static enum prony_status insert_intervals(struct store *store, int64_t process,
					  const struct process_record *record, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = false;
	uint64_t *words = malloc(record->interval_count * 2 * sizeof *words);

	if (!words)
		return error_set(err, PRONY_NOMEM, "no memory for %zu intervals",
				 record->interval_count);
	for (size_t i = 0; i < record->interval_count; i++) {
		words[2 * i] = htole64((uint64_t)record->intervals[i].begin_ns);
		words[2 * i + 1] = htole64((uint64_t)record->intervals[i].end_ns);
	}
	enum prony_status status = sql_prepare(
		store, "INSERT INTO process_intervals (process, intervals) VALUES (?1, ?2)",
		"store a result", &statement, err, "i", process);
	if (status == PRONY_OK &&
	    sqlite3_bind_blob64(statement, 2, words, record->interval_count * 2 * sizeof *words,
				SQLITE_STATIC) != SQLITE_OK)
		status = sql_fail(store, err, "store a result");
	if (status == PRONY_OK)
		status = sql_step(store, statement, "store a result", &row, err);
	sqlite3_finalize(statement);
	free(words);
	return status;
}

enum prony_status store_process(struct store *store, int64_t cell,
				const struct process_record *record, struct error *err)
{
	int64_t id = 0;
	enum prony_status status = sql_begin(store, "store a result", err);

	if (status != PRONY_OK)
		return status;
	status = insert_process(store, cell, record, &id, err);
	if (status == PRONY_OK && record->interval_count > 0)
		status = insert_intervals(store, id, record, err);
	if (status == PRONY_OK)
		status = series_insert(store, id, record, err);
	if (status == PRONY_OK)
		status = ranks_insert(store, id, record, err);
	if (status == PRONY_OK && record->log && *record->log)
		status = sql_change(store, "INSERT INTO process_log (process, log) VALUES (?1, ?2)",
				    "store a log", NULL, err, "it", id, record->log);
	return sql_end(store, status, "store a result", err);
}
