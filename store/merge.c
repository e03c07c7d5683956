#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

#define PART_COLUMNS "part, parts, cells, finished_wall_ns, environment, environment_hash, host"
#define RUN_COLUMNS                                                                                \
	"uid, suite, version, effort, seed, started_wall_ns, finished_wall_ns, statistic, spec,"   \
	" command, environment, environment_hash, host"
/* Columns of `cell` besides the axes. */
#define CELL_COLUMNS                                                                               \
	"hash, key, name, environment, backend, options, status, flags, reason, details, gate,"    \
	" evidence, gate_log"

static const char doing[] = "import a run";

/* ?1 = the run there, ?2 = the run here, ?3 = its part (NULL: a run without). Caller frees. */
static char *cell_copy(const struct store *other)
{
	struct strbuf names, sql;

	strbuf_init(&names, 0);
	strbuf_puts(&names, CELL_COLUMNS);
	for (int id = 0; id < AXIS_COUNT; id++)
		if (other->axis_columns[id])
			strbuf_printf(&names, ", %s", axes[id].name);
	strbuf_init(&sql, 0);
	/* If the machines planned different tables, a cell may be in two parts. */
	strbuf_printf(&sql,
		      "INSERT INTO main.cell (run, part, %s) SELECT ?2, ?3, %s FROM other.cell"
		      " WHERE id IN (SELECT id FROM other.cell WHERE run = ?1 AND %s)"
		      " AND hash NOT IN (SELECT hash FROM main.cell WHERE run = ?2) ORDER BY id",
		      strbuf_text(&names), strbuf_text(&names),
		      other->has_parts ? "(?3 IS NULL OR part = ?3)" : "?3 IS NULL");
	strbuf_release(&names);
	return strbuf_take(&sql);
}

/*
 * SQL that attaches the copied processes to the new cells with the same hash; the caller frees it.
 */
static char *process_copy(const struct store *other)
{
	struct strbuf sql;

	strbuf_init(&sql, 0);
	strbuf_puts(&sql, "INSERT INTO main.process (cell");
	for (size_t i = 0; i < process_field_count; i++)
		if (other->columns[i])
			strbuf_printf(&sql, ", %s", process_fields[i].name);
	strbuf_puts(&sql, ") SELECT new.id");
	for (size_t i = 0; i < process_field_count; i++)
		if (other->columns[i])
			strbuf_printf(&sql, ", p.%s", process_fields[i].name);
	strbuf_puts(&sql, " FROM other.process AS p JOIN other.cell AS old ON p.cell = old.id"
			  " JOIN main.cell AS new ON new.run = ?2 AND new.hash = old.hash"
			  " AND new.part IS ?3 WHERE old.run = ?1 ORDER BY p.id");
	return strbuf_take(&sql);
}

/* Copies a table beside `process`, joined to the copies by cell and replicate. */
#define COPY_BESIDE(table, columns)                                                                \
	"INSERT INTO main." table " (process, " columns ") SELECT mine.id, " columns               \
	" FROM other." table " AS t JOIN other.process AS p ON p.id = t.process"                   \
	" JOIN other.cell AS old ON p.cell = old.id"                                               \
	" JOIN main.cell AS new ON new.run = ?2 AND new.hash = old.hash AND new.part IS ?3"        \
	" JOIN main.process AS mine ON mine.cell = new.id AND mine.replicate = p.replicate"        \
	" WHERE old.run = ?1 ORDER BY t.rowid"

/* The statements that copy runs. */
struct copy {
	char *cells, *processes;
	bool has_series, has_ranks, has_names, has_parts;
};

