/* Processes many stored samples in parallel. */
#ifndef PRONY_DATASETS_RECORDS_H
#define PRONY_DATASETS_RECORDS_H

#include "datasets/format.h"
#include "datasets/image.h"

/* Decodes a record through the view, whose height and width are not 0. Pixels of the right size are
 * only copied. */
enum prony_status record_decode(const struct data_record *record, const struct image_view *view,
				uint8_t *planes, struct error *err);

/* Calls `work` for items 0 to count - 1 on one thread per core; each item has its own error.
 * Afterwards err holds the error of the first failed item. Each thread reuses its record for all
 * its items. */
enum prony_status records_each(int64_t count,
			       enum prony_status (*work)(void *context, int64_t item,
							 struct data_record *record,
							 struct error *err),
			       void *context, struct error *err);

#endif
