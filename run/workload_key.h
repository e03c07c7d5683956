/* What is known of a cell's work before it is made. */
#ifndef PRONY_RUN_WORKLOAD_KEY_H
#define PRONY_RUN_WORKLOAD_KEY_H

#include "plan/plan.h"

/* Writes the key that cells of the same work share: without framework, loop and synchronisation. */
void workload_key(const struct plan_cell *cell, char key[CELL_KEY_BYTES]);

/* Returns roughly how many multiplications the gate's reference takes, from the network alone; 0 if
 * there is none. */
double workload_reference_macs(const struct plan_cell *cell);

#endif
