/* `prony run --part I/N`: the part's tables, and what identifies its run. */
#ifndef PRONY_CLI_RUN_PART_H
#define PRONY_CLI_RUN_PART_H

#include "cli/cli.h"
#include "cli/run_job.h"

/* Checks --part and --run-id, and what cannot be used with them. PRONY_USAGE. */
enum prony_status run_part_check(const struct run_options *options, struct error *err);

/* With --part: removes the cells of other parts from the job's plan, and sets job->part and the
 * run's uid. */
void run_part_take(struct job *job);

/* Returns the id of the array job of Slurm, PBS or LSF that this is a task of; "" if it is none.
 * The caller frees it. */
char *run_part_array_job(void);

/* Puts into `words` (room for call->argc) the words of a command that takes the options of `prony
 * run`, without the options of `own`: what another prony is to run. Returns their number. */
size_t run_words(const struct cli_call *call, const struct option *own, const char **words);

#endif
