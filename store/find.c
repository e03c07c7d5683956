/* Runs by number or the beginning of their uid, and what stands in their row. */
#include <string.h>

#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

/* Digits of a uid that must be given where another run must not be meant. */
enum { EXACT_DIGITS = 4 };

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

enum prony_status find_run(struct store *store, const char *which, int64_t *run, struct error *err)
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

/*
 * A number that is an id and begins a uid as well may mean either run; a few digits are an id, or a
 * slip of the hand.
 */
static enum prony_status find_exactly(struct store *store, const char *which, int64_t *run,
				      struct error *err)
{
	sqlite3_stmt *statement = NULL;
	struct strbuf found;
	int64_t id = -1;
	int count = 0;
	bool row = true;
	enum prony_status status = sql_prepare(
		store,
		"SELECT id, uid FROM run WHERE CAST(id AS TEXT) = ?1"
		" OR (length(?1) >= ?2 AND substr(uid, 1, length(?1)) = ?1) ORDER BY id",
		"look for a run", &statement, err, "tn", which, (int64_t)EXACT_DIGITS);

	strbuf_init(&found, 400);
	while (status == PRONY_OK) {
		status = sql_step(store, statement, "look for a run", &row, err);
		if (status != PRONY_OK || !row)
			break;
		id = sqlite3_column_int64(statement, 0);
		strbuf_printf(&found, "%srun %lld (%s)", count++ ? ", " : "", (long long)id,
			      sql_text(statement, 1));
	}
	sqlite3_finalize(statement);
	if (status == PRONY_OK && count == 0)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: there is no run '%s'; give a number, or at least %d digits "
				   "of the uid, of an existing one",
				   store->path, which, EXACT_DIGITS);
	else if (status == PRONY_OK && count > 1)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: '%s' may mean %s; give more digits of the uid", store->path,
				   which, strbuf_text(&found));
	strbuf_release(&found);
	if (status == PRONY_OK)
		*run = id;
	return status;
}

enum prony_status load_meta(struct store *store, int64_t id, struct arena *arena,
			    struct run_meta *meta, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = false;
	enum prony_status status = sql_prepare(
		store, "SELECT " META_COLUMNS ", spec, command, environment FROM run WHERE id = ?1",
		"read a run", &statement, err, "n", id);

	if (status == PRONY_OK)
		status = sql_step(store, statement, "read a run", &row, err);
	if (status == PRONY_OK && row) {
		read_meta(statement, meta);
		meta->spec = arena_strdup(arena, sql_text(statement, 11));
		meta->command = arena_strdup(arena, sql_text(statement, 12));
		meta->environment = arena_strdup(arena, sql_text(statement, 13));
	}
	sqlite3_finalize(statement);
	return status;
}

enum prony_status store_find_run(struct store *store, const char *which, struct run_extent *out,
				 struct error *err)
{
	struct run_extent extent = {.cells = 0};
	struct arena arena;
	int64_t id = -1;
	enum prony_status status = find_exactly(store, which, &id, err);

	arena_init(&arena, 0);
	if (status == PRONY_OK)
		status = load_meta(store, id, &arena, &extent.meta, err);
	arena_release(&arena);
	extent.meta.spec = extent.meta.command = extent.meta.environment = NULL;
	if (status == PRONY_OK)
		status = sql_int(store, "SELECT count(*) FROM cell WHERE run = ?1", "count cells",
				 0, &extent.cells, err, "n", id);
	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT count(*) FROM process WHERE cell IN"
				 " (SELECT id FROM cell WHERE run = ?1)",
				 "count results", 0, &extent.processes, err, "n", id);
	if (status == PRONY_OK)
		*out = extent;
	return status;
}
