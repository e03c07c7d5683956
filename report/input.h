/* Private to report/: where the time of a step goes whose batches arrive. */
#ifndef PRONY_REPORT_INPUT_H
#define PRONY_REPORT_INPUT_H

#include "report/summary.h"

/* ns of a step, together its typical step; 0: nothing of it. */
struct input_split {
	double computing; /* as with resident batches, where that differs; else the rest */
	double slowed; /* computing took so much longer beside the loader, if intervals tell it */
	double copying;
	/* Waiting, in proportion to what prony's loader spends on a batch; of others' loaders that
	 * is not known. */
	double storage, decoding, loader;
};

/* False where no batches arrive, or nothing says how long they took. */
bool input_split(const struct summary *summary, const struct summary_row *row,
		 struct input_split *split);

#endif
