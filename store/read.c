#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

#define META_COLUMNS                                                                               \
	"id, uid, suite, version, effort, seed, started_wall_ns, finished_wall_ns, statistic,"     \
	" environment_hash, host"

static void read_meta(sqlite3_stmt *statement, struct run_meta *meta)
{
	*meta = (struct run_meta){.id = sqlite3_column_int64(statement, 0),
				  .seed = sqlite3_column_int64(statement, 5),
				  .started_wall_ns = sqlite3_column_int64(statement, 6),
				  .finished_wall_ns = sql_integer(statement, 7)};
	sql_copy(statement, 1, meta->uid, sizeof meta->uid);
	sql_copy(statement, 2, meta->suite, sizeof meta->suite);
	sql_copy(statement, 3, meta->version, sizeof meta->version);
	sql_copy(statement, 4, meta->effort, sizeof meta->effort);
	sql_copy(statement, 8, meta->statistic, sizeof meta->statistic);
	sql_copy(statement, 9, meta->environment_hash, sizeof meta->environment_hash);
	sql_copy(statement, 10, meta->host, sizeof meta->host);
}

static enum prony_status newest_run(struct store *store, int64_t *run, struct error *err)
{
	enum prony_status status =
		sql_int(store, "SELECT id FROM run ORDER BY started_wall_ns DESC, id DESC LIMIT 1",
			"look for a run", -1, run, err, "");

	if (status == PRONY_OK && *run < 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: no run is stored yet; `prony run` does that", store->path);
	return status;
}

static enum prony_status find_run(struct store *store, const char *which, int64_t *run,
				  struct error *err)
{
	int64_t count = 0, found = -1;
	enum prony_status status;

