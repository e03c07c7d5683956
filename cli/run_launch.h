/* `prony run --launch`: a part of the run on each of several nodes, by a prony agent there. */
#ifndef PRONY_CLI_RUN_LAUNCH_H
#define PRONY_CLI_RUN_LAUNCH_H

#include "cli/cli.h"
#include "cli/run_job.h"

/* Checks --launch and its options, and what cannot be used with them. PRONY_USAGE. */
enum prony_status run_launch_check(const struct run_options *options, const struct cli_call *call,
				   struct error *err);

/* Measures the job's plan on the nodes, and imports what they send into the job's store, which it
 * opens. Sets the job's run (id 0: there is none) unless each node measured a run of its own.
 * *exit_code: 1 when a node failed or its cells did. With --dry-run only prints the parts. */
enum prony_status run_launch(struct job *job, const struct cli_call *call, int *exit_code,
			     struct error *err);

#endif
