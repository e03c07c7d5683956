/* What the files of `prony run` share: the run, from its options to its row in the store. */
#ifndef PRONY_CLI_RUN_JOB_H
#define PRONY_CLI_RUN_JOB_H

#include "cli/progress.h"
#include "cli/selection.h"
#include "study/study.h"

/* Everything of one `prony run`. */
struct job {
	const struct run_options *options;
	struct selection selection;
	int lock_fd; /* the machine's; -1: not taken */
	struct store *store;
	struct run_meta meta;
	struct study study;
	struct time_left left;
	struct progress progress;
	json_t *machine;
	struct stored_run baseline; /* what --baseline names */
	bool baseline_loaded;
	bool slower; /* than the baseline, a cell of it */
	bool broken; /* a cell that is ok in the baseline is not in this run */
};

/* Removes from the machine's record the environment variables that no worker sees, because prony
 * sets them for each (the number of threads). */
void job_drop_replaced(struct job *job);

/* Opens the run in the store: a new one, or with --resume the newest unfinished one of the same
 * kind. `argv` is kept with it as the command. */
enum prony_status job_begin_run(struct job *job, int argc, char **argv, struct error *err);

#endif
