/*
 * Shared by the files of `prony run`: the state of a run, from its options to its row in the store.
 */
#ifndef PRONY_CLI_RUN_JOB_H
#define PRONY_CLI_RUN_JOB_H

#include "cli/progress.h"
#include "cli/selection.h"
#include "study/study.h"

/* The whole state of one `prony run`. */
struct job {
	const struct run_options *options;
	struct selection selection;
	int lock_fd; /* of the machine's lock; -1: not taken */
	struct store *store;
	struct run_meta meta;
	struct run_part part; /* of --part; part 0: none */
	struct study study;
	struct time_left left;
	struct progress progress;
	json_t *machine;
	json_t *program;	    /* which prony this is: build, sha256, libraries; made once */
	struct stored_run baseline; /* the run that --baseline names */
	bool baseline_loaded;
	int gate;	  /* enum compare_exit of the comparison with it; 0 without one */
	bool improved;	  /* a cell is FASTER than in the baseline */
	unsigned allowed; /* enum run_allow */
};

/* Removes from the machine's record the environment variables that prony sets for each worker (the
 * number of threads), because no worker sees their values. */
void job_drop_replaced(struct job *job);

/* Opens the run in the store: a new one, or with --resume the newest unfinished one of the same
 * kind. Stores `argv` with it as the command. */
enum prony_status job_begin_run(struct job *job, int argc, char **argv, struct error *err);

#endif
