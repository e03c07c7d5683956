/* What `prony run` shows while it works: one live line on a terminal, plain lines elsewhere. */
#ifndef PRONY_CLI_PROGRESS_H
#define PRONY_CLI_PROGRESS_H

#include <stdbool.h>

#include "plan/plan.h"
#include "run/run.h"
#include "stats/estimate.h"

struct progress {
	bool live; /* standard error, where it goes, is a terminal: rewrite one line */
	const struct plan *plan;
	int64_t started_ns, reference_ns; /* of that: when the reference was heard of last */
	int expected, done; /* processes, an estimate of how many there will be; or: */
	bool gates;	    /* cells, where nothing is timed */
	char line[512];
};

void progress_init(struct progress *progress, const struct plan *plan, int expected, int done);

/* Shows an event; `estimate` of the cell so far (may be NULL). */
void progress_event(struct progress *progress, const struct run_event *event,
		    const struct estimate *estimate);

/* A line for the user between events. */
void progress_say(struct progress *progress, const char *text);

/* Takes the live line away. */
void progress_end(struct progress *progress);

#endif
