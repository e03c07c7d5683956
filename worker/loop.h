/* The timed loop: the only code that runs inside a measured window. */
#ifndef PRONY_WORKER_LOOP_H
#define PRONY_WORKER_LOOP_H

#include <stdint.h>

#include "adapters/adapter.h"
#include "samples/protocol.h"
#include "worker/own_loader.h"
#include "worker/ring.h"

struct loop_plan {
	int64_t steps; /* at least 1 */
	int64_t every; /* steps between synchronisations, 1 .. steps */
	int slot;      /* of the first step */
	int slots;     /* step i works on (slot + i) mod slots */
	/* The source of arriving batches, one for each step; if both are NULL, batches are
	 * resident. */
	struct ring *ring;
	struct own_loader *own;
};

/* Returns the number of records of a plan: ceil(steps / every). */
int64_t loop_records(const struct loop_plan *plan);

/* Waits for issued work, then runs the steps and fills records[0 .. loop_records(plan) - 1], which
 * the caller has allocated and touched. Between the first and the last instant it calls only the
 * adapter's step and sync and the clock; for arriving batches also the functions that take them
 * (worker/ring.h, worker/own_loader.h). Stops at the first error. */
enum prony_status loop_run(const struct adapter *adapter, struct session *session,
			   const struct loop_plan *plan, struct step_record *records,
			   struct error *err);

#endif
