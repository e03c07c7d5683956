/*
 * The split of a step with loaded batches into computing, copying and waiting; private to report/.
 */
#ifndef PRONY_REPORT_INPUT_H
#define PRONY_REPORT_INPUT_H

#include "report/summary.h"

/* Parts of a step in ns; their sum is its typical step. 0: no time in this part. */
struct input_split {
	double computing; /* as with resident batches, if it differs; else the remainder */
	double slowed;	  /* extra computing time beside the loader, if the intervals prove it */
	double copying;
	/* Waiting, divided in proportion to the time that prony's loader spends on a batch. For
	 * other loaders these times are unknown, and all waiting is `loader`. */
	double storage, decoding, loader;
};

/* Returns false if no batches are loaded, or their time is unknown. */
bool input_split(const struct summary *summary, const struct summary_row *row,
		 struct input_split *split);

#endif
