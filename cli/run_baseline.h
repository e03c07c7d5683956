/* `prony run --baseline NAME`: compares a run with an earlier one, as a regression gate. */
#ifndef PRONY_CLI_RUN_BASELINE_H
#define PRONY_CLI_RUN_BASELINE_H

#include "cli/run_job.h"

/* Checks the options that name runs, before any other work. */
enum prony_status baseline_check_options(const struct run_options *options, unsigned allowed,
					 struct error *err);

/* Loads the baseline, if one is given. Checks before any measurement that it can be compared with
 * the run: a common cell and the same machine. There may be no such run if --save-baseline has the
 * same name: then this run is the first, and nothing is loaded. */
enum prony_status baseline_load(struct job *job, struct error *err);
/* Called when the run has its number: fails if the baseline is the run that --resume continues. */
enum prony_status baseline_is_older(const struct job *job, struct error *err);
void baseline_release(struct job *job);

/* Compares the finished run with the baseline: prints the result, or adds the member "comparison"
 * to `json`. Sets job->gate and job->improved. */
enum prony_status baseline_compare(struct job *job, const struct stored_run *run, json_t *json,
				   struct error *err);

/* Carries out --save-baseline: moves the name to this run from the run that had it. Prints why not
 * if `failed`, or if the comparison has a cell that is slower, undecided or no longer ok. If the
 * name is that of the baseline, it also stays there while no cell is FASTER: otherwise each run
 * would be compared with the one before, and many small slowdowns would never be found. */
enum prony_status baseline_save(struct job *job, bool failed, struct error *err);

#endif
