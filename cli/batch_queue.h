/* Slurm's commands, as `prony batch` uses them: sbatch, squeue, sinfo. No accounting is needed. */
#ifndef PRONY_CLI_BATCH_QUEUE_H
#define PRONY_CLI_BATCH_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Runs a command and returns its output, which the caller frees. PRONY_MISSING when it is not here,
 * PRONY_IO with its words when it fails, PRONY_INTERRUPTED. */
enum prony_status queue_command(const char *const *argv, char **output, struct error *err);

/* Submits a script with further options of sbatch; *job: its id. */
enum prony_status queue_submit(const char *script, const char *const *options, size_t count,
			       int64_t *job, struct error *err);

/* Calls back for each task of the user that waits or runs: the id of its array job, or of its job,
 * and its index (-1: it is not of an array). */
enum prony_status queue_tasks(void (*visit)(void *context, int64_t job, int64_t index),
			      void *context, struct error *err);

#endif
