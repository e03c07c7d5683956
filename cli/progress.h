/* The progress display of `prony run`. On a terminal, but not in CI: one live line that changes
 * four times a second, and above it the results so far. Elsewhere: a line for each process, and one
 * after a long time without output. */
#ifndef PRONY_CLI_PROGRESS_H
#define PRONY_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

#include "plan/plan.h"
#include "run/run.h"
#include "stats/estimate.h"
#include "study/time_left.h"

struct progress {
	const struct plan *plan;
	struct time_left *left;
	bool live; /* cli_is_live(): rewrite one line */

	/* Shared with the thread `ticker`, like everything below. */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	pthread_t ticker;
	bool ticks, over;

	int64_t started_ns, said_ns; /* said: time of the last output */
	char line[512];
	/* The current activity: its cell, its start, and its progress. */
	bool in_gate;
	size_t cell, figure_cell; /* figure_cell: the cell of the figure */
	int round;
	char stage[64], figure[80];
	int64_t stage_ns;
	unsigned beat;	 /* turns the spinner at each tick */
	bool reference;	 /* a reference is being computed */
	double fraction; /* the part of the reference that is done */
};

void progress_init(struct progress *progress, const struct plan *plan, struct time_left *left);

/* Starts the thread that redraws the line. */
void progress_start(struct progress *progress);

/* Shows an event about `cell`; `estimate`: of the cell so far. */
void progress_event(struct progress *progress, const struct run_event *event,
		    const struct run_cell *cell, const struct estimate *estimate);

/* Prints a line for the user between events. */
void progress_say(struct progress *progress, const char *text);

/* Writes "native lenet train b64 fp32 cpu". */
void progress_cell_title(const struct plan_cell *cell, char *out, size_t bytes);

/* Removes the live line. May be called again, and without progress_start. */
void progress_end(struct progress *progress);

#endif
