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

/* Opens a store and creates it, with its folder, if needed. NULL path: DATA/prony.db. Uses WAL (a
 * rollback journal on network file systems), synchronous FULL and a busy timeout of 10 s.
 * PRONY_STORE names file and remedy for a file that cannot be written, is not SQLite, or belongs to
 * a newer prony. An older schema is migrated in a transaction. read_only needs no write permission;
 * PRONY_BAD_INPUT when there is no file. */
enum prony_status store_open(const char *path, bool read_only, struct store **out,
			     struct error *err);
void store_close(struct store *store);

/* The file of a store: `path`, or the default path for NULL; the caller frees it. */
char *store_file(const char *path);

/* From now on, readers of this store, which was opened read_only, get no host names ("machine 1"
 * instead), users, command lines and absolute paths. Names and tags of runs stay. */
enum prony_status store_make_public(struct store *store, struct error *err);

#define RUN_WORD_BYTES 64 /* of a name or a tag, with terminator */

#define RUN_PARTS_MAX 4096

/* A part of a run that is measured in several: whole tables of the run, on one machine. */
struct run_part {
	int64_t part, parts;	  /* number, from 1; number of all */
	int64_t cells;		  /* of the whole run */
	int64_t finished_wall_ns; /* RECORD_NONE while the part is unfinished */
	const char *environment;  /* as in run_meta, of the part's machine */
	char environment_hash[17];
	char host[64], node[64];
};

struct run_meta {
	int64_t id;
	char uid[33]; /* stays the same when the run is imported elsewhere; random without parts */
	char name[RUN_WORD_BYTES]; /* unique; "" = none */
	const char *tags;	   /* alphabetical, comma-separated; "" or NULL = none */
	char suite[64];
	char version[32]; /* version of prony */
	char effort[16];
	int64_t seed;
	int64_t started_wall_ns,
		finished_wall_ns; /* finished is RECORD_NONE while the run is unfinished */
	char statistic[16];
	const char *spec;	 /* canonical text of the spec */
	const char *command;	 /* command line */
	const char *environment; /* JSON text of the machine record */
	char environment_hash[17];
	char host[64];
	struct run_part *parts; /* those that are here, by number; NULL for a run without */
	size_t part_count;
	char node[64]; /* as the job's batch system calls the machine; "" = none; only when loaded
			*/
};

/* Everything written between the two is one transaction. A `status` other than PRONY_OK rolls it
 * back. */
enum prony_status store_batch_begin(struct store *store, struct error *err);
enum prony_status store_batch_end(struct store *store, enum prony_status status, struct error *err);

/*
 * Inserts a run with its name and sets meta->id and uid. PRONY_USAGE when another run has the name.
 */
enum prony_status store_run_begin(struct store *store, struct run_meta *meta, struct error *err);
enum prony_status store_run_finish(struct store *store, int64_t run, int64_t wall_ns,
				   struct error *err);

enum part_begun {
	PART_BEGINS,
	PART_CONTINUES, /* it was begun, perhaps finished */
	PART_RESTARTS	/* it was begun on another machine, so its results were removed */
};
/* Opens a part of the run meta->uid, with the machine of `meta`, and sets meta->id; makes the run
 * unless another part of it is here. Without `resume`, PRONY_USAGE when the part is here. */
enum prony_status store_part_begin(struct store *store, struct run_meta *meta,
				   const struct run_part *part, bool resume, enum part_begun *begun,
				   struct error *err);
/* Marks the cells that belong to no part yet as those of this part. */
enum prony_status store_part_cells(struct store *store, int64_t run, int64_t part,
				   struct error *err);
/* Finishes a part, and with the last one the run. */
enum prony_status store_part_finish(struct store *store, int64_t run, int64_t part, int64_t wall_ns,
				    struct error *err);

/* The newest unfinished run without parts that has this canonical spec and environment hash;
 * PRONY_MISSING if there is none. */
enum prony_status store_run_unfinished(struct store *store, const char *spec,
				       const char *environment_hash, int64_t *run,
				       struct error *err);

/* Adds a cell to a run, or finds it by hash. */
enum prony_status store_cell(struct store *store, int64_t run, const struct cell *cell, int64_t *id,
			     struct error *err);

enum prony_status store_cell_status(struct store *store, int64_t cell, enum cell_status status,
				    unsigned flags, const char *reason, struct error *err);

/* Stores origin and identity of the framework from its first hello; later calls change nothing.
 * `details` is JSON: version, libraries, origin, settings, instruction_set, notes. */
enum prony_status store_cell_framework(struct store *store, int64_t cell, const json_t *details,
				       struct error *err);

/* Stores the gate's verdict and log; `evidence` is the JSON of gate_compare or of its failure. */
enum prony_status store_gate(struct store *store, int64_t cell, enum cell_status verdict,
			     const json_t *evidence, const char *log, struct error *err);

/* Stores the record, its intervals, log and series in one transaction. PRONY_STORE when the
 * replicate exists already: nothing is stored twice. */
enum prony_status store_process(struct store *store, int64_t cell,
				const struct process_record *record, struct error *err);

struct stored_cell {
	int64_t id;
	struct cell cell;
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];
	int64_t part; /* of the run; 0 = of none */
	enum cell_status status;
	unsigned flags;
	const char *reason;
	json_t *framework; /* details JSON; NULL before the first hello */
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
	size_t damaged; /* processes whose damaged intervals or series were left out */
};

