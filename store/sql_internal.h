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
#include "store/store.h"

struct store {
	sqlite3 *db;
	char *path;		       /* as the user knows it */
	char *lost_path;	       /* where it was when it was removed or replaced; or NULL */
	char *uri;		       /* as SQLite was asked to open it */
	bool *columns;		       /* per row of PROCESS_FIELDS: the table `process` has it */
	bool axis_columns[AXIS_COUNT]; /* likewise of the table `cell` */
	bool has_series;	       /* the table `process_series` is there */
	bool has_names;		       /* the tables `run_name` and `run_tag` are there */
	int depth;		       /* of transactions within one */
	int64_t steps, steps_max;      /* of SQLite's machine: in this statement, and at most */
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

/*
 * A transaction takes the write lock at once, so that it cannot fail half-way for want of it. One
 * within another is a part of it. A store that is no longer at its place is written beside first,
 * and takes the transaction there: sql_end then says so, after all that was written.
 */
enum prony_status sql_begin(struct store *store, const char *doing, struct error *err);
/* Commits when `status` is PRONY_OK, else rolls back; returns the outcome of both. */
enum prony_status sql_end(struct store *store, enum prony_status status, const char *doing,
			  struct error *err);

/* Opens store->path, instead of what was open; flags as of sqlite3_open_v2. */
enum prony_status store_connect(struct store *store, const char *query, int flags,
				struct error *err);
/* Bounds the steps of each statement from now on by what a sound file of `bytes` more can take. */
void store_limit_steps(struct store *store, int64_t bytes);
/* Journal, safety, foreign keys of a connection that writes. */
enum prony_status store_set_up(struct store *store, struct error *err);
/* Makes the folder of a store. */
enum prony_status store_make_folder(const char *path, struct error *err);

/* Whether the file of the store's name is another one now, or none. */
bool store_has_moved(const struct store *store);
/* Writes what the store holds beside its old place, or below TMPDIR: the store then is there. */
enum prony_status store_rescue(struct store *store, struct error *err);
/* The error of a store that had to be rescued. */
enum prony_status store_say_lost(const struct store *store, struct error *err);

/*
 * Schema of an open file; *version 0: nothing is in it yet. PRONY_STORE for a file that is no
 * store, one of a newer prony, and one in which a name of ours is anything but the table that we
 * make.
 */
enum prony_status schema_version(struct store *store, int64_t *version, struct error *err);
/* Makes or brings up to date the tables, all or nothing; so it finds out whether it can write. */
enum prony_status schema_migrate(struct store *store, struct error *err);
/* Which columns there are, and which of the tables that came later. */
enum prony_status schema_find(struct store *store, struct error *err);

/* Columns of process_series besides `process`. */
#define SERIES_COLUMNS "sensor, kind, unit, rate_unit, absent, channels, samples"
enum prony_status series_insert(struct store *store, int64_t process,
				const struct process_record *record, struct error *err);
enum prony_status series_load(struct store *store, int64_t process, struct process_record *record,
			      struct error *err);

/* The run that `which` names, as store_load_run finds it. */
enum prony_status find_run(struct store *store, const char *which, int64_t *run, struct error *err);
/* The row of a run; its long texts into the arena. */
enum prony_status load_meta(struct store *store, int64_t id, struct arena *arena,
			    struct run_meta *meta, struct error *err);
/* A run by its id, within a transaction of the caller's; `hash`: that cell of it alone, or NULL. */
enum prony_status load_run(struct store *store, int64_t id, const char *hash, unsigned parts,
			   struct stored_run *out, struct error *err);

/* Gives a new run its name, in the caller's transaction. */
enum prony_status names_insert(struct store *store, int64_t run, const char *name,
			       struct error *err);
/* Name and tags of a run; the tags in the arena. */
enum prony_status names_load(struct store *store, int64_t run, struct arena *arena,
			     struct run_meta *meta, struct error *err);

/* Whether a run that was copied from another store, in this transaction, holds only what prony
 * writes; PRONY_BAD_INPUT names the column that does not. */
enum prony_status validate_run(struct store *store, int64_t id, struct error *err);

/* Columns of the current row. */
const char *sql_text(sqlite3_stmt *statement, int column); /* "" for NULL */
int64_t sql_integer(sqlite3_stmt *statement, int column);  /* RECORD_NONE for NULL */
void sql_copy(sqlite3_stmt *statement, int column, char *out, size_t out_bytes);

#endif
