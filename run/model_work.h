/* The work of a cell that runs a model file unchanged: random inputs and a bundle. */
#ifndef PRONY_RUN_MODEL_WORK_H
#define PRONY_RUN_MODEL_WORK_H

#include "run/workload.h"

/* Slots with batches of their own. In a quantised file the slots behind them repeat these batches
 * with noise (parity/agreement.h). */
#define MODEL_BATCHES GATE_UPDATES

bool model_work_is_quantised(const struct plan_cell *cell);

/* Fills work->model and work->inputs: first the inputs of slot 0, then those of slot 1 and so on,
 * in the file's types, filled as the user gave or as their names say. Otherwise real numbers are
 * normally distributed, integers are rows of the table that they index or 0 to 9, and U8 (also
 * bool) is 0 or 1. */
enum prony_status model_work_init(struct workload *work, const struct plan_cell *cell,
				  uint64_t seed, struct error *err);

enum prony_status model_work_write_bundle(const struct workload *work, const struct plan_cell *cell,
					  const char *folder, struct error *err);

#endif
