#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

/* Reads a JSON column; *out stays NULL for SQL NULL. */
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

/* Columns before the axes: identity and outcome of a cell. */
#define CELL_COLUMNS "id, key, hash, status, flags, reason, gate, details"
enum { CELL_GATE = 6, CELL_DETAILS, CELL_EVIDENCE, CELL_GATE_LOG, CELL_PART, CELL_FIRST_AXIS };

/* Reads the axes. Returns the first axis with an unknown word, or NULL. Axes without a column in an
 * older store get their default. */
static const char *read_axes(sqlite3_stmt *statement, struct cell *cell)
{
	cell_defaults(cell);
	for (int id = 0; id < AXIS_COUNT; id++) {
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
			if (!axis_set(&axes[id], sql_text(statement, column), cell))
				return axes[id].name;
		}
	}
	return NULL;
}

static enum prony_status read_cell(struct store *store, sqlite3_stmt *statement, unsigned parts,
				   struct arena *arena, struct stored_cell *cell, struct error *err)
{
	cell->id = sqlite3_column_int64(statement, 0);
	sql_copy(statement, 1, cell->key, sizeof cell->key);
	sql_copy(statement, 2, cell->hash, sizeof cell->hash);
	cell->part = sqlite3_column_int64(statement, CELL_PART);
	cell->flags = cell_flags_parse(sql_text(statement, 4));
	cell->reason = arena_strdup(arena, sql_text(statement, 5));
	cell->gate = CELL_PENDING;
	const char *unknown = read_axes(statement, &cell->cell);
	if (!unknown && !cell_status_parse(sql_text(statement, 3), &cell->status))
		unknown = "status";
	if (!unknown && sqlite3_column_type(statement, CELL_GATE) != SQLITE_NULL &&
	    !cell_status_parse(sql_text(statement, CELL_GATE), &cell->gate))
		unknown = "gate";
	if (unknown)
		return error_set(err, PRONY_STORE,
				 "%s: `%s` of cell %lld has a value that this version of prony "
				 "does not know",
				 store->path, unknown, (long long)cell->id);
	enum prony_status status = read_json(store, statement, CELL_DETAILS, &cell->framework, err);
	if (status == PRONY_OK)
		status = read_json(store, statement, CELL_EVIDENCE, &cell->evidence, err);
	if (!(parts & STORE_CHECKS))
		json_object_del(cell->evidence, "checks");
	cell->gate_log = "";
	if (parts & STORE_LOGS)
		cell->gate_log = arena_strdup(arena, sql_text(statement, CELL_GATE_LOG));
	return status;
}

/* The caller frees it. ?1: a run, or with `single` a cell. */
static char *cell_query(const struct store *store, unsigned parts, bool single)
{
	/* SQLite removes the figures ten times faster than parsing them here would be. Damaged JSON
	 * is reported by the parser. */
	bool can =
		sqlite3_libversion_number() >= 3038000 && !sqlite3_compileoption_used("OMIT_JSON");
	const char *evidence =
		parts & STORE_CHECKS || !can
			? "evidence"
			: "CASE WHEN json_valid(evidence) THEN json_remove(evidence, "
			  "'$.checks') ELSE evidence END AS evidence";
	struct strbuf sql;

	strbuf_init(&sql, 0);
	strbuf_printf(&sql, "SELECT " CELL_COLUMNS ", %s, %s, %s", evidence,
		      parts & STORE_LOGS ? "gate_log" : "NULL", store->has_parts ? "part" : "NULL");
	for (int id = 0; id < AXIS_COUNT; id++)
		strbuf_printf(&sql, ", %s", store->axis_columns[id] ? axes[id].name : "NULL");
	/* Sort by number: sorting whole rows with their evidence would spill to disk. */
	strbuf_puts(&sql, single ? " FROM cell WHERE id = ?1"
				 : " FROM cell WHERE id IN (SELECT id FROM cell WHERE run = ?1"
				   " AND hash = ifnull(?2, hash)) ORDER BY id");
	return strbuf_take(&sql);
}

static enum prony_status load_cells(struct store *store, const char *hash, unsigned parts,
				    struct stored_run *run, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int64_t count = 0;
	bool row = false;
	char *query = cell_query(store, parts, false);
	enum prony_status status = sql_int(
		store, "SELECT count(*) FROM cell WHERE run = ?1 AND hash = ifnull(?2, hash)",
		"read cells", 0, &count, err, "nt", run->meta.id, hash);

	if (status == PRONY_OK)
		status = sql_prepare(store, query, "read cells", &statement, err, "nt",
				     run->meta.id, hash);
	free(query);
	if (status != PRONY_OK)
		return status;
	run->cells = arena_array(&run->arena, (size_t)count, sizeof *run->cells);
	while (status == PRONY_OK && run->cell_count < (size_t)count) {
		status = sql_step(store, statement, "read cells", &row, err);
		if (status != PRONY_OK || !row)
			break;
		/* Count it first, so that it is released even when reading fails half-way. */
		struct stored_cell *cell = &run->cells[run->cell_count++];
		status = read_cell(store, statement, parts, &run->arena, cell, err);
	}
	sqlite3_finalize(statement);
	return status;
}

