/* A run as the benchmark printed that its suite repeats, computed from the stored steps. */
#ifndef PRONY_REPORT_FORM_H
#define PRONY_REPORT_FORM_H

#include "base/strbuf.h"
#include "store/store.h"

/* What the form of alexnet begins with: a line for each layer, "conv1   [128, 56, 56, 64]". Reports
 * know no networks. */
struct form_layers {
	void *context;
	void (*write)(void *context, const struct cell *cell, struct strbuf *out);
};

/* The form that the run's suite asked for; FORM_OURS where it asked for none. */
enum form form_of(const struct stored_run *run);

/*
 * Adds the run in that form, not FORM_OURS. The run has its intervals (STORE_INTERVALS), and, for
 * losses, STORE_SERIES. Lines that begin with "# " are ours: which cell follows, and what cannot be
 * printed. Standard deviations are those of the origins: of all steps, divided by n.
 */
void form_write(const struct stored_run *run, enum form form, const struct form_layers *layers,
		struct strbuf *out);

#endif