/* If another run here has the same name, the name becomes a tag. */
static enum prony_status copy_names(struct store *store, int64_t old, int64_t new,
				    struct error *err)
{
	static const char *const statements[] = {
		"INSERT INTO main.run_tag (run, tag) SELECT ?2, tag FROM other.run_tag"
		" WHERE run = ?1",
		"INSERT INTO main.run_tag (run, tag) SELECT ?2, name FROM other.run_name"
		" WHERE run = ?1 AND name IN (SELECT name FROM main.run_name)"
		" ON CONFLICT (run, tag) DO NOTHING",
		"INSERT INTO main.run_name (name, run) SELECT name, ?2 FROM other.run_name"
		" WHERE run = ?1 AND NOT EXISTS"
		" (SELECT 1 FROM main.run_name AS mine WHERE mine.name = run_name.name)",
	};
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < sizeof statements / sizeof *statements && status == PRONY_OK; i++)
		status = sql_change(store, statements[i], doing, NULL, err, "nn", old, new);
	return status;
}

/* Copies the cells of a part, or of a run without parts (RECORD_NONE), with all that is theirs;
 * *cells: how many. */
static enum prony_status copy_cells(struct store *store, const struct copy *copy, int64_t old,
				    int64_t new, int64_t part, int *cells, struct error *err)
{
	const char *const statements[] = {
		copy->processes,
		COPY_BESIDE("process_log", "log"),
		COPY_BESIDE("process_intervals", "intervals"),
		copy->has_series ? COPY_BESIDE("process_series", SERIES_COLUMNS) : NULL,
		copy->has_ranks ? COPY_BESIDE("process_rank", RANK_COLUMNS) : NULL,
	};
	enum prony_status status =
		sql_change(store, copy->cells, doing, cells, err, "nni", old, new, part);

	for (size_t i = 0; i < sizeof statements / sizeof *statements && status == PRONY_OK; i++)
		if (statements[i])
			status = sql_change(store, statements[i], doing, NULL, err, "nni", old, new,
					    part);
	return status;
}

/* How far a part is, in the database `main` or `other`: -1 it is not there, then the number of its
 * processes, or more than any number if it is finished. */
static enum prony_status progress_of(struct store *store, const char *base, int64_t run,
				     int64_t part, int64_t *progress, struct error *err)
{
	char *sql = memory_printf(
		"SELECT CASE WHEN finished_wall_ns IS NOT NULL THEN ?3 ELSE (SELECT count(*) FROM"
		" %s.process WHERE cell IN (SELECT id FROM %s.cell WHERE run = ?1 AND part = ?2))"
		" END FROM %s.run_part WHERE run = ?1 AND part = ?2",
		base, base, base);
	enum prony_status status =
		sql_int(store, sql, doing, -1, progress, err, "nnn", run, part, INT64_MAX);

	free(sql);
	return status;
}

static enum prony_status copy_part(struct store *store, const struct copy *copy, int64_t old,
				   int64_t new, int64_t part, struct store_imported *imported,
				   struct error *err)
{
	int64_t here = -1, there = -1, theirs = 0;
	int cells = 0;
	enum prony_status status = progress_of(store, "main", new, part, &here, err);

	if (status == PRONY_OK)
		status = progress_of(store, "other", old, part, &there, err);
	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT count(*) FROM other.cell WHERE run = ?1 AND part = ?2",
				 doing, 0, &theirs, err, "nn", old, part);
	if (status == PRONY_OK && there <= here) {
		imported->present += theirs;
		return status;
	}
	if (status == PRONY_OK)
		status = sql_change(store, "DELETE FROM main.cell WHERE run = ?1 AND part = ?2",
				    doing, NULL, err, "nn", new, part);
	if (status == PRONY_OK)
		status = sql_change(store,
				    "INSERT OR REPLACE INTO main.run_part (run, " PART_COLUMNS
				    ") SELECT ?2, " PART_COLUMNS
				    " FROM other.run_part WHERE run = ?1 AND part = ?3",
				    doing, NULL, err, "nnn", old, new, part);
	if (status == PRONY_OK)
		status = copy_cells(store, copy, old, new, part, &cells, err);
	imported->cells += cells;
	imported->doubled += status == PRONY_OK ? theirs - cells : 0;
	return status;
}

