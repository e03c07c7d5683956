/* `prony run --baseline NAME`: a run as a gate against an earlier one. */
#ifndef PRONY_CLI_RUN_BASELINE_H
#define PRONY_CLI_RUN_BASELINE_H

#include "cli/run_job.h"

/* What is wrong with the options that name runs, before anything else is done. */
enum prony_status baseline_check_options(const struct run_options *options, struct error *err);

/* Loads the baseline, if one is asked for, and makes sure, before anything is measured, that it can
 * be compared with what will be: a cell in common, and the same machine. */
enum prony_status baseline_load(struct job *job, struct error *err);
/* After the run has its number: fails where the baseline is the run that --resume continues. */
enum prony_status baseline_is_older(const struct job *job, struct error *err);
void baseline_release(struct job *job);

/* Compares the finished run with the baseline: prints, or adds the member "comparison" to `json`.
 * Sets job->slower and job->broken. */
enum prony_status baseline_compare(struct job *job, const struct stored_run *run, json_t *json,
				   struct error *err);

/* --save-baseline: gives the run its name, taken from the run that had it. Not where `failed`, or
 * where something is slower. */
enum prony_status baseline_save(struct job *job, bool failed, struct error *err);

#endif
