/* The work of a cell whose network is a user's file as it is: seeded inputs, and a bundle. */
#ifndef PRONY_RUN_MODEL_WORK_H
#define PRONY_RUN_MODEL_WORK_H

#include "run/workload.h"

/* Fills work->model and work->inputs: those of slot 0, of slot 1, ... in the types that the file
 * declares. Floating point: normal; integers 0 to 9; bool, which is U8 here, with it. */
enum prony_status model_work_init(struct workload *work, const struct plan_cell *cell,
				  uint64_t seed, struct error *err);

enum prony_status model_work_write_bundle(const struct workload *work, const struct plan_cell *cell,
					  const char *folder, struct error *err);

#endif
