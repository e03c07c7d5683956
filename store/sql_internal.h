/* Private to store/: an open database and helpers that run statements on it. */
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
	char *path;	 /* path as the user gave it */
	char *lost_path; /* previous path, if the file was removed or replaced; or NULL */
	char *uri;	 /* the URI passed to SQLite */
	bool *columns;	 /* per row of PROCESS_FIELDS: whether the table `process` has the column */
	bool axis_columns[AXIS_COUNT]; /* the same for the table `cell` */
	bool has_series;	       /* whether the table `process_series` exists */
	bool has_ranks;		       /* the same of `process_rank` */
	bool has_names;		       /* whether the tables `run_name` and `run_tag` exist */
	bool has_parts;		       /* whether cell.part exists, and with it `run_part` */
	int depth;		       /* nesting depth of transactions */
	int64_t steps, steps_max; /* virtual machine steps of this statement, and their limit */
};

/* The order of runs. A run that begins over a day from now was made with a wrong clock: it comes
 * before all others, so that it is not the newest for ever. */
#define SQL_PLAUSIBLE "(started_wall_ns <= (strftime('%s', 'now') + 86400) * 1000000000)"
#define SQL_NEWEST_FIRST SQL_PLAUSIBLE " DESC, started_wall_ns DESC, id DESC"

/* The node that a run's record names; NULL: none. */
#define SQL_NODE                                                                                   \
	"CASE WHEN json_valid(environment)"                                                        \
	" THEN json_extract(environment, '$.informational.node') END"

/* Whether the disk of the store has no room. */
bool sql_disk_is_full(const struct store *store);

/* Sets the error of the failed statement: what was being done, the file, the remedy. */
enum prony_status sql_fail(const struct store *store, struct error *err, const char *doing);

/* Runs statements without parameters and results. */
enum prony_status sql_run(struct store *store, const char *sql, const char *doing,
			  struct error *err);

/* Prepares a statement and binds the arguments to ?1, ?2...: one letter each in `types`, n =
 * int64_t, i = int64_t with RECORD_NONE = NULL, t = const char * (NULL = NULL). Texts are borrowed
 * until sqlite3_finalize. */
enum prony_status sql_prepare(struct store *store, const char *sql, const char *doing,
			      sqlite3_stmt **out, struct error *err, const char *types, ...);

/* Like sql_prepare, and runs the statement to its end; *changes (may be NULL) = number of changed
 * rows. */
enum prony_status sql_change(struct store *store, const char *sql, const char *doing, int *changes,
			     struct error *err, const char *types, ...);

/* Steps once: *row says whether there is a row. */
enum prony_status sql_step(struct store *store, sqlite3_stmt *statement, const char *doing,
			   bool *row, struct error *err);

/* The first column of the first row; `otherwise` when there is no row or it is NULL. */
enum prony_status sql_int(struct store *store, const char *sql, const char *doing,
			  int64_t otherwise, int64_t *out, struct error *err, const char *types,
			  ...);

/* Takes the write lock at once, so that a transaction cannot fail half-way for lack of it. A nested
 * transaction is part of the outer one. If the store's file was moved, the content is first saved
 * under another name and the transaction goes there; sql_end reports that after writing. */
enum prony_status sql_begin(struct store *store, const char *doing, struct error *err);
/* Commits when `status` is PRONY_OK, else rolls back; returns the outcome of both. */
enum prony_status sql_end(struct store *store, enum prony_status status, const char *doing,
			  struct error *err);

/* Opens store->path and closes the previous connection; flags as in sqlite3_open_v2. */
enum prony_status store_connect(struct store *store, const char *query, int flags,
				struct error *err);
/* Limits the steps of each further statement to what a valid file of `bytes` more can need. */
void store_limit_steps(struct store *store, int64_t bytes);
/* Sets journal mode, synchronous mode and foreign keys of a writing connection. */
enum prony_status store_set_up(struct store *store, struct error *err);
/* Makes the folder of a store. */
enum prony_status store_make_folder(const char *path, struct error *err);

/* Whether the file with the store's name is gone or is now another file. */
bool store_has_moved(const struct store *store);
/* Saves the content of the store beside its old path, or below TMPDIR, and continues there. */
enum prony_status store_rescue(struct store *store, struct error *err);
/* The error for a store that had to be saved elsewhere. */
enum prony_status store_say_lost(const struct store *store, struct error *err);

/* The schema of an open file; *version 0: empty. PRONY_STORE when the file is not a store, belongs
 * to a newer prony, or contains an object with one of our names that is not our table. */
enum prony_status schema_version(struct store *store, int64_t *version, struct error *err);
/*
 * Creates or migrates the tables in one transaction; this also shows whether the store is writable.
 */
enum prony_status schema_migrate(struct store *store, struct error *err);
/* Finds out which columns and which later tables exist. */
enum prony_status schema_find(struct store *store, struct error *err);

/* Columns of process_series besides `process`. */
/* None is a column of `process`. */
#define RANK_COLUMNS "rank, begin_ns, length_ns, rss_bytes, user_ns, system_ns"
enum prony_status ranks_insert(struct store *store, int64_t process,
			       const struct process_record *record, struct error *err);
enum prony_status ranks_load(struct store *store, int64_t process, struct process_record *record,
			     struct error *err);
#define SERIES_COLUMNS "sensor, kind, unit, rate_unit, absent, channels, samples"
enum prony_status series_insert(struct store *store, int64_t process,
				const struct process_record *record, struct error *err);
enum prony_status series_load(struct store *store, int64_t process, struct process_record *record,
			      struct error *err);

/* Finds the run that `which` names, with the rules of store_load_run. */
enum prony_status find_run(struct store *store, const char *which, int64_t *run, struct error *err);
/* Reads the row of a run; its long texts go into the arena. */
enum prony_status load_meta(struct store *store, int64_t id, struct arena *arena,
			    struct run_meta *meta, struct error *err);
/* Loads a run by id within the caller's transaction; `hash`: only that cell, or NULL. */
enum prony_status load_run(struct store *store, int64_t id, const char *hash, unsigned parts,
			   struct stored_run *out, struct error *err);

/* Stores the name of a new run in the caller's transaction. */
enum prony_status names_insert(struct store *store, int64_t run, const char *name,
			       struct error *err);
/* Loads name and tags of a run; the tags are in the arena. */
enum prony_status names_load(struct store *store, int64_t run, struct arena *arena,
			     struct run_meta *meta, struct error *err);

/* Inserts a run with this uid; else like store_run_begin. */
enum prony_status run_insert(struct store *store, const char uid[33], struct run_meta *meta,
			     struct error *err);
/* Loads the parts of a run into the arena. */
enum prony_status parts_load(struct store *store, int64_t run, struct arena *arena,
			     struct run_meta *meta, struct error *err);
/* Makes the row of a run follow from its parts: the machine is that of the first, and the run is
 * finished when all are. */
enum prony_status parts_settle(struct store *store, int64_t run, struct error *err);

/* Checks that a run copied from another store in this transaction holds only values that prony
 * writes; PRONY_BAD_INPUT names the first bad column. */
enum prony_status validate_run(struct store *store, int64_t id, struct error *err);

/* Columns of the current row. */
const char *sql_text(sqlite3_stmt *statement, int column); /* "" for NULL */
int64_t sql_integer(sqlite3_stmt *statement, int column);  /* RECORD_NONE for NULL */
void sql_copy(sqlite3_stmt *statement, int column, char *out, size_t out_bytes);

#endif
