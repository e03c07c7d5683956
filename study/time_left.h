/* Estimates how long a run will still take: the processes left times the time of those so far. */
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
	double start;	  /* expected of a process outside its steps; 0: the cell cannot run */
	double process;	  /* expected of a whole process, before one has ended */
	double certain;	  /* the least time of its window */
	double reference; /* multiplications of its work's reference, kept at the first cell of the
			     work; 0 when it is computed */
	size_t first;	  /* that cell */
	struct time_left_mean processes; /* ended processes of this run */
	int repeat;			 /* fixed number of processes of this cell; 0: the run's */
	int tried, good;		 /* including those of earlier parts of the run */
	bool gate;			 /* the gate is still to come */
	bool ended;
};

struct time_left {
	int processes_start, processes_cap; /* least and most processes of a cell */
	bool gate_only;
	double budget; /* seconds; 0: none */
	struct time_left_cell *cells;
	size_t count;
	struct time_left_mean gates, processes; /* of all cells */
	double reference_rate;			/* multiplications a second, as long as none ran */
	double computed_macs, computed_seconds; /* of the references of this run */
	double computing_macs;			/* of the one that is computed now */
	/* The current activities: their cell, and their start on the monotonic clock; 0: not
	 * active. */
	size_t cell;
	int64_t began_ns, since_ns, window_since_ns, reference_since_ns;
	double fraction; /* the part of the reference that is done */
};

/* Fills in the estimate from the plan alone. `repeat`: fixed number of processes, 0: by the effort;
 * `budget` in seconds, 0: none. time_left_release frees it. */
void time_left_init(struct time_left *t, const struct plan *plan, const struct effort_row *effort,
		    int repeat, bool gate_only, int cores, double budget);
void time_left_release(struct time_left *t);

/* Returns the expected seconds until the cell has `processes` more processes, with its gate.
 * *reference: those of the reference that it shares with others, at the first of them, else 0. */
double time_left_first(const struct time_left *t, size_t cell, int processes, double *reference);

/* Returns the expected seconds of a reference of so many multiplications and, if the cell's gate is
 * still to come, of the gate. */
double time_left_gate(const struct time_left *t, size_t cell, double multiplications);

/* Returns the expected seconds of a cell's gate and processes on so many cores, whether it can run
 * here or not; with its work's reference, if `reference`. */
double time_left_forecast(const struct plan_cell *cell, const struct effort_row *effort, int repeat,
			  bool gate_only, int cores, bool reference);

/* Begins the run with the processes that a resumed run already has; `cells` has one element for
 * each cell of the plan. */
void time_left_begin(struct time_left *t, const struct run_cell *cells, int64_t now_ns);
/* Updates the estimate by an event; `cell` is the cell of the event. */
void time_left_event(struct time_left *t, const struct run_event *event,
		     const struct run_cell *cell, int64_t now_ns);

/* Writes "14 of 24 to 44": the processes that have ended, or gates if nothing is timed. */
void time_left_count(const struct time_left *t, char *out, size_t out_bytes);
/* Returns the expected seconds left, at most what is left of the budget. */
double time_left_seconds(const struct time_left *t, int64_t now_ns);
/* Writes the time left: "about 12 min". */
void time_left_text(const struct time_left *t, int64_t now_ns, char *out, size_t out_bytes);
/* Describes a run before it begins: "20 to 48 processes, about 17 min and up to 2 min for
 * references; --budget ends it after 5 min". */
void time_left_plan_text(const struct time_left *t, char *out, size_t out_bytes);

#endif
