/* Steps on batches that the framework's own data loader makes (input native). */
#ifndef PRONY_WORKER_OWN_LOADER_H
#define PRONY_WORKER_OWN_LOADER_H

#include <stdbool.h>

#include "adapters/adapter.h"

struct own_loader {
	bool only_load;		  /* the stage load: a step only takes its batch */
	int64_t wait_ns, copy_ns; /* since own_loader_begin */
};

void own_loader_begin(struct own_loader *own);

/* Waits for the next batch, makes it resident in the slot and issues the step. Adds three readings
 * of the clock. */
enum prony_status own_loader_step(struct own_loader *own, const struct adapter *adapter,
				  struct session *session, int slot, struct error *err);

#endif
