/* History of a cell: which cells exist, and each run's result of one. */
#include <stdlib.h>

#include "base/memory.h"
#include "store/sql_internal.h"
#include "store/store.h"

static const char doing[] = "read the history of a cell";

enum prony_status store_list_cells(struct store *store, struct arena *arena, struct cell_name **out,
				   size_t *count, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int64_t many = 0;
	bool row = true;
	size_t used = 0;
	/* The key is determined by its hash. */
	enum prony_status status =
		sql_int(store, "SELECT count(DISTINCT hash) FROM cell", doing, 0, &many, err, "");

	if (status == PRONY_OK)
		status = sql_prepare(store,
				     "SELECT max(key), hash, count(*) FROM cell JOIN run"
				     " ON run.id = cell.run GROUP BY hash"
				     " ORDER BY max(" SQL_PLAUSIBLE
				     " * started_wall_ns) DESC, min(cell.id)",
				     doing, &statement, err, "");
	if (status != PRONY_OK)
		return status;
	struct cell_name *names = arena_array(arena, (size_t)many + 1, sizeof *names);
	while (status == PRONY_OK && used < (size_t)many) {
		status = sql_step(store, statement, doing, &row, err);
		if (status != PRONY_OK || !row)
			break;
		struct cell_name *name = &names[used++];
		sql_copy(statement, 0, name->key, sizeof name->key);
		sql_copy(statement, 1, name->hash, sizeof name->hash);
		name->runs = sqlite3_column_int64(statement, 2);
	}
	sqlite3_finalize(statement);
	if (status == PRONY_OK) {
		*out = names;
		*count = used;
	}
	return status;
}

/* The place of a run: its node; without one its host if ?2 says so, else "". */
#define PLACE "coalesce(" SQL_NODE ", CASE WHEN ?2 THEN host ELSE '' END)"

/* SQL of a selection from the runs with the cell ?1, each with the machine of the cell's part. The
 * caller frees it. */
static char *with_runs(const struct store *store, const char *select, const char *rest)
{
	const char *machine = store->has_parts ? "coalesce(p.environment, run.environment) AS"
						 " environment, coalesce(p.host, run.host) AS host"
					       : "run.environment AS environment, run.host AS host";
	const char *parts = store->has_parts ? " LEFT JOIN run_part AS p ON p.run = run.id"
					       " AND p.part = cell.part"
					     : "";

	return memory_printf("%s FROM (SELECT run.id AS id, started_wall_ns, %s FROM cell"
			     " JOIN run ON run.id = cell.run%s WHERE hash = ?1)%s",
			     select, machine, parts, rest);
}

enum prony_status store_list_places(struct store *store, const char *hash, bool hosts,
				    struct arena *arena, const char ***out, size_t *count,
				    struct error *err)
{
	sqlite3_stmt *statement = NULL;
	const char **places = NULL;
	size_t used = 0, capacity = 0;
	bool row = true;
	char *sql = with_runs(store, "SELECT DISTINCT " PLACE, " ORDER BY 1");
	enum prony_status status =
		sql_prepare(store, sql, doing, &statement, err, "tn", hash, (int64_t)hosts);

	free(sql);
	while (status == PRONY_OK) {
		status = sql_step(store, statement, doing, &row, err);
		if (status != PRONY_OK || !row)
			break;
		places = arena_grow(arena, places, used, &capacity, sizeof *places);
		places[used++] = arena_strdup(arena, sql_text(statement, 0));
	}
	sqlite3_finalize(statement);
	*out = places;
	*count = used;
	return status;
}

/* The last runs that contain a cell, oldest first. */
static enum prony_status list_runs(struct store *store, const struct history_request *request,
				   int64_t *runs, size_t *count, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = true;
	size_t used = 0;
	char *sql =
		with_runs(store, "SELECT id FROM (SELECT id, started_wall_ns",
			  " WHERE (?3 IS NULL OR " PLACE " = ?3) AND (?4 = 0 OR"
			  " (" SQL_PLAUSIBLE ", started_wall_ns, id) <="
			  " (SELECT " SQL_PLAUSIBLE ", started_wall_ns, id FROM run WHERE id = ?4))"
			  " ORDER BY " SQL_NEWEST_FIRST " LIMIT ?5) ORDER BY " SQL_PLAUSIBLE
			  ", started_wall_ns, id");
	enum prony_status status = sql_prepare(
		store, sql, doing, &statement, err, "tntnn", request->hash, (int64_t)request->hosts,
		request->place, request->until, (int64_t)request->most);

	free(sql);
	while (status == PRONY_OK && used < request->most) {
		status = sql_step(store, statement, doing, &row, err);
		if (status != PRONY_OK || !row)
			break;
		runs[used++] = sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	*count = used;
	return status;
}

enum prony_status store_load_history(struct store *store, const struct history_request *request,
				     struct stored_run **out, size_t *count, struct error *err)
{
	int64_t *ids = memory_alloc((request->most + 1) * sizeof *ids);
	struct stored_run *runs = memory_alloc((request->most + 1) * sizeof *runs);
	size_t many = 0, loaded = 0;
	/* Read within one transaction, because another prony may be writing. */
	enum prony_status status = sql_run(store, "BEGIN", doing, err);

	if (status == PRONY_OK) {
		status = list_runs(store, request, ids, &many, err);
		while (loaded < many && status == PRONY_OK) {
			status = load_run(store, ids[loaded], request->hash, 0, &runs[loaded], err);
			loaded += status == PRONY_OK;
		}
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	}
	free(ids);
	if (status == PRONY_OK) {
		*out = runs;
		*count = loaded;
		return status;
	}
	for (size_t i = 0; i < loaded; i++)
		stored_run_release(&runs[i]);
	free(runs);
	return status;
}
