/* Losses that were read on the way through a window: one more series of the process. */
#ifndef PRONY_RUN_LOSS_SERIES_H
#define PRONY_RUN_LOSS_SERIES_H

#include "base/error.h"
#include "samples/record.h"

/* Adds a loss, read after the step that ended then. `losses` begins as zeros. */
enum prony_status loss_series_add(struct series *losses, int64_t end_ns, double loss,
				  struct error *err);

/* Gives the losses, if there are any, to the record, behind its sensors; `losses` is empty then. */
void loss_series_keep(struct series *losses, struct process_record *record);

#endif