/* Reads the fields of an initialised record from the columns after `first`; NULL leaves "not
 * measured". */
static void read_fields(sqlite3_stmt *statement, int first, struct process_record *record)
{
	for (size_t i = 0; i < process_field_count; i++) {
		char *member = (char *)record + process_fields[i].offset;
		int column = first + (int)i;
		if (sqlite3_column_type(statement, column) == SQLITE_NULL)
			continue;
		switch (process_fields[i].type) {
		case FIELD_TYPE_INT:
			memcpy(member, &(int64_t){sqlite3_column_int64(statement, column)},
			       sizeof(int64_t));
			break;
		case FIELD_TYPE_REAL:
			memcpy(member, &(double){sqlite3_column_double(statement, column)},
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
		return error_set(err, PRONY_BAD_INPUT, "%s: damaged intervals of process %lld",
				 store->path, (long long)record->replicate);
	size_t count = bytes / (2 * sizeof(uint64_t));
	bool sound = true;
	record->intervals = malloc(count * sizeof *record->intervals);
	if (!record->intervals)
		return error_set(err, PRONY_NOMEM, "no memory for %zu intervals", count);
	for (size_t i = 0; i < count; i++) {
		uint64_t pair[2];
		memcpy(pair, blob + i * sizeof pair, sizeof pair);
		record->intervals[i] = (struct step_record){.begin_ns = (int64_t)le64toh(pair[0]),
							    .end_ns = (int64_t)le64toh(pair[1])};
		if (record->intervals[i].begin_ns < 0 ||
		    record->intervals[i].end_ns < record->intervals[i].begin_ns)
			sound = false;
	}
	/* What an invalid process reported is kept. */
	if (!sound && strcmp(record->status, "ok") == 0)
		return error_set(err, PRONY_BAD_INPUT, "%s: damaged intervals of process %lld",
				 store->path, (long long)record->replicate);
	record->interval_count = count;
	return PRONY_OK;
}

/* The caller frees it. Columns: log, intervals (NULL when not wanted), id, the fields. */
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
	/* A write-protected older store lacks the newest columns. */
	for (size_t i = 0; i < process_field_count; i++)
		strbuf_printf(&sql, ", %s", store->columns[i] ? process_fields[i].name : "NULL");
	strbuf_puts(&sql, " FROM process WHERE cell = ?1 ORDER BY replicate");
	return strbuf_take(&sql);
}

/* Queries for each cell, prepared once because there may be thousands of cells. */
struct cell_queries {
	sqlite3_stmt *count, *rows; /* ?1 = the cell */
	bool with_series, forgives;
	size_t damaged;
};

static enum prony_status prepare_queries(struct store *store, unsigned parts,
					 struct cell_queries *out, struct error *err)
{
	char *rows = process_query(store, parts);
	enum prony_status status =
		sql_prepare(store, "SELECT count(*) FROM process WHERE cell = ?1", "read results",
			    &out->count, err, "");

	if (status == PRONY_OK)
		status = sql_prepare(store, rows, "read results", &out->rows, err, "");
	free(rows);
	out->with_series = parts & STORE_SERIES && store->has_series;
	out->forgives = parts & STORE_FORGIVES;
	return status;
}

/* Restarts a query for this cell. */
static enum prony_status ask(struct store *store, sqlite3_stmt *statement, int64_t cell, bool *row,
			     struct error *err)
{
	sqlite3_reset(statement);
	store->steps = 0;
	if (sqlite3_bind_int64(statement, 1, cell) != SQLITE_OK)
		return sql_fail(store, err, "read results");
	return sql_step(store, statement, "read results", row, err);
}

static enum prony_status read_process(struct store *store, struct cell_queries *queries,
				      struct process_record *record, struct error *err)
{
	struct error why = ERROR_INIT;
	sqlite3_stmt *rows = queries->rows;

	process_record_init(record);
	read_fields(rows, 3, record);
	if (sqlite3_column_type(rows, 0) != SQLITE_NULL &&
	    !(record->log = strdup(sql_text(rows, 0))))
		return error_set(err, PRONY_NOMEM, "no memory for a log");
	enum prony_status status = read_intervals(store, rows, 1, record, &why);
	if (status == PRONY_OK && queries->with_series)
		status = series_load(store, sqlite3_column_int64(rows, 2), record, &why);
	if (status == PRONY_OK && record->ranks > 1 && store->has_ranks)
		status = ranks_load(store, sqlite3_column_int64(rows, 2), record, &why);
	if (status == PRONY_BAD_INPUT && queries->forgives) {
		process_record_drop_samples(record);
		queries->damaged++;
		return PRONY_OK;
	}
	if (status == PRONY_BAD_INPUT)
		status = PRONY_STORE;
	return status == PRONY_OK ? status : error_set(err, status, "%s", why.text);
}

/* The number of processes of a cell. */
static enum prony_status count_processes(struct store *store, const struct cell_queries *queries,
					 int64_t cell, size_t *count, struct error *err)
{
	bool row = false;
	enum prony_status status = ask(store, queries->count, cell, &row, err);

	if (status == PRONY_OK)
		*count = (size_t)sqlite3_column_int64(queries->count, 0);
	return status;
}

/* Loads the processes of a cell into `records`, which has room for `count`. */
static enum prony_status load_processes(struct store *store, struct cell_queries *queries,
					struct process_record *records, size_t count,
					struct stored_cell *cell, struct error *err)
{
	bool row = false;
	enum prony_status status = ask(store, queries->rows, cell->id, &row, err);

	cell->processes = count > 0 ? records : NULL;
	while (status == PRONY_OK && row && cell->process_count < count) {
		/* Count it first, so that it is released even when reading fails half-way. */
		struct process_record *record = &cell->processes[cell->process_count++];
		status = read_process(store, queries, record, err);
		if (status == PRONY_OK)
			status = sql_step(store, queries->rows, "read results", &row, err);
	}
	return status;
}

/* The machine of the one cell of a run that is loaded is that of its part. */
static void take_machine(struct stored_run *run, int64_t part)
{
	struct run_meta *meta = &run->meta;

	for (size_t i = 0; i < meta->part_count; i++) {
		if (meta->parts[i].part != part)
			continue;
		meta->environment = meta->parts[i].environment;
		memcpy(meta->environment_hash, meta->parts[i].environment_hash,
		       sizeof meta->environment_hash);
		memcpy(meta->host, meta->parts[i].host, sizeof meta->host);
		memcpy(meta->node, meta->parts[i].node, sizeof meta->node);
	}
}

enum prony_status load_run(struct store *store, int64_t id, const char *hash, unsigned parts,
			   struct stored_run *out, struct error *err)
{
	struct stored_run run = {.cells = NULL};
	struct cell_queries queries = {.count = NULL};

	arena_init(&run.arena, 0);
	enum prony_status status = load_meta(store, id, &run.arena, &run.meta, err);
	if (status == PRONY_OK)
		status = load_cells(store, hash, parts, &run, err);
	if (status == PRONY_OK)
		status = prepare_queries(store, parts, &queries, err);
	for (size_t i = 0; i < run.cell_count && status == PRONY_OK; i++) {
		size_t count = 0;
		status = count_processes(store, &queries, run.cells[i].id, &count, err);
		if (status == PRONY_OK)
			status = load_processes(
				store, &queries,
				arena_array(&run.arena, count, sizeof(struct process_record)),
				count, &run.cells[i], err);
	}
	sqlite3_finalize(queries.count);
	sqlite3_finalize(queries.rows);
	run.damaged = queries.damaged;
	if (hash && run.cell_count == 1)
		take_machine(&run, run.cells[0].part);
	if (status != PRONY_OK)
		stored_run_release(&run);
	else
		*out = run;
	return status;
}

enum prony_status store_load_run(struct store *store, const char *which, unsigned parts,
				 struct stored_run *out, struct error *err)
{
	int64_t id = 0;
	/* Read within one transaction, because another prony may be writing this run. */
	enum prony_status status = sql_run(store, "BEGIN", "read it", err);

	if (status != PRONY_OK)
		return status;
	status = find_run(store, which ? which : "", &id, err);
	if (status == PRONY_OK)
		status = load_run(store, id, NULL, parts, out, err);
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return status;
}

struct store_reader {
	struct store *store;
	struct arena arena; /* owns the texts of `meta` */
	struct run_meta meta;
	unsigned parts;
	sqlite3_stmt *cell;
	struct cell_queries queries;
	struct process_record *records; /* the run that was read last */
	size_t capacity;
};

void store_reader_close(struct store_reader *reader)
{
	if (!reader)
		return;
	sqlite3_finalize(reader->cell);
	sqlite3_finalize(reader->queries.count);
	sqlite3_finalize(reader->queries.rows);
	sqlite3_exec(reader->store->db, "ROLLBACK", NULL, NULL, NULL);
	arena_release(&reader->arena);
	free(reader->records);
	free(reader);
}

enum prony_status store_reader_open(struct store *store, const char *which, unsigned parts,
				    struct store_reader **out, struct error *err)
{
	struct store_reader *reader;
	int64_t id = 0;
	enum prony_status status = sql_run(store, "BEGIN", "read it", err);

	if (status != PRONY_OK)
		return status;
	reader = memory_alloc(sizeof *reader);
	*reader = (struct store_reader){.store = store, .parts = parts};
	arena_init(&reader->arena, 0);
	status = find_run(store, which ? which : "", &id, err);
	if (status == PRONY_OK)
		status = load_meta(store, id, &reader->arena, &reader->meta, err);
	if (status == PRONY_OK) {
		char *query = cell_query(store, parts, true);
		status = sql_prepare(store, query, "read cells", &reader->cell, err, "");
		free(query);
	}
	if (status == PRONY_OK)
		status = prepare_queries(store, parts, &reader->queries, err);
	if (status != PRONY_OK)
		store_reader_close(reader);
	else
		*out = reader;
	return status;
}

enum prony_status store_reader_cells(struct store_reader *reader,
				     void (*visit)(void *context, int64_t id,
						   const struct cell *cell),
				     void *context, struct error *err)
{
	struct store *store = reader->store;
	sqlite3_stmt *statement = NULL;
	struct strbuf sql;
	bool row = true;

	strbuf_init(&sql, 0);
	/* The axes come first, where read_axes expects them. */
	strbuf_puts(&sql, "SELECT id");
	for (int column = 1; column < CELL_FIRST_AXIS; column++)
		strbuf_puts(&sql, ", NULL");
	for (int id = 0; id < AXIS_COUNT; id++)
		strbuf_printf(&sql, ", %s", store->axis_columns[id] ? axes[id].name : "NULL");
	strbuf_puts(&sql, " FROM cell WHERE run = ?1 ORDER BY id");
	enum prony_status status = sql_prepare(store, strbuf_text(&sql), "read cells", &statement,
					       err, "n", reader->meta.id);
	strbuf_release(&sql);
	while (status == PRONY_OK) {
		struct cell cell;
		status = sql_step(store, statement, "read cells", &row, err);
		if (status != PRONY_OK || !row)
			break;
		int64_t id = sqlite3_column_int64(statement, 0);
		const char *unknown = read_axes(statement, &cell);
		if (unknown)
			status = error_set(err, PRONY_STORE,
					   "%s: `%s` of cell %lld has a value that this version of "
					   "prony does not know",
					   store->path, unknown, (long long)id);
		else
			visit(context, id, &cell);
	}
	sqlite3_finalize(statement);
	return status;
}

/* Reuses one array for the processes of these cells; allocating it anew each time takes as long as
 * reading. */
static enum prony_status make_room(struct store_reader *reader, const int64_t *cells, size_t count,
				   struct error *err)
{
	size_t wanted = 0;
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		size_t processes = 0;
		status =
			count_processes(reader->store, &reader->queries, cells[i], &processes, err);
		wanted += processes;
	}
	if (status != PRONY_OK || wanted <= reader->capacity)
		return status;
	struct process_record *records = realloc(reader->records, wanted * sizeof *reader->records);
	if (!records)
		return error_set(err, PRONY_NOMEM, "no memory for %zu process results", wanted);
	reader->records = records;
	reader->capacity = wanted;
	return PRONY_OK;
}

enum prony_status store_reader_load(struct store_reader *reader, const int64_t *cells, size_t count,
				    struct stored_run *out, struct error *err)
{
	struct stored_run run = {.meta = reader->meta};
	size_t used = 0;
	enum prony_status status = make_room(reader, cells, count, err);

	arena_init(&run.arena, 0);
	run.cells = arena_array(&run.arena, count + 1, sizeof *run.cells);
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		bool row = false;
		status = ask(reader->store, reader->cell, cells[i], &row, err);
		if (status != PRONY_OK || !row)
			break;
		/* Count it first, so that it is released even when reading fails half-way. */
		struct stored_cell *cell = &run.cells[run.cell_count++];
		status = read_cell(reader->store, reader->cell, reader->parts, &run.arena, cell,
				   err);
		if (status == PRONY_OK)
			status = load_processes(reader->store, &reader->queries,
						reader->records + used, reader->capacity - used,
						cell, err);
		used += cell->process_count;
	}
	if (status != PRONY_OK)
		stored_run_release(&run);
	else
		*out = run;
	return status;
}

enum prony_status store_count_processes(struct store *store, const char *which, int64_t *count,
					struct error *err)
{
	int64_t id = 0;
	enum prony_status status = sql_run(store, "BEGIN", "read it", err);

	if (status != PRONY_OK)
		return status;
	status = find_run(store, which ? which : "", &id, err);
	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT count(*) FROM process WHERE cell IN "
				 "(SELECT id FROM cell WHERE run = ?1)",
				 "count results", 0, count, err, "n", id);
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
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
