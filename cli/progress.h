/*
 * What `prony run` shows while it works. On a terminal: one live line that changes four times a
 * second, whatever is going on, and above it what has ended. Elsewhere: a line for each process,
 * and one when for long there was nothing to say.
 */
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
	bool live; /* standard error, where it goes, is a terminal: rewrite one line */

	/* Shared with the thread that ticks, as is everything below. */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	pthread_t ticker;
	bool ticks, over;

	int64_t started_ns, said_ns; /* said: something, last */
	char line[512];
	/* What is going on: the cell, since when, and how far. */
	bool in_gate;
	size_t cell, figure_cell; /* the figure is of that one */
	int round;
	char stage[64], figure[80];
	int64_t stage_ns;
	unsigned beat;	 /* turns a sign at each tick */
	bool reference;	 /* is computed */
	double fraction; /* of it that is done */
};

void progress_init(struct progress *progress, const struct plan *plan, struct time_left *left);

/* From here on it ticks. */
void progress_start(struct progress *progress);

/* Shows an event about `cell`; `estimate`: of the cell so far. */
void progress_event(struct progress *progress, const struct run_event *event,
		    const struct run_cell *cell, const struct estimate *estimate);

/* A line for the user between events. */
void progress_say(struct progress *progress, const char *text);

/* "native lenet train b64 fp32 cpu" */
void progress_cell_title(const struct plan_cell *cell, char *out, size_t bytes);

/* Takes the live line away; may be called again, and without progress_start. */
void progress_end(struct progress *progress);

#endif
