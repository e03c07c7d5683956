/* The parts or nodes of a batch: which stores are here, which tasks are in the queue. */
#ifndef PRONY_CLI_BATCH_UNITS_H
#define PRONY_CLI_BATCH_UNITS_H

#include "base/arena.h"
#include "base/options.h"
#include "spec/spec.h"

enum unit_state {
	UNIT_MISSING,
	UNIT_PARTLY, /* its store is here, not finished, and no task is in the queue */
	UNIT_QUEUED, /* its task waits or runs */
	UNIT_HERE    /* its store is here, finished */
};

struct unit {
	const char *name; /* "3", or the node */
	enum unit_state state;
	bool submitted; /* by this command */
};

/* A job of a batch, a line of FOLDER/jobs: its id, and the node if it is of one. */
struct unit_job {
	int64_t id;
	const char *node;
};

struct units {
	struct arena arena;
	const char *folder;
	const struct spec *spec;
	int parts; /* 0: of nodes */
	struct unit *at;
	size_t count, capacity;
	struct unit_job *jobs; /* the first one's id is that of the run */
	size_t job_count, job_capacity;
};

/* Reads FOLDER/jobs and makes the units of `parts`, or those of the nodes in FOLDER/jobs. The texts
 * are borrowed. */
enum prony_status units_init(struct units *units, const char *folder, const struct spec *spec,
			     int parts, struct error *err);
void units_release(struct units *units);
/* Adds a unit for each idle node, of the partition that the options of sbatch name. */
enum prony_status units_find_nodes(struct units *units, const struct option_list *options,
				   struct error *err);
/* Finds the state of each unit. PRONY_BAD_INPUT when a store in the folder is of another run. */
enum prony_status units_look(struct units *units, struct error *err);
size_t units_in(const struct units *units, enum unit_state state);

/* Adds a job to FOLDER/jobs: of a node, or (NULL) of all parts that are missing. They are then
 * queued. */
enum prony_status units_submitted(struct units *units, int64_t job, struct unit *node,
				  struct error *err);
/* The id that the parts share: that of the first job; 0: there is none. */
int64_t units_run_id(const struct units *units);
void units_uid(const struct units *units, char uid[33]);
/* The caller frees it. */
char *units_store(const struct units *units, const struct unit *unit);

#endif
