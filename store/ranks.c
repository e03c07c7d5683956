/* Stores what each of several ranks did, one row per rank of a process. */
#include "base/memory.h"
#include "store/sql_internal.h"

enum prony_status ranks_insert(struct store *store, int64_t process,
			       const struct process_record *record, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < record->rank_count && status == PRONY_OK; i++) {
		const struct rank_record *rank = &record->rank_records[i];

		status = sql_change(store,
				    "INSERT INTO process_rank (process, " RANK_COLUMNS
				    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
				    "store a result", NULL, err, "nniiiii", process, (int64_t)i,
				    rank->begin_ns, rank->length_ns, rank->rss_bytes, rank->user_ns,
				    rank->system_ns);
	}
	return status;
}

static int64_t number_of(sqlite3_stmt *statement, int column)
{
	return sqlite3_column_type(statement, column) == SQLITE_INTEGER
		       ? sqlite3_column_int64(statement, column)
		       : RECORD_NONE;
}

enum prony_status ranks_load(struct store *store, int64_t process, struct process_record *record,
			     struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = true;
	enum prony_status status = sql_prepare(
		store, "SELECT " RANK_COLUMNS " FROM process_rank WHERE process = ?1 ORDER BY rank",
		"read results", &statement, err, "n", process);

	while (status == PRONY_OK) {
		status = sql_step(store, statement, "read results", &row, err);
		if (status != PRONY_OK || !row)
			break;
		record->rank_records =
			memory_realloc(record->rank_records,
				       (record->rank_count + 1) * sizeof *record->rank_records);
		record->rank_records[record->rank_count++] =
			(struct rank_record){.begin_ns = number_of(statement, 1),
					     .length_ns = number_of(statement, 2),
					     .rss_bytes = number_of(statement, 3),
					     .user_ns = number_of(statement, 4),
					     .system_ns = number_of(statement, 5)};
	}
	sqlite3_finalize(statement);
	return status;
}
