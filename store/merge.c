#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

#define RUN_COLUMNS                                                                                \
	"uid, suite, version, effort, seed, started_wall_ns, finished_wall_ns, statistic, spec,"   \
	" command, environment, environment_hash, host"
/* Columns of `cell` besides the axes. */
#define CELL_COLUMNS                                                                               \
	"hash, key, name, environment, backend, options, status, flags, reason, details, gate,"    \
	" evidence, gate_log"

static const char doing[] = "import a run";

/* Caller frees. */
static char *cell_copy(const struct store *other)
{
	struct strbuf names, sql;

	strbuf_init(&names, 0);
	strbuf_puts(&names, CELL_COLUMNS);
	for (int id = 0; id < AXIS_COUNT; id++)
		if (other->axis_columns[id])
			strbuf_printf(&names, ", %s", axes[id].name);
	strbuf_init(&sql, 0);
	strbuf_printf(&sql,
		      "INSERT INTO main.cell (run, %s) SELECT ?2, %s FROM other.cell WHERE id IN"
		      " (SELECT id FROM other.cell WHERE run = ?1) ORDER BY id",
		      strbuf_text(&names), strbuf_text(&names));
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
			  " WHERE old.run = ?1 ORDER BY p.id");
	return strbuf_take(&sql);
}

/* Copies a table beside `process`, joined to the copies by cell and replicate. */
#define COPY_BESIDE(table, columns)                                                                \
	"INSERT INTO main." table " (process, " columns ") SELECT mine.id, " columns               \
	" FROM other." table " AS t JOIN other.process AS p ON p.id = t.process"                   \
	" JOIN other.cell AS old ON p.cell = old.id"                                               \
	" JOIN main.cell AS new ON new.run = ?2 AND new.hash = old.hash"                           \
	" JOIN main.process AS mine ON mine.cell = new.id AND mine.replicate = p.replicate"        \
	" WHERE old.run = ?1 ORDER BY t.rowid"

/* The statements that copy runs. */
struct copy {
	char *cells, *processes; /* ?1 = the run there, ?2 = the run here */
	bool has_series, has_names;
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

static enum prony_status copy_rows(struct store *store, const struct copy *copy, int64_t old,
				   int64_t *new, struct error *err)
{
	enum prony_status status =
		sql_change(store,
			   "INSERT INTO main.run (" RUN_COLUMNS ") SELECT " RUN_COLUMNS
			   " FROM other.run WHERE id = ?1",
			   doing, NULL, err, "n", old);
	*new = sqlite3_last_insert_rowid(store->db);
	if (status == PRONY_OK)
		status = sql_change(store, copy->cells, doing, NULL, err, "nn", old, *new);
	if (status == PRONY_OK)
		status = sql_change(store, copy->processes, doing, NULL, err, "nn", old, *new);
	if (status == PRONY_OK)
		status = sql_change(store, COPY_BESIDE("process_log", "log"), doing, NULL, err,
				    "nn", old, *new);
	if (status == PRONY_OK)
		status = sql_change(store, COPY_BESIDE("process_intervals", "intervals"), doing,
				    NULL, err, "nn", old, *new);
	if (status == PRONY_OK && copy->has_series)
		status = sql_change(store, COPY_BESIDE("process_series", SERIES_COLUMNS), doing,
				    NULL, err, "nn", old, *new);
	if (status == PRONY_OK && copy->has_names)
		status = copy_names(store, old, *new, err);
	return status;
}

/* Whether the last statement failed because of the copied data. */
static bool breaks_a_rule(const struct store *store)
{
	int code = sqlite3_extended_errcode(store->db);

	return (code & 0xff) == SQLITE_CONSTRAINT && code != SQLITE_CONSTRAINT_TRIGGER;
}

/* Validate the copy, not the original, because the other store may change meanwhile. */
static enum prony_status copy_run(struct store *store, const struct copy *copy, int64_t old,
				  struct error *err)
{
	int64_t new = 0;
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	status = copy_rows(store, copy, old, &new, err);
	if (status == PRONY_STORE && breaks_a_rule(store))
		status = PRONY_BAD_INPUT;
	if (status == PRONY_OK)
		status = validate_run(store, new, err);
	return sql_end(store, status, doing, err);
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

/*
 * Lists the runs that are not here yet, oldest first, so that ids follow time. The caller frees it.
 */
static enum prony_status list_runs(struct store *store, int64_t **out, size_t *count,
				   struct error *err)
{
	sqlite3_stmt *statement = NULL;
	size_t used = 0, capacity = 0;
	int64_t *runs = NULL;
	bool row = true;
	enum prony_status status =
		sql_prepare(store,
			    "SELECT id FROM other.run WHERE uid NOT IN (SELECT uid FROM main.run)"
			    " ORDER BY " SQL_PLAUSIBLE ", started_wall_ns, id",
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
				   int *imported, struct error *err)
{
	struct error first = ERROR_INIT;
	int64_t *runs = NULL;
	size_t count = 0, refused = 0;
	enum prony_status status = list_runs(store, &runs, &count, err);

	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		struct error why = ERROR_INIT;
		enum prony_status copied = copy_run(store, copy, runs[i], &why);
		*imported += copied == PRONY_OK;
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

enum prony_status store_import(struct store *store, const char *other_path, int *imported,
			       struct error *err)
{
	struct store *other = NULL;
	int count = 0;
	/* Open it as a store first, which applies all checks, then attach it to this one. */
	enum prony_status status = store_open(other_path, true, &other, err);

	if (status != PRONY_OK)
		return status;
	char *uri = memory_strdup(other->uri);
	const struct copy copy = {.cells = cell_copy(other),
				  .processes = process_copy(other),
				  .has_series = other->has_series,
				  .has_names = other->has_names};
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
