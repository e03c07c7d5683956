/* Finds runs by name, number or prefix of their uid, and reads their row. */
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "store/sql_internal.h"
#include "store/store.h"

/* Minimum number of digits of a uid. Fewer are a typing mistake; decimal digits could be a run
 * number. */
enum { UID_DIGITS = 4, UID_DIGITS_DECIMAL = 8 };

#define META_COLUMNS                                                                               \
	"id, uid, suite, version, effort, seed, started_wall_ns, finished_wall_ns, statistic,"     \
	" environment_hash, host, " SQL_NODE

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
	sql_copy(statement, 11, meta->node, sizeof meta->node);
}

/* The run that is `back` runs before the newest. */
static enum prony_status newest_run(struct store *store, int64_t back, int64_t *run,
				    struct error *err)
{
	enum prony_status status =
		sql_int(store, "SELECT id FROM run ORDER BY " SQL_NEWEST_FIRST " LIMIT 1 OFFSET ?1",
			"look for a run", -1, run, err, "n", back);

	if (status != PRONY_OK || *run >= 0)
		return status;
	if (back > 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: has fewer than %lld runs before the newest", store->path,
				 (long long)back);
	return error_set(err, PRONY_BAD_INPUT, "%s: contains no runs yet; `prony run` adds one",
			 store->path);
}

/* Whether the word is "latest" or "latest~3". */
static bool is_latest(const char *which, int64_t *back)
{
	static const char word[] = "latest";
	const char *rest = which + sizeof word - 1;

	if (strncmp(which, word, sizeof word - 1) != 0)
		return false;
	*back = 0;
	if (!*rest)
		return true;
	size_t digits = *rest == '~' ? strspn(rest + 1, "0123456789") : 0;
	if (digits == 0 || digits > 9 || rest[1 + digits])
		return false;
	*back = strtoll(rest + 1, NULL, 10);
	return true;
}

/* Meanings of a word, in order of priority when several match. */
enum { BY_NAME, BY_NUMBER, BY_UID, KIND_COUNT };

struct candidates {
	int64_t id[KIND_COUNT]; /* the last match of each kind */
	int counts[KIND_COUNT];
	struct strbuf list; /* "run 3 (a1b2...), run 7 (...)" */
	int count;	    /* number of different runs */
};

static enum prony_status find_candidates(struct store *store, const char *which,
					 struct candidates *found, struct error *err)
{
	const char *name = store->has_names ? "(SELECT name FROM run_name WHERE run = id)" : "NULL";
	sqlite3_stmt *statement = NULL;
	struct strbuf sql;
	bool row = true;

	strbuf_init(&sql, 0);
	strbuf_printf(&sql,
		      "SELECT id, uid, ifnull(%s = ?1, 0), CAST(id AS TEXT) = ?1,"
		      " length(?1) >= ?2 AND substr(uid, 1, length(?1)) = ?1 FROM run ORDER BY id",
		      name);
	enum prony_status status = sql_prepare(store, strbuf_text(&sql), "look for a run",
					       &statement, err, "tn", which, (int64_t)UID_DIGITS);
	strbuf_release(&sql);
	while (status == PRONY_OK) {
		bool any = false;
		status = sql_step(store, statement, "look for a run", &row, err);
		if (status != PRONY_OK || !row)
			break;
		for (int kind = 0; kind < KIND_COUNT; kind++) {
			if (!sqlite3_column_int(statement, 2 + kind))
				continue;
			found->id[kind] = sqlite3_column_int64(statement, 0);
			found->counts[kind]++;
			any = true;
		}
		if (any)
			strbuf_printf(&found->list, "%srun %lld (%s)", found->count++ ? ", " : "",
				      (long long)sqlite3_column_int64(statement, 0),
				      sql_text(statement, 1));
	}
	sqlite3_finalize(statement);
	return status;
}

/* Whether so few decimal digits are a run number (of a run that does not exist), not a uid. */
static bool is_number(const char *which)
{
	size_t length = strlen(which);

	return strspn(which, "0123456789") == length && length < UID_DIGITS_DECIMAL;
}

static enum prony_status choose(struct store *store, const char *which, bool only,
				const struct candidates *found, int64_t *run, struct error *err)
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		if (found->counts[kind] == 0 || (kind == BY_UID && is_number(which)))
			continue;
		if (found->counts[kind] > 1 || (only && found->count > 1))
			return error_set(err, PRONY_BAD_INPUT,
					 "%s: '%s' matches %s; give more digits of the uid",
					 store->path, which, strbuf_text(&found->list));
		*run = found->id[kind];
		return PRONY_OK;
	}
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: no run '%s'; give a run's name, its number, or at least %d digits of "
			 "its uid ('prony list runs' shows them)",
			 store->path, which, UID_DIGITS);
}

/* Resolves a word to a run; with `only`, an ambiguous word is an error. */
static enum prony_status resolve(struct store *store, const char *which, bool only, int64_t *run,
				 struct error *err)
{
	struct candidates found = {.count = 0};
	int64_t back = 0;

