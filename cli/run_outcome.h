/* The exit code of `prony run`, and what --allow accepts. */
#ifndef PRONY_CLI_RUN_OUTCOME_H
#define PRONY_CLI_RUN_OUTCOME_H

#include "cli/run_job.h"

/* Bits of job->allowed, in the order of run_allow_words. */
enum run_allow { RUN_ALLOW_INCONCLUSIVE = 1, RUN_ALLOW_UNSUPPORTED = 2 };

/* Sets the bits of the words of --allow, which may be lists with commas. */
enum prony_status run_allow_parse(const struct option_list *list, unsigned *allowed,
				  struct error *err);

/* Whether a cell requested by name is not ok, or no cell is; then prints which. */
bool run_has_failed(const struct job *job);

/* The exit code of a run that was completed; `failed`: of run_has_failed. */
int run_exit(const struct job *job, bool failed);

#endif