/* Copies the parts of a run that are not here, or further there. */
static enum prony_status copy_parts(struct store *store, const struct copy *copy, int64_t old,
				    int64_t new, struct store_imported *imported, struct error *err)
{
	int64_t part = 0;
	enum prony_status status = PRONY_OK;

	while (status == PRONY_OK) {
		status = sql_int(
			store, "SELECT min(part) FROM other.run_part WHERE run = ?1 AND part > ?2",
			doing, 0, &part, err, "nn", old, part);
		if (status != PRONY_OK || part == 0)
			break;
		status = copy_part(store, copy, old, new, part, imported, err);
	}
	return status == PRONY_OK ? parts_settle(store, new, err) : status;
}

/* Whether two stores of one uid hold parts of one run. */
static enum prony_status check_same_run(struct store *store, int64_t old, int64_t new,
					struct error *err)
{
	int64_t same = 0;
	enum prony_status status =
		sql_int(store,
			"SELECT count(*) FROM main.run AS m, other.run AS o WHERE m.id = ?2"
			" AND o.id = ?1 AND m.spec = o.spec AND m.seed = o.seed AND"
			" (SELECT count(DISTINCT parts) FROM (SELECT parts FROM main.run_part WHERE"
			" run = ?2 UNION ALL SELECT parts FROM other.run_part WHERE run = ?1)) = 1",
			doing, 0, &same, err, "nn", old, new);

	if (status == PRONY_OK && same == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "its parts are not of the run with the same uid here");
	return status;
}

static enum prony_status copy_rows(struct store *store, const struct copy *copy, int64_t old,
				   int64_t *run, struct store_imported *imported, struct error *err)
{
	int64_t parts = 0, new = 0;
	int cells = 0;
	enum prony_status status =
		sql_int(store,
			"SELECT id FROM main.run WHERE uid = (SELECT uid FROM other.run WHERE"
			" id = ?1)",
			doing, 0, &new, err, "n", old);

	*run = new;
	if (status == PRONY_OK && copy->has_parts)
		status = sql_int(store, "SELECT count(*) FROM other.run_part WHERE run = ?1", doing,
				 0, &parts, err, "n", old);
	if (status == PRONY_OK && new > 0) {
		status = check_same_run(store, old, new, err);
		return status == PRONY_OK ? copy_parts(store, copy, old, new, imported, err)
					  : status;
	}
	if (status == PRONY_OK)
		status = sql_change(store,
				    "INSERT INTO main.run (" RUN_COLUMNS ") SELECT " RUN_COLUMNS
				    " FROM other.run WHERE id = ?1",
				    doing, NULL, err, "n", old);
	*run = new = sqlite3_last_insert_rowid(store->db);
	if (status == PRONY_OK && parts > 0)
		status =
			copy_parts(store, copy, old, new, &(struct store_imported){.runs = 0}, err);
	else if (status == PRONY_OK)
		status = copy_cells(store, copy, old, new, RECORD_NONE, &cells, err);
	imported->runs++;
	return status == PRONY_OK && copy->has_names ? copy_names(store, old, new, err) : status;
}

/* Whether the last statement failed because of the copied data. */
static bool breaks_a_rule(const struct store *store)
{
	int code = sqlite3_extended_errcode(store->db);

	return (code & 0xff) == SQLITE_CONSTRAINT && code != SQLITE_CONSTRAINT_TRIGGER;
}

/* Validate the copy, not the original, because the other store may change meanwhile. */
static enum prony_status copy_run(struct store *store, const struct copy *copy, int64_t old,
				  struct store_imported *imported, struct error *err)
{
	struct store_imported now = *imported;
	int64_t new = 0;
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	status = copy_rows(store, copy, old, &new, &now, err);
	if (status == PRONY_STORE && breaks_a_rule(store))
		status = PRONY_BAD_INPUT;
	if (status == PRONY_OK)
		status = validate_run(store, new, err);
	status = sql_end(store, status, doing, err);
	if (status == PRONY_OK)
		*imported = now;
	return status;
}

