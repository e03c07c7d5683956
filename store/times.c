/* How long processes of a cell took in earlier runs. */
#include <math.h>
#include <string.h>

#include "store/sql_internal.h"
#include "store/store.h"

/* The newest ones: frameworks and machines change. */
#define PROCESSES_MAX 24

/* Sums over rows; the squares are those of one run at a time. */
struct sums {
	int64_t rows, of_effort, run, of_run;
	double start, step;
	double warm_up;		  /* of the effort: others go on for shorter, or longer */
	double logs, log_squares; /* of the steps of one run */
	double squares;		  /* about the mean of each run */
	int64_t freedom;
};

static void end_run(struct sums *s)
{
	if (s->of_run > 1) {
		s->squares += s->log_squares - s->logs * s->logs / (double)s->of_run;
		s->freedom += s->of_run - 1;
	}
	s->of_run = 0;
	s->logs = s->log_squares = 0;
}

static void take_row(sqlite3_stmt *row, const char *effort, struct sums *s)
{
	double step = sqlite3_column_double(row, 2), off = log(step);
	s->rows++;
	s->start += sqlite3_column_double(row, 0);
	s->step += step;
	if (s->run != sqlite3_column_int64(row, 3))
		end_run(s);
	s->run = sqlite3_column_int64(row, 3);
	const char *found = (const char *)sqlite3_column_text(row, 4);
	if (!found || strcmp(found, effort))
		return;
	s->of_effort++;
	s->warm_up += sqlite3_column_double(row, 1);
	s->of_run++;
	s->logs += off;
	s->log_squares += off * off;
}

enum prony_status store_times(struct store *store, const char *hash, const char *host,
			      const char *effort, struct store_times *out, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = true;
	struct sums sums = {.rows = 0};
	*out = (struct store_times){0};
	enum prony_status status = sql_prepare(
		store,
		"SELECT total_ns - warm_up_ns - window_ns, warm_up_ns, step_mean_ns, run.id, effort"
		" FROM cell JOIN run ON cell.run = run.id JOIN process ON process.cell = cell.id"
		" WHERE cell.hash = ?1 AND run.host = ?2 AND process.status = 'ok'"
		" AND total_ns > 0 AND warm_up_ns >= 0 AND window_ns > 0 AND step_mean_ns > 0"
		" ORDER BY process.id DESC LIMIT ?3",
		"read earlier times", &statement, err, "ttn", hash, host, (int64_t)PROCESSES_MAX);
	while (status == PRONY_OK && row) {
		status = sql_step(store, statement, "read earlier times", &row, err);
		if (status == PRONY_OK && row)
			take_row(statement, effort, &sums);
	}
	sqlite3_finalize(statement);
	if (status != PRONY_OK || sums.rows == 0)
		return status;
	end_run(&sums);
	double n = (double)sums.rows;
	*out = (struct store_times){
		.processes = sums.rows,
		.start_ns = sums.start / n,
		.warm_up_ns = sums.of_effort > 0 ? sums.warm_up / (double)sums.of_effort : 0,
		.step_ns = sums.step / n};
	if (sums.freedom > 0)
		out->spread = sqrt(fmax(sums.squares, 0) / (double)sums.freedom);
	return PRONY_OK;
}
