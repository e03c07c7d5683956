/* Evaluates a training between its timed steps. The float64 reference computes all evaluation
 * samples of the data set with the weights that the worker holds, so every framework is judged by
 * the same program, and none needs code for it. */
#ifndef PRONY_RUN_EVALUATION_H
#define PRONY_RUN_EVALUATION_H

#include "run/team.h"
#include "samples/record.h"

struct evaluation;

/* Opens the evaluation samples of the launch's cell, and notes seed and target in the record. *out
 * is NULL unless the cell has a target; borrows the launch. Call evaluation_close in any case. */
enum prony_status evaluation_open(const struct launch *launch, struct process_record *record,
				  struct evaluation **out, struct error *err);

/* Reads weights and running statistics of rank 0 and appends the accuracy or loss to the record's
 * target_curve; sets its target_steps to `steps`, those so far, if the target is reached.
 * PRONY_INVALID when the loss is not finite. */
enum prony_status evaluation_run(struct evaluation *evaluation, struct team *team, int64_t steps,
				 struct process_record *record, struct error *err);

/* Drops those figures of the sensors that would hold for steps and evaluations together. */
void evaluation_drop_figures(struct process_record *record);

void evaluation_close(struct evaluation *evaluation);

#endif
