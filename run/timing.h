/* One timed process of a cell: first step, warm-up, window. */
#ifndef PRONY_RUN_TIMING_H
#define PRONY_RUN_TIMING_H

#include "run/team.h"

/* Runs one replicate of a cell. The record is filled in any case; its status and error tell how the
 * process ended. The caller initialises and releases it. *flags may get not-steady, few-steps,
 * disturbed and waits. The return value is an error only if the harness failed or the user
 * interrupted (then the record is not to be stored). *details (new reference, may become NULL) is
 * the worker's own description. */
enum prony_status timing_run(const struct launch *launch, struct process_record *record,
			     unsigned *flags, json_t **details, struct error *err);

#endif
