/* The only SQLite code: runs, cells, processes, their environment (docs/store.md). */
#ifndef PRONY_STORE_STORE_H
#define PRONY_STORE_STORE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "cell/cell.h"
#include "samples/record.h"

#define STORE_SCHEMA 1

struct store;

/*
 * Opens (and makes, with its folder) a store. NULL path: DATA/prony.db. WAL (a rollback journal on
 * network file systems), synchronous FULL, busy timeout 10 s. PRONY_STORE names file and remedy for
 * one that cannot be written, is no SQLite file, or was written by a newer prony; an older schema
 * is migrated in a transaction. read_only needs no right to write; PRONY_BAD_INPUT when nothing is
 * there.
 */
enum prony_status store_open(const char *path, bool read_only, struct store **out,
			     struct error *err);
void store_close(struct store *store);

/* The file of a store: `path`, or the default's for NULL; caller frees. */
char *store_file(const char *path);

#define RUN_WORD_BYTES 64 /* of a name or a tag, with its end */

struct run_meta {
	int64_t id;
	char uid[33];		   /* random; the same in every store it is imported into */
	char name[RUN_WORD_BYTES]; /* one run's only; "" = none */
	const char *tags;	   /* in alphabetical order, with commas; "" = none; NULL as "" */
	char suite[64];
	char version[32]; /* of prony */
	char effort[16];
	int64_t seed;
	int64_t started_wall_ns, finished_wall_ns; /* finished RECORD_NONE while unfinished */
	char statistic[16];
	const char *spec;	 /* canonical text */
	const char *command;	 /* command line */
	const char *environment; /* JSON text of the machine record */
	char environment_hash[17];
	char host[64];
};

/* What is written between the two is one transaction; `status`: the outcome so far, not PRONY_OK
 * takes all of it back. */
enum prony_status store_batch_begin(struct store *store, struct error *err);
enum prony_status store_batch_end(struct store *store, enum prony_status status, struct error *err);

/* Inserts a run with its name and sets meta->id and uid. PRONY_USAGE for a name that another run
 * has. */
enum prony_status store_run_begin(struct store *store, struct run_meta *meta, struct error *err);
enum prony_status store_run_finish(struct store *store, int64_t run, int64_t wall_ns,
				   struct error *err);

/* The newest unfinished run with this canonical spec and environment hash; PRONY_MISSING if none.
 */
enum prony_status store_run_unfinished(struct store *store, const char *spec,
				       const char *environment_hash, int64_t *run,
				       struct error *err);

/* Adds a cell to a run, or finds it by hash. */
enum prony_status store_cell(struct store *store, int64_t run, const struct cell *cell, int64_t *id,
			     struct error *err);

enum prony_status store_cell_status(struct store *store, int64_t cell, enum cell_status status,
				    unsigned flags, const char *reason, struct error *err);

/* Where the framework came from and what it is, from its first hello: later ones change nothing.
 * `details` JSON: version, libraries, origin, settings, instruction_set, notes. */
enum prony_status store_cell_framework(struct store *store, int64_t cell, const json_t *details,
				       struct error *err);

/* Stores the gate's verdict and its log; evidence is the JSON of gate_compare or of its failure. */
enum prony_status store_gate(struct store *store, int64_t cell, enum cell_status verdict,
			     const json_t *evidence, const char *log, struct error *err);

/* One transaction: the record, its intervals, its log, its series. A replicate that is already
 * there is PRONY_STORE: nothing is stored twice. */
enum prony_status store_process(struct store *store, int64_t cell,
				const struct process_record *record, struct error *err);

struct stored_cell {
	int64_t id;
	struct cell cell;
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];
	enum cell_status status;
	unsigned flags;
	const char *reason;
	json_t *framework; /* details; NULL before the first hello */
	json_t *evidence;  /* of the gate; NULL when it did not run */
	enum cell_status gate;
	const char *gate_log;
	struct process_record *processes; /* in order of replicate */
	size_t process_count;
};

struct stored_run {
	struct arena arena;
	struct run_meta meta;
	struct stored_cell *cells; /* in order of insertion */
	size_t cell_count;
};

/* What is large and loaded only when wanted. */
enum store_part {
	STORE_INTERVALS = 1,
	STORE_LOGS = 2,
	STORE_SERIES = 4,
	STORE_CHECKS = 8, /* of the gate's evidence: each of its figures */
	STORE_ALL = 15
};

/*
 * `which` names a run, in every command: "" or "latest" the newest, "latest~2" the second before
 * it; a name; a number; else at least four digits with which a uid begins, eight where they are
 * decimal and could be a number. PRONY_BAD_INPUT when there is none, or several. `parts`: those of
 * enum store_part, or 0.
 */