/* A damaged file may refer to a page twice, or have wrong indices, so check it first. */
static enum prony_status check_pages(struct store *store, const char *path, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = false;
	enum prony_status status = sql_prepare(store, "PRAGMA other.integrity_check(1)",
					       "check the other store", &statement, err, "");

	if (status == PRONY_OK)
		status = sql_step(store, statement, "check the other store", &row, err);
	if (status == PRONY_OK && row && strcmp(sql_text(statement, 0), "ok") != 0)
		status = error_set(err, PRONY_STORE, "%s: is damaged: %s", path,
				   sql_text(statement, 0));
	sqlite3_finalize(statement);
	return status;
}

/* Lists the runs that are not here yet or have parts, oldest first, so that ids follow time. The
 * caller frees it. */
#define LIST_RUNS(also)                                                                            \
	"SELECT id FROM other.run WHERE uid NOT IN (SELECT uid FROM main.run)" also                \
	" ORDER BY " SQL_PLAUSIBLE ", started_wall_ns, id"
static enum prony_status list_runs(struct store *store, bool has_parts, int64_t **out,
				   size_t *count, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	size_t used = 0, capacity = 0;
	int64_t *runs = NULL;
	bool row = true;
	enum prony_status status = sql_prepare(
		store,
		has_parts ? LIST_RUNS(" OR id IN (SELECT run FROM other.run_part)") : LIST_RUNS(""),
		doing, &statement, err, "");

	while (status == PRONY_OK) {
		status = sql_step(store, statement, doing, &row, err);
		if (status != PRONY_OK || !row)
			break;
		runs = memory_grow(runs, used, &capacity, sizeof *runs);
		runs[used++] = sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	*out = runs;
	*count = used;
	return status;
}

/* A refused run does not stop the others. */
static enum prony_status copy_runs(struct store *store, const struct copy *copy, const char *path,
				   struct store_imported *imported, struct error *err)
{
	struct error first = ERROR_INIT;
	int64_t *runs = NULL;
	size_t count = 0, refused = 0;
	enum prony_status status = list_runs(store, copy->has_parts, &runs, &count, err);

	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		struct error why = ERROR_INIT;
		enum prony_status copied = copy_run(store, copy, runs[i], imported, &why);
		if (copied == PRONY_BAD_INPUT) {
			refused++;
			error_set(&first, copied, "%s: run %lld was not imported: %s", path,
				  (long long)runs[i], why.text);
		} else if (copied != PRONY_OK) {
			status = error_set(err, copied, "%s", why.text);
		}
	}
	free(runs);
	if (status == PRONY_OK && refused > 1)
		return error_set(err, PRONY_BAD_INPUT, "%s (and %zu more)", first.text,
				 refused - 1);
	if (status == PRONY_OK && refused > 0)
		return error_set(err, PRONY_BAD_INPUT, "%s", first.text);
	return status;
}

enum prony_status store_import(struct store *store, const char *other_path,
			       struct store_imported *imported, struct error *err)
{
	struct store *other = NULL;
	struct store_imported count = {.runs = 0};

	/* It has all of its own runs; attached to itself it would be locked. */
	if (file_is_same(store->path, other_path)) {
		*imported = count;
		return PRONY_OK;
	}
	/* Open it as a store first, which applies all checks, then attach it to this one. */
	enum prony_status status = store_open(other_path, true, &other, err);

	if (status != PRONY_OK)
		return status;
	char *uri = memory_strdup(other->uri);
	const struct copy copy = {.cells = cell_copy(other),
				  .processes = process_copy(other),
				  .has_series = other->has_series,
				  .has_names = other->has_names,
				  .has_ranks = other->has_ranks,
				  .has_parts = other->has_parts};
	store_close(other);
	status = sql_change(store, "ATTACH ?1 AS other", "attach the other store", NULL, err, "t",
			    uri);
	if (status == PRONY_OK) {
		store_limit_steps(store, file_bytes(other_path));
		status = check_pages(store, other_path, err);
		if (status == PRONY_OK)
			status = copy_runs(store, &copy, other_path, &count, err);
		sqlite3_exec(store->db, "DETACH other", NULL, NULL, NULL);
	}
	free(uri);
	free(copy.cells);
	free(copy.processes);
	*imported = count;
	return status;
}
