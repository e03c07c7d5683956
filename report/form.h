/* Prints a run in the format of the benchmark that its suite repeats, computed from the stored
 * steps. */
#ifndef PRONY_REPORT_FORM_H
#define PRONY_REPORT_FORM_H

#include "base/strbuf.h"
#include "store/store.h"

/*
 * The first lines of the alexnet form, one for each layer: "conv1   [128, 56, 56, 64]". The caller
 * supplies them, because report/ does not know networks.
 */
struct form_layers {
	void *context;
	void (*write)(void *context, const struct cell *cell, struct strbuf *out);
};

/* Returns the form that the run's suite requests; FORM_OURS if it requests none. */
enum form form_of(const struct stored_run *run);

/* Adds the run in that form, which is not FORM_OURS. The run must be loaded with its intervals
 * (STORE_INTERVALS) and, for losses, STORE_SERIES. Lines that begin with "# " are prony's: the cell
 * that follows, and what cannot be printed. Standard deviations are computed as in the original
 * benchmarks: over all steps, divided by n. */
void form_write(const struct stored_run *run, enum form form, const struct form_layers *layers,
		struct strbuf *out);

#endif
