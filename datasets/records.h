/* What is done with many stored samples at once, by all cores. */
#ifndef PRONY_DATASETS_RECORDS_H
#define PRONY_DATASETS_RECORDS_H

#include "datasets/format.h"
#include "datasets/image.h"

/* The planes of a record through the view, whose height and width are not 0, unless the record is
 * pixels of the right size already. */
enum prony_status record_decode(const struct data_record *record, const struct image_view *view,
				uint8_t *planes, struct error *err);

/*
 * Works on items 0 to count - 1, on so many threads as there are cores; each item has its own
 * error. Afterwards the error of the first that failed, in the order of the items, is in err.
 * `work` gets a record that the thread keeps from item to item.
 */
enum prony_status records_each(int64_t count,
			       enum prony_status (*work)(void *context, int64_t item,
							 struct data_record *record,
							 struct error *err),
			       void *context, struct error *err);

#endif
