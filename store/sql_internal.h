/* Private to store/: an open database and short ways to run statements on it. */
#ifndef PRONY_STORE_SQL_INTERNAL_H
#define PRONY_STORE_SQL_INTERNAL_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/axes.h"
#include "samples/record.h"

struct store {
	sqlite3 *db;
	char *path;		       /* as the user knows it */
	char *uri;		       /* as SQLite was asked to open it */
	bool *columns;		       /* per row of PROCESS_FIELDS: the table `process` has it */
	bool axis_columns[AXIS_COUNT]; /* likewise of the table `cell` */
	bool has_series;	       /* the table `process_series` is there */
};

/* The error of the statement that just failed: what was being done, the file, the remedy. */
enum prony_status sql_fail(const struct store *store, struct error *err, const char *doing);

/* Statements without parameters and results. */
enum prony_status sql_run(struct store *store, const char *sql, const char *doing,
			  struct error *err);

/*
 * Prepares a statement and binds the arguments to ?1, ?2...: one letter each in `types`, n =
 * int64_t, i = int64_t with RECORD_NONE = NULL, t = const char * (NULL = NULL). Texts are borrowed
 * until sqlite3_finalize.
 */
enum prony_status sql_prepare(struct store *store, const char *sql, const char *doing,
			      sqlite3_stmt **out, struct error *err, const char *types, ...);

/* As sql_prepare, run to its end; *changes (may be NULL) = rows it changed. */
enum prony_status sql_change(struct store *store, const char *sql, const char *doing, int *changes,
			     struct error *err, const char *types, ...);

/* Steps once: *row says whether there is a row. */
enum prony_status sql_step(struct store *store, sqlite3_stmt *statement, const char *doing,
			   bool *row, struct error *err);

/* The first column of the first row; `otherwise` when there is no row or it is NULL. */
enum prony_status sql_int(struct store *store, const char *sql, const char *doing,
			  int64_t otherwise, int64_t *out, struct error *err, const char *types,
			  ...);

/* A transaction takes the write lock at once, so that it cannot fail half-way for want of it. */
enum prony_status sql_begin(struct store *store, const char *doing, struct error *err);
/* Commits when `status` is PRONY_OK, else rolls back; returns the outcome of both. */
enum prony_status sql_end(struct store *store, enum prony_status status, const char *doing,
			  struct error *err);

/* Columns of process_series besides `process`. */
#define SERIES_COLUMNS "sensor, kind, unit, rate_unit, absent, channels, samples"
enum prony_status series_insert(struct store *store, int64_t process,
				const struct process_record *record, struct error *err);
enum prony_status series_load(struct store *store, int64_t process, struct process_record *record,
			      struct error *err);

/* Columns of the current row. */
const char *sql_text(sqlite3_stmt *statement, int column); /* "" for NULL */
int64_t sql_integer(sqlite3_stmt *statement, int column);  /* RECORD_NONE for NULL */
void sql_copy(sqlite3_stmt *statement, int column, char *out, size_t out_bytes);

#endif
