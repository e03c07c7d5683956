/* Runs in parts: the parts that are here, their machines, and when such a run is finished. */
#include <string.h>

#include "store/sql_internal.h"
#include "store/store.h"

static const char doing[] = "store a part of a run";

enum prony_status parts_load(struct store *store, int64_t run, struct arena *arena,
			     struct run_meta *meta, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int64_t count = 0;
	bool row = true;
	enum prony_status status = PRONY_OK;

	if (store->has_parts)
		status = sql_int(store, "SELECT count(*) FROM run_part WHERE run = ?1", "read it",
				 0, &count, err, "n", run);
	if (status != PRONY_OK || count == 0)
		return status;
	status = sql_prepare(store,
			     "SELECT part, parts, cells, finished_wall_ns, environment,"
			     " environment_hash, host, " SQL_NODE
			     " FROM run_part WHERE run = ?1 ORDER BY part",
			     "read it", &statement, err, "n", run);
	meta->parts = arena_array(arena, (size_t)count, sizeof *meta->parts);
	while (status == PRONY_OK && meta->part_count < (size_t)count) {
		status = sql_step(store, statement, "read it", &row, err);
		if (status != PRONY_OK || !row)
			break;
		struct run_part *part = &meta->parts[meta->part_count++];
		*part = (struct run_part){
			.part = sqlite3_column_int64(statement, 0),
			.parts = sqlite3_column_int64(statement, 1),
			.cells = sqlite3_column_int64(statement, 2),
			.finished_wall_ns = sql_integer(statement, 3),
			.environment = arena_strdup(arena, sql_text(statement, 4)),
		};
		sql_copy(statement, 5, part->environment_hash, sizeof part->environment_hash);
		sql_copy(statement, 6, part->host, sizeof part->host);
		sql_copy(statement, 7, part->node, sizeof part->node);
		if (part->part < 1 || part->part > part->parts || part->parts > RUN_PARTS_MAX)
			status = error_set(err, PRONY_STORE,
					   "%s: a `part` of run %lld is not one of its parts",
					   store->path, (long long)run);
	}
	sqlite3_finalize(statement);
	return status;
}

enum prony_status parts_settle(struct store *store, int64_t run, struct error *err)
{
	return sql_change(
		store,
		"UPDATE main.run SET (host, environment, environment_hash) = (SELECT host,"
		" environment, environment_hash FROM main.run_part WHERE run = ?1 ORDER BY part"
		" LIMIT 1), finished_wall_ns = (SELECT CASE WHEN count(finished_wall_ns) ="
		" max(parts) THEN max(finished_wall_ns) END FROM main.run_part WHERE run = ?1)"
		" WHERE id = ?1",
		doing, NULL, err, "n", run);
}

static enum prony_status is_here(struct store *store, const struct run_part *part, bool finished,
				 struct error *err)
{
	return error_set(err, PRONY_USAGE,
			 "%s: part %lld/%lld of this run is here%s; add --resume, or another "
			 "--run-id for another run",
			 store->path, (long long)part->part, (long long)part->parts,
			 finished ? "" : ", unfinished");
}

/* What is to be done with a part that is here. */
static enum prony_status reopen(struct store *store, const struct run_meta *meta,
				const struct run_part *part, bool resume, enum part_begun *begun,
				struct error *err)
{
	int64_t finished = 0, alike = 0;
	enum prony_status status = sql_int(store,
					   "SELECT finished_wall_ns IS NOT NULL FROM run_part"
					   " WHERE run = ?1 AND part = ?2",
					   doing, 0, &finished, err, "nn", meta->id, part->part);

	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT environment_hash = ?3 FROM run_part"
				 " WHERE run = ?1 AND part = ?2",
				 doing, 0, &alike, err, "nnt", meta->id, part->part,
				 meta->environment_hash);
	if (status == PRONY_OK && !resume)
		status = is_here(store, part, finished, err);
	if (status != PRONY_OK)
		return status;
	*begun = finished || alike ? PART_CONTINUES : PART_RESTARTS;
	if (*begun == PART_CONTINUES)
		return PRONY_OK;
	/* Contenders of one table are never measured on different machines. */
	status = sql_change(store, "DELETE FROM cell WHERE run = ?1 AND part = ?2", doing, NULL,
			    err, "nn", meta->id, part->part);
	if (status == PRONY_OK)
		status = sql_change(store, "DELETE FROM run_part WHERE run = ?1 AND part = ?2",
				    doing, NULL, err, "nn", meta->id, part->part);
	return status;
}

static enum prony_status insert_part(struct store *store, const struct run_meta *meta,
				     const struct run_part *part, struct error *err)
{
	return sql_change(store,
			  "INSERT INTO run_part (run, part, parts, cells, environment,"
			  " environment_hash, host) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
			  doing, NULL, err, "nnnnttt", meta->id, part->part, part->parts,
			  part->cells, meta->environment, meta->environment_hash, meta->host);
}

static enum prony_status open_part(struct store *store, struct run_meta *meta,
				   const struct run_part *part, bool resume, enum part_begun *begun,
				   struct error *err)
{
	int64_t here = 0;
	enum prony_status status = sql_int(store, "SELECT id FROM run WHERE uid = ?1", doing, 0,
					   &meta->id, err, "t", meta->uid);

	*begun = PART_BEGINS;
	if (status == PRONY_OK && meta->id == 0)
		status = run_insert(store, meta->uid, meta, err);
	if (status == PRONY_OK)
		status =
			sql_int(store, "SELECT count(*) FROM run_part WHERE run = ?1 AND part = ?2",
				doing, 0, &here, err, "nn", meta->id, part->part);
	if (status == PRONY_OK && here > 0)
		status = reopen(store, meta, part, resume, begun, err);
	if (status == PRONY_OK && *begun != PART_CONTINUES)
		status = insert_part(store, meta, part, err);
	return status == PRONY_OK ? parts_settle(store, meta->id, err) : status;
}

enum prony_status store_part_begin(struct store *store, struct run_meta *meta,
				   const struct run_part *part, bool resume, enum part_begun *begun,
				   struct error *err)
{
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	return sql_end(store, open_part(store, meta, part, resume, begun, err), doing, err);
}

enum prony_status store_part_cells(struct store *store, int64_t run, int64_t part,
				   struct error *err)
{
	return sql_change(store, "UPDATE cell SET part = ?2 WHERE run = ?1 AND part IS NULL", doing,
			  NULL, err, "nn", run, part);
}

enum prony_status store_part_finish(struct store *store, int64_t run, int64_t part, int64_t wall_ns,
				    struct error *err)
{
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	status = sql_change(store,
			    "UPDATE run_part SET finished_wall_ns = ?3"
			    " WHERE run = ?1 AND part = ?2 AND finished_wall_ns IS NULL",
			    doing, NULL, err, "nnn", run, part, wall_ns);
	if (status == PRONY_OK)
		status = parts_settle(store, run, err);
	return sql_end(store, status, doing, err);
}