	if ((!*which && !only) || is_latest(which, &back))
		return newest_run(store, back, run, err);
	strbuf_init(&found.list, 400);
	enum prony_status status = find_candidates(store, which, &found, err);
	if (status == PRONY_OK)
		status = choose(store, which, only, &found, run, err);
	strbuf_release(&found.list);
	return status;
}

enum prony_status find_run(struct store *store, const char *which, int64_t *run, struct error *err)
{
	return resolve(store, which, false, run, err);
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
		meta->spec = arena_strdup(arena, sql_text(statement, 12));
		meta->command = arena_strdup(arena, sql_text(statement, 13));
		meta->environment = arena_strdup(arena, sql_text(statement, 14));
	}
	sqlite3_finalize(statement);
	if (status == PRONY_OK)
		status = names_load(store, id, arena, meta, err);
	return status == PRONY_OK ? parts_load(store, id, arena, meta, err) : status;
}

/* Counts the cells and processes of a run. */
static enum prony_status count_parts(struct store *store, struct run_extent *run, struct error *err)
{
	int64_t id = run->meta.id;
	enum prony_status status = sql_int(store, "SELECT count(*) FROM cell WHERE run = ?1",
					   "count cells", 0, &run->cells, err, "n", id);

	if (status == PRONY_OK)
		status = sql_int(store, "SELECT count(*) FROM cell WHERE run = ?1 AND status = ?2",
				 "count cells", 0, &run->ok, err, "nt", id,
				 cell_status_name(CELL_OK));
	if (status == PRONY_OK)
		status = sql_int(store,
				 "SELECT count(*) FROM process WHERE cell IN"
				 " (SELECT id FROM cell WHERE run = ?1)",
				 "count results", 0, &run->processes, err, "n", id);
	return status;
}

enum prony_status store_find_run(struct store *store, const char *which, struct run_extent *out,
				 struct error *err)
{
	struct run_extent extent = {.cells = 0};
	struct arena arena;
	int64_t id = -1;
	enum prony_status status = resolve(store, which, true, &id, err);

	arena_init(&arena, 0);
	if (status == PRONY_OK)
		status = load_meta(store, id, &arena, &extent.meta, err);
	arena_release(&arena);
	extent.meta.spec = extent.meta.command = extent.meta.environment = extent.meta.tags = NULL;
	extent.meta.parts = NULL;
	extent.meta.part_count = 0;
	if (status == PRONY_OK)
		status = count_parts(store, &extent, err);
	if (status == PRONY_OK)
		*out = extent;
	return status;
}

/* The numbers of the runs with a tag (NULL: all), newest first; in the arena. */
static enum prony_status list_ids(struct store *store, const char *tag, struct arena *arena,
				  int64_t **out, size_t *count, struct error *err)
{
	const char *bears = !tag	       ? "1"
			    : store->has_names ? "id IN (SELECT run FROM run_tag WHERE tag = ?1)"
					       : "0";
	sqlite3_stmt *statement = NULL;
	struct strbuf sql;
	int64_t many = 0;
	bool row = true;
	size_t used = 0;
	enum prony_status status =
		sql_int(store, "SELECT count(*) FROM run", "list runs", 0, &many, err, "");

	strbuf_init(&sql, 0);
	strbuf_printf(&sql, "SELECT id FROM run WHERE %s ORDER BY ", bears);
	strbuf_puts(&sql, SQL_NEWEST_FIRST);
	if (status == PRONY_OK)
		status = sql_prepare(store, strbuf_text(&sql), "list runs", &statement, err,
				     tag && store->has_names ? "t" : "", tag);
	strbuf_release(&sql);
	int64_t *ids = arena_array(arena, (size_t)many + 1, sizeof *ids);
	while (status == PRONY_OK && used < (size_t)many) {
		status = sql_step(store, statement, "list runs", &row, err);
		if (status != PRONY_OK || !row)
			break;
		ids[used++] = sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	*out = ids;
	*count = used;
	return status;
}

enum prony_status store_list_runs(struct store *store, const char *tag, struct arena *arena,
				  struct run_extent **out, size_t *count, struct error *err)
{
	int64_t *ids = NULL;
	size_t many = 0;
	/* Read within one transaction, because another prony may be writing. */
	enum prony_status status = sql_run(store, "BEGIN", "list runs", err);

	if (status != PRONY_OK)
		return status;
	status = list_ids(store, tag, arena, &ids, &many, err);
	struct run_extent *runs = arena_array(arena, many + 1, sizeof *runs);
	for (size_t i = 0; i < many && status == PRONY_OK; i++) {
		status = load_meta(store, ids[i], arena, &runs[i].meta, err);
		if (status == PRONY_OK)
			status = count_parts(store, &runs[i], err);
	}
	sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	if (status == PRONY_OK) {
		*out = runs;
		*count = many;
	}
	return status;
}