	if (!*which)
		return newest_run(store, run, err);
	/* Of a number that is an id and begins a uid, the id is meant. */
	status = sql_int(store, "SELECT id FROM run WHERE CAST(id AS TEXT) = ?1", "look for a run",
			 -1, &found, err, "t", which);
	if (status != PRONY_OK || found >= 0) {
		*run = found;
		return status;
	}
	status = sql_int(store, "SELECT count(*) FROM run WHERE substr(uid, 1, length(?1)) = ?1",
			 "look for a run", 0, &count, err, "t", which);
	if (status == PRONY_OK && count == 1)
		return sql_int(store, "SELECT id FROM run WHERE substr(uid, 1, length(?1)) = ?1",
			       "look for a run", -1, run, err, "t", which);
	if (status == PRONY_OK)
		status = error_set(err, PRONY_BAD_INPUT,
				   count ? "%s: several runs begin with '%s'; give more digits"
					 : "%s: there is no run '%s'; give a number, or the "
					   "beginning of a uid, of an existing one",
				   store->path, which);
	return status;
}

static enum prony_status load_meta(struct store *store, int64_t id, struct stored_run *run,
				   struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = false;
	enum prony_status status = sql_prepare(
		store, "SELECT " META_COLUMNS ", spec, command, environment FROM run WHERE id = ?1",
		"read a run", &statement, err, "n", id);

	if (status == PRONY_OK)
		status = sql_step(store, statement, "read a run", &row, err);
	if (status == PRONY_OK && row) {
		read_meta(statement, &run->meta);
		run->meta.spec = arena_strdup(&run->arena, sql_text(statement, 11));
		run->meta.command = arena_strdup(&run->arena, sql_text(statement, 12));
		run->meta.environment = arena_strdup(&run->arena, sql_text(statement, 13));
	}
	sqlite3_finalize(statement);
	return status;
}

/* JSON of a column; *out stays NULL for a NULL. */
static enum prony_status read_json(const struct store *store, sqlite3_stmt *statement, int column,
				   json_t **out, struct error *err)
{
	if (sqlite3_column_type(statement, column) == SQLITE_NULL)
		return PRONY_OK;
	const char *text = sql_text(statement, column);
	struct error why = ERROR_INIT;
	if (json_parse(text, strlen(text), sqlite3_column_name(statement, column), out, &why) ==
	    PRONY_OK)
		return PRONY_OK;
	return error_set(err, PRONY_STORE, "%s: damaged JSON in table cell: %s", store->path,
			 why.text);
}

/* What a cell is and how it ended; the axes follow. */
#define CELL_COLUMNS "id, key, hash, status, flags, reason, gate, details, evidence"
enum { CELL_GATE = 6, CELL_DETAILS, CELL_EVIDENCE, CELL_GATE_LOG, CELL_FIRST_AXIS };

/* False when a word is unknown. Columns that an older store lacks hold the default. */
static bool read_axes(sqlite3_stmt *statement, struct cell *cell)
{
	bool known = true;

	cell_defaults(cell);
	for (int id = 0; id < AXIS_COUNT && known; id++) {
		int column = CELL_FIRST_AXIS + id;
		void *value = (char *)cell + axes[id].offset;

		if (sqlite3_column_type(statement, column) == SQLITE_NULL)
			continue;
		switch (axes[id].type) {
		case AXIS_INT:
			*(int64_t *)value = sqlite3_column_int64(statement, column);
			break;
		case AXIS_REAL:
			*(double *)value = sqlite3_column_double(statement, column);
			break;
		case AXIS_SWITCH:
			*(bool *)value = sqlite3_column_int(statement, column) != 0;
			break;
		case AXIS_FRAMEWORK_TYPE:
		case AXIS_TEXT:
		case AXIS_WORD:
			known = axis_set(&axes[id], sql_text(statement, column), cell);
		}
	}
	return known;
}

static enum prony_status read_cell(struct store *store, sqlite3_stmt *statement, bool with_logs,
				   struct arena *arena, struct stored_cell *cell, struct error *err)
{
	cell->id = sqlite3_column_int64(statement, 0);
	sql_copy(statement, 1, cell->key, sizeof cell->key);
	sql_copy(statement, 2, cell->hash, sizeof cell->hash);
	cell->flags = cell_flags_parse(sql_text(statement, 4));
	cell->reason = arena_strdup(arena, sql_text(statement, 5));
	cell->gate = CELL_PENDING;
	bool known = cell_status_parse(sql_text(statement, 3), &cell->status) &&
		     read_axes(statement, &cell->cell);
	if (known && sqlite3_column_type(statement, CELL_GATE) != SQLITE_NULL)
		known = cell_status_parse(sql_text(statement, CELL_GATE), &cell->gate);
	if (!known)
		return error_set(err, PRONY_STORE,
				 "%s: cell %lld holds a word that this prony does not know",
				 store->path, (long long)cell->id);
	enum prony_status status = read_json(store, statement, CELL_DETAILS, &cell->framework, err);
	if (status == PRONY_OK)
		status = read_json(store, statement, CELL_EVIDENCE, &cell->evidence, err);
	cell->gate_log = "";
	if (with_logs)
		cell->gate_log = arena_strdup(arena, sql_text(statement, CELL_GATE_LOG));
	return status;
}

/* Caller frees. */
static char *cell_query(const struct store *store, bool with_logs)
{
	struct strbuf sql;

	strbuf_init(&sql, 0);
	strbuf_printf(&sql, "SELECT " CELL_COLUMNS ", %s", with_logs ? "gate_log" : "NULL");
	for (int id = 0; id < AXIS_COUNT; id++)
		strbuf_printf(&sql, ", %s", store->axis_columns[id] ? axes[id].name : "NULL");
	strbuf_puts(&sql, " FROM cell WHERE run = ?1 ORDER BY id");
	return strbuf_take(&sql);
}

static enum prony_status load_cells(struct store *store, bool with_logs, struct stored_run *run,
				    struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int64_t count = 0;
	bool row = false;
	char *query = cell_query(store, with_logs);
	enum prony_status status = sql_int(store, "SELECT count(*) FROM cell WHERE run = ?1",
					   "read cells", 0, &count, err, "n", run->meta.id);

	if (status == PRONY_OK)
		status =
			sql_prepare(store, query, "read cells", &statement, err, "n", run->meta.id);
	free(query);
	if (status != PRONY_OK)
		return status;
	run->cells = arena_array(&run->arena, (size_t)count, sizeof *run->cells);
	while (status == PRONY_OK && run->cell_count < (size_t)count) {
		status = sql_step(store, statement, "read cells", &row, err);
		if (status != PRONY_OK || !row)
			break;
		/* Counted first, so that a half-read one is released too. */
		struct stored_cell *cell = &run->cells[run->cell_count++];
		status = read_cell(store, statement, with_logs, &run->arena, cell, err);
	}
	sqlite3_finalize(statement);
	return status;
}

/* The fields of a record from the columns that follow `first`. */
static void read_fields(sqlite3_stmt *statement, int first, struct process_record *record)
{
	for (size_t i = 0; i < process_field_count; i++) {
		char *member = (char *)record + process_fields[i].offset;
		int column = first + (int)i;
		bool null = sqlite3_column_type(statement, column) == SQLITE_NULL;
		switch (process_fields[i].type) {
		case FIELD_TYPE_INT:
			memcpy(member, &(int64_t){sql_integer(statement, column)}, sizeof(int64_t));
			break;
		case FIELD_TYPE_REAL:
			memcpy(member,
			       &(double){null ? NAN : sqlite3_column_double(statement, column)},
			       sizeof(double));
			break;
		case FIELD_TYPE_TEXT:
			sql_copy(statement, column, member, process_fields[i].bytes);
			break;
		}
	}
}

static enum prony_status read_intervals(const struct store *store, sqlite3_stmt *statement,
					int column, struct process_record *record,
					struct error *err)
{
	const unsigned char *blob = sqlite3_column_blob(statement, column);
	size_t bytes = (size_t)sqlite3_column_bytes(statement, column);

