#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

#define RUN_COLUMNS                                                                                \
	"uid, suite, version, effort, seed, started_wall_ns, finished_wall_ns, statistic, spec,"   \
	" command, environment, environment_hash, host"
/* Beside the axes. */
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
		      "INSERT INTO main.cell (run, %s) SELECT ?2, %s FROM other.cell WHERE run = ?1"
		      " ORDER BY id",
		      strbuf_text(&names), strbuf_text(&names));
	strbuf_release(&names);
	return strbuf_take(&sql);
}

/* The processes of old cells become those of the new cells of the same hash; caller frees. */
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

/* A table beside process, joined to the copies by cell and replicate. */
#define COPY_BESIDE(table, columns)                                                                \
	"INSERT INTO main." table " (process, " columns ") SELECT mine.id, " columns               \
	" FROM other." table " AS t JOIN other.process AS p ON p.id = t.process"                   \
	" JOIN other.cell AS old ON p.cell = old.id"                                               \
	" JOIN main.cell AS new ON new.run = ?2 AND new.hash = old.hash"                           \
	" JOIN main.process AS mine ON mine.cell = new.id AND mine.replicate = p.replicate"        \
	" WHERE old.run = ?1 ORDER BY t.rowid"

static enum prony_status copy_run(struct store *store, const char *cells, const char *processes,
				  bool has_series, int64_t old, struct error *err)
{
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	status = sql_change(store,
			    "INSERT INTO main.run (" RUN_COLUMNS ") SELECT " RUN_COLUMNS
			    " FROM other.run WHERE id = ?1",
			    doing, NULL, err, "n", old);
	int64_t new = sqlite3_last_insert_rowid(store->db);
	if (status == PRONY_OK)
		status = sql_change(store, cells, doing, NULL, err, "nn", old, new);
	if (status == PRONY_OK)
		status = sql_change(store, processes, doing, NULL, err, "nn", old, new);
	if (status == PRONY_OK)
		status = sql_change(store, COPY_BESIDE("process_log", "log"), doing, NULL, err,
				    "nn", old, new);
	if (status == PRONY_OK)
		status = sql_change(store, COPY_BESIDE("process_intervals", "intervals"), doing,
				    NULL, err, "nn", old, new);
	if (status == PRONY_OK && has_series)
		status = sql_change(store, COPY_BESIDE("process_series", SERIES_COLUMNS), doing,
				    NULL, err, "nn", old, new);
	return sql_end(store, status, doing, err);
}

/* The oldest run of the other store that is not here, so that ids follow time. */
static enum prony_status next_run(struct store *store, int64_t *run, struct error *err)
{
	return sql_int(store,
		       "SELECT id FROM other.run WHERE uid NOT IN (SELECT uid FROM main.run)"
		       " ORDER BY started_wall_ns, id LIMIT 1",
		       doing, -1, run, err, "");
}

enum prony_status store_import(struct store *store, const char *other_path, int *imported,
			       struct error *err)
{
	struct store *other = NULL;
	int64_t run = 0;
	int count = 0;
	/* Checked by the rules for every store, then attached to this one. */
	enum prony_status status = store_open(other_path, true, &other, err);

	if (status != PRONY_OK)
		return status;
	char *uri = memory_strdup(other->uri);
	char *cells = cell_copy(other), *processes = process_copy(other);
	bool has_series = other->has_series;
	store_close(other);
	status = sql_change(store, "ATTACH ?1 AS other", "attach the other store", NULL, err, "t",
			    uri);
	if (status == PRONY_OK) {
		status = next_run(store, &run, err);
		while (status == PRONY_OK && run >= 0) {
			status = copy_run(store, cells, processes, has_series, run, err);
			count += status == PRONY_OK;
			if (status == PRONY_OK)
				status = next_run(store, &run, err);
		}
		sqlite3_exec(store->db, "DETACH other", NULL, NULL, NULL);
	}
	free(uri);
	free(cells);
	free(processes);
	if (status == PRONY_OK)
		*imported = count;
	return status;
}
