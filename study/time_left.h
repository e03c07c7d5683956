/* How long a run will still take: processes that are left times what those so far took. */
#ifndef PRONY_STUDY_TIME_LEFT_H
#define PRONY_STUDY_TIME_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"
#include "run/run.h"
#include "stats/effort.h"

struct time_left_mean {
	double sum; /* seconds */
	int count;
};

/* Times are in seconds. */
struct time_left_cell {
	double start;	/* expected of a process beside its steps; 0: the cell cannot run */
	double process; /* expected of a whole one, before one has ended */
	double certain; /* its window takes at least so long */
	struct time_left_mean processes; /* of this run that have ended */
	int tried, good;		 /* those of earlier parts of the run included */
	bool gate;			 /* is still to come */
	bool ended;
};

struct time_left {
	int processes_start, processes_cap; /* that a cell has at least and at most */
	bool gate_only;
	double budget; /* seconds; 0: none */
	struct time_left_cell *cells;
	size_t count;
	struct time_left_mean gates, processes; /* of all cells */
	/* What goes on, in which cell, since when on the monotonic clock; 0: it does not. */
	size_t cell;
	int64_t began_ns, since_ns, window_since_ns, reference_since_ns;
	double fraction; /* of the reference that is done */
};

/* From the plan alone. `repeat`: fixed number of processes, 0: by the effort; `budget` in seconds,
 * 0: none. time_left_release frees it. */
void time_left_init(struct time_left *t, const struct plan *plan, const struct effort_row *effort,
		    int repeat, bool gate_only, int cores, double budget);
void time_left_release(struct time_left *t);

/* The run begins, with what a resumed one has: `cells` has one element for each of the plan. */
void time_left_begin(struct time_left *t, const struct run_cell *cells, int64_t now_ns);
/* Learns from an event; `cell` is the one that it is about. */
void time_left_event(struct time_left *t, const struct run_event *event,
		     const struct run_cell *cell, int64_t now_ns);

/* "14 of 24 to 44": processes that have ended, or gates where nothing is timed. */
void time_left_count(const struct time_left *t, char *out, size_t out_bytes);
/* "about 12 min" */
void time_left_text(const struct time_left *t, int64_t now_ns, char *out, size_t out_bytes);
/* Of a run before it begins: "20 to 48 processes, about 17 min" */
void time_left_plan_text(const struct time_left *t, char *out, size_t out_bytes);

#endif
