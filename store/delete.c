/* Deletes runs and returns their space to the file system. */
#include "base/files.h"
#include "store/sql_internal.h"

static const char doing[] = "delete a run";

enum prony_status store_delete_runs(struct store *store, const int64_t *runs, size_t count,
				    struct error *err)
{
	enum prony_status status = sql_begin(store, doing, err);

	if (status != PRONY_OK)
		return status;
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		int changes = 0;
		/* ON DELETE CASCADE removes everything that belongs to the run. */
		status = sql_change(store, "DELETE FROM run WHERE id = ?1", doing, &changes, err,
				    "n", runs[i]);
		if (status == PRONY_OK && changes != 1)
			status = error_set(err, PRONY_STORE, "%s: run %lld no longer exists",
					   store->path, (long long)runs[i]);
	}
	return sql_end(store, status, doing, err);
}

enum prony_status store_compact(struct store *store, int64_t *bytes, struct error *err)
{
	static const char what[] = "compact it after the deletion";
	int64_t before = 0;

	/* Count the log's content as part of the file. */
	sqlite3_exec(store->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
	before = file_bytes(store->path);
	enum prony_status status = sql_run(store, "VACUUM", what, err);
	if (status == PRONY_OK)
		status = sql_run(store, "PRAGMA wal_checkpoint(TRUNCATE)", what, err);
	if (status == PRONY_OK)
		*bytes = before - file_bytes(store->path);
	return status;
}
