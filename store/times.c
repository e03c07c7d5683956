/* How long processes of a cell took in earlier runs. */
#include "store/sql_internal.h"
#include "store/store.h"

/* The newest ones: frameworks and machines change. */
#define PROCESSES_MAX 24

enum prony_status store_times(struct store *store, const char *hash, const char *host,
			      struct store_times *out, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = false;
	*out = (struct store_times){0};
	enum prony_status status = sql_prepare(
		store,
		"SELECT count(*), avg(start), avg(warm_up_ns), avg(step_mean_ns) FROM ("
		" SELECT total_ns - warm_up_ns - window_ns AS start, warm_up_ns, step_mean_ns"
		" FROM cell JOIN run ON cell.run = run.id JOIN process ON process.cell = cell.id"
		" WHERE cell.hash = ?1 AND run.host = ?2 AND process.status = 'ok'"
		" AND total_ns > 0 AND warm_up_ns >= 0 AND window_ns > 0 AND step_mean_ns > 0"
		" ORDER BY process.id DESC LIMIT ?3)",
		"read earlier times", &statement, err, "ttn", hash, host, (int64_t)PROCESSES_MAX);
	if (status == PRONY_OK)
		status = sql_step(store, statement, "read earlier times", &row, err);
	if (status == PRONY_OK && row && sqlite3_column_int64(statement, 0) > 0)
		*out = (struct store_times){.processes = sqlite3_column_int64(statement, 0),
					    .start_ns = sqlite3_column_double(statement, 1),
					    .warm_up_ns = sqlite3_column_double(statement, 2),
					    .step_ns = sqlite3_column_double(statement, 3)};
	sqlite3_finalize(statement);
	return status;
}