enum prony_status store_load_run(struct store *store, const char *which, unsigned parts,
				 struct stored_run *out, struct error *err);
void stored_run_release(struct stored_run *run);

/*
 * A run read in pieces, for one that nobody wants to hold: one snapshot until the reader is closed
 * (NULL is fine). Opening takes what store_load_run takes.
 */
struct store_reader;
enum prony_status store_reader_open(struct store *store, const char *which, unsigned parts,
				    struct store_reader **out, struct error *err);
void store_reader_close(struct store_reader *reader);
/* Calls back for each cell, in order of insertion. */
enum prony_status store_reader_cells(struct store_reader *reader,
				     void (*visit)(void *context, int64_t id,
						   const struct cell *cell),
				     void *context, struct error *err);
/* These cells, as a run that has no others; stored_run_release releases it. Its processes and texts
 * are good until the next call. */
enum prony_status store_reader_load(struct store_reader *reader, const int64_t *cells, size_t count,
				    struct stored_run *out, struct error *err);

/* How many processes the run has that `which` names, as store_load_run finds it. */
enum prony_status store_count_processes(struct store *store, const char *which, int64_t *count,
					struct error *err);

/* Over the newest good processes of a cell on a host: means, and within runs of that effort the
 * standard deviation of their steps' logarithms. */
struct store_times {
	int64_t processes; /* 0: there are none */
	double start_ns;   /* of a process beside warm-up and window */
	double step_ns;
	double warm_up_ns; /* of runs of the effort; 0: there are none */
	double spread;	   /* likewise; 0: no run has two */
};
enum prony_status store_times(struct store *store, const char *hash, const char *host,
			      const char *effort, struct store_times *out, struct error *err);

/* A run, and how much belongs to it. */
struct run_extent {
	struct run_meta meta; /* spec, command, environment, tags NULL, but in a list */
	int64_t cells, ok, processes;
};

/*
 * The run that is to be changed or deleted: as store_load_run finds it, but never the newest for
 * want of a word, and PRONY_BAD_INPUT also when the word may mean several, be it one by its id and
 * another by its uid. Reads its row only: what belongs to it may be damaged.
 */
enum prony_status store_find_run(struct store *store, const char *which, struct run_extent *out,
				 struct error *err);

/* The runs that bear `tag` (NULL: all), the newest first; the list and its texts in the arena. */
enum prony_status store_list_runs(struct store *store, const char *tag, struct arena *arena,
				  struct run_extent **out, size_t *count, struct error *err);

/*
 * Whether a word can be a name: a letter, then letters, digits and ". _ + -", at most 63, no word
 * that could be taken for a uid or for "latest"; or a tag, which may also begin with a digit.
 * PRONY_USAGE says what is wrong.
 */
enum prony_status run_name_check(const char *name, struct error *err);
enum prony_status run_tag_check(const char *tag, struct error *err);

/* Gives a run a name; "" takes its name away. Where another run has it: `take` takes it from that
 * one, else PRONY_USAGE. */
enum prony_status store_run_name(struct store *store, int64_t run, const char *name, bool take,
				 struct error *err);
enum prony_status store_run_tag(struct store *store, int64_t run, const char *tag,
				struct error *err);
/* PRONY_BAD_INPUT when it does not bear it. */
enum prony_status store_run_untag(struct store *store, int64_t run, const char *tag,
				  struct error *err);

/* A cell that some runs have. */
struct cell_name {
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];
	int64_t runs;
};

/* The cells of all runs, each once, that of the newest run first; the list in the arena. */
enum prony_status store_list_cells(struct store *store, struct arena *arena, struct cell_name **out,
				   size_t *count, struct error *err);

/* The last `most` runs that have a cell, up to the run `until` (its id; 0: the newest of all), the
 * oldest first, each with that cell alone and its figures. The caller releases each run, then frees
 * *out. */
enum prony_status store_load_history(struct store *store, const char *hash, int64_t until,
				     size_t most, struct stored_run **out, size_t *count,
				     struct error *err);

/* Deletes runs with all that belongs to them, all or none. */
enum prony_status store_delete_runs(struct store *store, const int64_t *runs, size_t count,
				    struct error *err);

/* Gives the space of what was deleted back to the file system: writes the file anew. *bytes: how
 * much smaller it is. */
enum prony_status store_compact(struct store *store, int64_t *bytes, struct error *err);

/*
 * Copies every run of another store that is not here yet (by uid), one transaction a run. A run in
 * which a column holds what prony never writes is left out; if there are such, PRONY_BAD_INPUT
 * names the first, after the others were copied. *imported is set whenever the other store could be
 * read.
 */
enum prony_status store_import(struct store *store, const char *other_path, int *imported,
			       struct error *err);

#endif