	if (bytes == 0)
		return PRONY_OK;
	if (!blob || bytes % (2 * sizeof(uint64_t)))
		return error_set(err, PRONY_STORE, "%s: damaged intervals of replicate %lld",
				 store->path, (long long)record->replicate);
	size_t count = bytes / (2 * sizeof(uint64_t));
	record->intervals = malloc(count * sizeof *record->intervals);
	if (!record->intervals)
		return error_set(err, PRONY_NOMEM, "no memory for %zu intervals", count);
	for (size_t i = 0; i < count; i++) {
		uint64_t pair[2];
		memcpy(pair, blob + i * sizeof pair, sizeof pair);
		record->intervals[i] = (struct step_record){.begin_ns = (int64_t)le64toh(pair[0]),
							    .end_ns = (int64_t)le64toh(pair[1])};
	}
	record->interval_count = count;
	return PRONY_OK;
}

/* Caller frees. Columns: log, intervals (NULL when not wanted), id, the fields. */
static char *process_query(const struct store *store, unsigned parts)
{
	struct strbuf sql;

	strbuf_init(&sql, 0);
	strbuf_printf(
		&sql, "SELECT %s, %s, id",
		parts & STORE_LOGS ? "(SELECT log FROM process_log WHERE process = process.id)"
				   : "NULL",
		parts & STORE_INTERVALS
			? "(SELECT intervals FROM process_intervals WHERE process = process.id)"
			: "NULL");
	/* An older store that may not be written lacks the newest columns. */
	for (size_t i = 0; i < process_field_count; i++)
		strbuf_printf(&sql, ", %s", store->columns[i] ? process_fields[i].name : "NULL");
	strbuf_puts(&sql, " FROM process WHERE cell = ?1 ORDER BY replicate");
	return strbuf_take(&sql);
}

static enum prony_status load_processes(struct store *store, const char *query, bool with_series,
					struct arena *arena, struct stored_cell *cell,
					struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int64_t count = 0;
	bool row = false;
	enum prony_status status = sql_int(store, "SELECT count(*) FROM process WHERE cell = ?1",
					   "read results", 0, &count, err, "n", cell->id);

	if (status == PRONY_OK)
		status = sql_prepare(store, query, "read results", &statement, err, "n", cell->id);
	if (status != PRONY_OK)
		return status;
	cell->processes = arena_array(arena, (size_t)count, sizeof *cell->processes);
	while (status == PRONY_OK && cell->process_count < (size_t)count) {
		status = sql_step(store, statement, "read results", &row, err);
		if (status != PRONY_OK || !row)
			break;
		struct process_record *record = &cell->processes[cell->process_count++];
		process_record_init(record);
		read_fields(statement, 3, record);
		if (sqlite3_column_type(statement, 0) != SQLITE_NULL &&
		    !(record->log = strdup(sql_text(statement, 0))))
			status = error_set(err, PRONY_NOMEM, "no memory for a log");
		if (status == PRONY_OK)
			status = read_intervals(store, statement, 1, record, err);
		if (status == PRONY_OK && with_series && store->has_series)
			status =
				series_load(store, sqlite3_column_int64(statement, 2), record, err);
	}
	sqlite3_finalize(statement);
	return status;
}

static enum prony_status load_all(struct store *store, const char *which, unsigned parts,
				  struct stored_run *run, struct error *err)
{
	int64_t id = 0;
	char *query = process_query(store, parts);
	enum prony_status status = find_run(store, which, &id, err);

	if (status == PRONY_OK)
		status = load_meta(store, id, run, err);
	if (status == PRONY_OK)
		status = load_cells(store, parts & STORE_LOGS, run, err);
	for (size_t i = 0; i < run->cell_count && status == PRONY_OK; i++)
		status = load_processes(store, query, parts & STORE_SERIES, &run->arena,
					&run->cells[i], err);
	free(query);
	return status;
}

enum prony_status store_load_run(struct store *store, const char *which, unsigned parts,
				 struct stored_run *out, struct error *err)
{
	struct stored_run run = {.cells = NULL};
	/* One snapshot: another prony may be writing this very run. */
	enum prony_status status = sql_run(store, "BEGIN", "read it", err);

	if (status != PRONY_OK)
		return status;
	arena_init(&run.arena, 0);
	status = load_all(store, which ? which : "", parts, &run, err);
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	if (status != PRONY_OK)
		stored_run_release(&run);
	else
		*out = run;
	return status;
}

void stored_run_release(struct stored_run *run)
{
	if (!run)
		return;
	for (size_t i = 0; i < run->cell_count; i++) {
		struct stored_cell *cell = &run->cells[i];
		for (size_t p = 0; p < cell->process_count; p++)
			process_record_release(&cell->processes[p]);
		json_decref(cell->framework);
		json_decref(cell->evidence);
	}
	arena_release(&run->arena);
	*run = (struct stored_run){.cells = NULL};
}
