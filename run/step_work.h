/* The work of decode steps: positions, and a prompt for the gate. */
#ifndef PRONY_RUN_STEP_WORK_H
#define PRONY_RUN_STEP_WORK_H

#include "run/workload.h"

/* Decode: sets the position of each batch, behind the prompt and the batches before it. */
void step_work_positions(const struct network *network, const struct graph *graph,
			 struct tensor_set *inputs);

/* Makes the gate's decode steps continue a prompt: sets their tokens and positions. */
enum prony_status step_work_gate(struct workload *work, struct error *err);
/* Runs the reference on the prompt and the tokens behind it, if the stage is decode and it was not
 * done: sets the caches among the gate's weights and work->prefix_logits. */
enum prony_status step_work_prefix(struct workload *work, struct error *err);
/* PRONY_INTERNAL if the reference's decode steps differ from its forward pass of the whole. */
enum prony_status step_work_check(const struct workload *work, struct error *err);

#endif
