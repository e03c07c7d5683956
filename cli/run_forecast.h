/* What is known of a run before it begins, as a forecast of how long it takes. */
#ifndef PRONY_CLI_RUN_FORECAST_H
#define PRONY_CLI_RUN_FORECAST_H

#include "cli/run_job.h"

/* From the plan alone: multiplications, how frameworks start, the effort. After make_plan. */
void run_forecast_plan(struct job *job, struct forecast *out);

/* What the store knows of earlier processes of the same cells on this machine. */
void run_forecast_history(const struct job *job, struct store *store, struct forecast *f);

/* Takes over what the store had of a resumed run. */
void run_forecast_resume(const struct job *job, struct forecast *f);

/* "4 cells, default effort: 20 to 48 processes, 6 to 28 min" */
void run_forecast_text(const struct job *job, const struct forecast *f, char *out,
		       size_t out_bytes);

#endif