/* Large parts that are loaded only on request. */
enum store_part {
	STORE_INTERVALS = 1,
	STORE_LOGS = 2,
	STORE_SERIES = 4,
	STORE_CHECKS = 8, /* with the individual figures of the gate's evidence */
	STORE_ALL = 15,
	/* Leaves out intervals and series that are damaged and counts them, instead of failing. */
	STORE_FORGIVES = 16
};

/* Loads a run. `which` names it, in every command: "" or "latest" = the newest, "latest~2" = two
 * before it; a name; a number; or a prefix of a uid of at least four digits (eight if they are all
 * decimal). PRONY_BAD_INPUT when no run or several match. `parts`: bits of enum store_part, or 0.
 */
enum prony_status store_load_run(struct store *store, const char *which, unsigned parts,
				 struct stored_run *out, struct error *err);
void stored_run_release(struct stored_run *run);

/* Reads a run piece by piece, for callers that do not want it all in memory. It sees one snapshot
 * until it is closed (NULL is fine). Opening takes the arguments of store_load_run. */
struct store_reader;
enum prony_status store_reader_open(struct store *store, const char *which, unsigned parts,
				    struct store_reader **out, struct error *err);
void store_reader_close(struct store_reader *reader);
/* Calls back for each cell, in order of insertion. */
enum prony_status store_reader_cells(struct store_reader *reader,
				     void (*visit)(void *context, int64_t id,
						   const struct cell *cell),
				     void *context, struct error *err);
/* Loads these cells as a run that has no others; free it with stored_run_release. Its processes and
 * texts are valid until the next call. */
enum prony_status store_reader_load(struct store_reader *reader, const int64_t *cells, size_t count,
				    struct stored_run *out, struct error *err);

/* The number of processes in the run that `which` names. */
enum prony_status store_count_processes(struct store *store, const char *which, int64_t *count,
					struct error *err);

/* A run with the number of its cells and processes. */
struct run_extent {
	struct run_meta meta; /* spec, command, environment and tags are NULL, except in a list */
	int64_t cells, ok, processes;
};

/* Finds the run to change or delete, like store_load_run but stricter: no default to the newest,
 * and PRONY_BAD_INPUT when the word could mean several runs, for example one by number and another
 * by uid. Reads only its row, because the rest may be damaged. */
enum prony_status store_find_run(struct store *store, const char *which, struct run_extent *out,
				 struct error *err);

/* Lists the runs with `tag` (NULL: all), newest first; list and texts are in the arena. */
enum prony_status store_list_runs(struct store *store, const char *tag, struct arena *arena,
				  struct run_extent **out, size_t *count, struct error *err);

/* Checks a name: a letter, then letters, digits and ". _ + -", at most 63 characters, and not a
 * word that could be a uid or "latest". A tag may also begin with a digit. PRONY_USAGE says what is
 * wrong. */
enum prony_status run_name_check(const char *name, struct error *err);
enum prony_status run_tag_check(const char *tag, struct error *err);

/* Names a run; "" removes the name. If another run has the name: with `take` it loses it, otherwise
 * PRONY_USAGE. */
enum prony_status store_run_name(struct store *store, int64_t run, const char *name, bool take,
				 struct error *err);
enum prony_status store_run_tag(struct store *store, int64_t run, const char *tag,
				struct error *err);
/* PRONY_BAD_INPUT when the run does not have the tag. */
enum prony_status store_run_untag(struct store *store, int64_t run, const char *tag,
				  struct error *err);

/* A cell that occurs in some runs. */
struct cell_name {
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];
	int64_t runs;
};

/* Lists the distinct cells of all runs, those of the newest run first; in the arena. */
enum prony_status store_list_cells(struct store *store, struct arena *arena, struct cell_name **out,
				   size_t *count, struct error *err);

/* Lists the places of the runs with a cell, in the arena: their nodes, and for the runs without one
 * their hosts (`hosts`) or "". */
enum prony_status store_list_places(struct store *store, const char *hash, bool hosts,
				    struct arena *arena, const char ***out, size_t *count,
				    struct error *err);

struct history_request {
	const char *hash;  /* of the cell */
	const char *place; /* one of store_list_places; NULL: any */
	bool hosts;	   /* as there */
	int64_t until;	   /* the newest run, by its id; 0: the newest of all */
	size_t most;	   /* runs, the last of them */
};

/* Loads runs that contain a cell, oldest first, each with only that cell and its figures. The
 * caller releases each run, then frees *out. */
enum prony_status store_load_history(struct store *store, const struct history_request *request,
				     struct stored_run **out, size_t *count, struct error *err);

/* Deletes runs with everything that belongs to them; all or none. */
enum prony_status store_delete_runs(struct store *store, const int64_t *runs, size_t count,
				    struct error *err);

/* Returns the space of deleted data to the file system by rewriting the file. *bytes: how much
 * smaller it became. */
enum prony_status store_compact(struct store *store, int64_t *bytes, struct error *err);

struct store_imported {
	int runs;	 /* that were not here */
	int64_t cells;	 /* added to runs that were here, from other parts or further ones */
	int64_t present; /* of parts that are here, not copied */
	int64_t doubled; /* not copied, because another part of the run has them */
};

/* Copies every run of another store that is not here yet (by uid), one transaction per run. Of a
 * run in parts that is here, the parts that are not, and those that are further there. A run with a
 * value that prony never writes is skipped; after the others were copied, PRONY_BAD_INPUT names the
 * first such run. *imported is set whenever the other store could be read. */
enum prony_status store_import(struct store *store, const char *other_path,
			       struct store_imported *imported, struct error *err);

#endif
