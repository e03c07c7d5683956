/* The losses that were read during a window, as one more series of the process. */
#ifndef PRONY_RUN_LOSS_SERIES_H
#define PRONY_RUN_LOSS_SERIES_H

#include "base/error.h"
#include "samples/record.h"

/* Adds a loss that was read after the step that ended at this time. `losses` begins as zeros. */
enum prony_status loss_series_add(struct series *losses, int64_t end_ns, double loss,
				  struct error *err);

/* Moves the losses, if there are any, into the record, after its sensors; `losses` is empty
 * afterwards. */
void loss_series_keep(struct series *losses, struct process_record *record);

#endif
