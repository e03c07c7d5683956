/*
 * How long a run will take: from what is known before it, and better from what it has shown so far.
 * Every figure is in seconds.
 */
#ifndef PRONY_STATS_FORECAST_H
#define PRONY_STATS_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "samples/record.h"
#include "stats/effort.h"
#include "stats/stopping.h"
#include "stats/warm_ups.h"

/* Cells that one question looks at anew. So many and fewer are always up to date; of more, each is
 * so again after count / FORECAST_LOOKS questions. */
enum { FORECAST_LOOKS = 256 };

/* What of a cell is in the sums, as it was looked at last; seconds. */
struct forecast_share {
	bool in;
	double gate, references, each; /* each: of its processes to come */
	double warm_up;		       /* of that, where it is open; else 0 */
	int more[STOPPING_DRAWS];      /* processes to come */
	int tried;
};

/* A cell: the caller fills the first part, before the first question, forecast_add the rest. */
struct forecast_cell {
	double reference; /* the gate's reference computes so long; 0: another cell's is used */
	double loss;	  /* likewise what the first loss of timed processes is held to */
	double start;	  /* of a process beside its steps: start, import, build, end */
	double step;
	double gate_steps;     /* of the gate, in steps of the cell: its batch may be larger */
	double warm_up;	       /* as it was in earlier runs; 0: there were none */
	double earlier_spread; /* likewise of its processes, as `spread` below */
	int64_t steps, warm_up_steps; /* fixed; 0 and -1: by the effort */
	double longest; /* of either, where they are an epoch that may be cut; 0: they stay whole */
	size_t group;	/* cells of one framework start alike, and are mistaken alike */
	bool gate;	/* is still to be run, or may be */
	bool ended;	/* nothing is left to do */
	int tried;	/* processes that have ended */

	double told;   /* length of a step, from a process that is about to measure; 0: none yet */
	double passed; /* in processes of this run, beside their warm-ups */
	double warmed; /* in these */
	int seen;      /* how many these were */
	size_t good;   /* those that ended ok, stored ones included */
	size_t n;      /* of them, those that count */
	double spread; /* standard deviation of the logarithms of their means; NaN when n < 2 */
	int counts[STOPPING_DRAWS]; /* processes in the end, equally likely; without those that
				     * ended and do not count */
	unsigned drawn;		    /* the counts, from what was learned until then */
	struct forecast_share share;
};

/* What has been learned of a kind of time: a mean. */
struct forecast_mean {
	double sum;
	int count;
};

struct forecast_group {
	struct forecast_mean start; /* of processes beside their steps */
	struct forecast_mean tail;  /* of it: after the window */
	double launch;		    /* shortest of gates up to their first step; 0: none yet */
	struct forecast_mean gate;  /* of gates, without their reference and their steps */
	struct forecast_mean step;  /* logarithm of how much longer steps take than was said */
};

/* What cells' processes tell of the spread of other cells': its logarithm times a weight, which
 * many degrees of freedom have nearly in full, and few hardly. */
struct forecast_told {
	double logs, weight;
};

/* Over all cells, of their shares. */
struct forecast_sums {
	double gates, references, seconds[STOPPING_DRAWS];
	double warm_ups[STOPPING_DRAWS];
	int64_t more[STOPPING_DRAWS], open[STOPPING_DRAWS]; /* open: of those whose warm-up is */
	int64_t tried;
};

struct forecast {
	const struct effort_row *effort;
	struct stopping_rule rule; /* where the number is open */
	unsigned learned;	   /* how often something that says how many processes there are */
	int repeat;		   /* fixed number of processes; 0: by the effort */
	bool gate_only;
	double budget; /* the run ends after so long, whatever is open; 0: no such limit */
	struct forecast_cell *cells;
	size_t count;
	struct forecast_group *groups;
	size_t group_count;
	double reference_said, reference_took; /* of references that have ended */
	struct forecast_mean warm_up;
	double usual_warm_up;	  /* in the mean of these, before one was seen; seconds */
	struct warm_ups warm_ups; /* of these */
	struct warm_up_draw warm_up_draws[STOPPING_DRAWS];
	double lost[STOPPING_DRAWS];	/* share of the processes to come that will not count */
	unsigned drawn;			/* both, from what was learned until then */
	struct forecast_mean disturbed; /* 1 for each process that was, 0 for the others */
	struct forecast_mean step;	/* of all groups */
	struct forecast_told told;	/* of all cells */
	struct forecast_sums sums;
	bool asked; /* all cells are in the sums */
	/* To be looked at, from `next` on, since something has changed; `looks`: at cells, so far.
	 */
	size_t due, next, looks;
};

/* What is going on at the moment. */
enum forecast_part { FORECAST_NOTHING, FORECAST_REFERENCE, FORECAST_GATE, FORECAST_PROCESS };
struct forecast_now {
	enum forecast_part part;
	size_t cell;
	double passed;	 /* in that part */
	double fraction; /* of a reference that is done; 0 when it is not known */
	double whole;	 /* since the run began */
	double warmed;	 /* a process warms up, so long; 0: it does not */
	bool measures;	 /* it is in its window, so long: */
	double measured;
};

/* Until the end of the run: `middle` where processes warm up as long as is expected, by how many of
 * them as likely more as less; and nearly always between `low` and `high`, by how many processes
 * cells may still want, how many of these other programs may disturb, and how long they may warm
 * up. Where all that is fixed all three are one. */
struct forecast_time {
	double low, middle, high;
};

/* Before the run: between what and what, because the number of processes, the length of warm-up and
 * what is kept of gates are open. */
struct forecast_range {
	double low, high;
	int low_processes, high_processes;
};

/* No cell is there yet; forecast_release frees what forecast_add takes. */
void forecast_init(struct forecast *f, const struct effort_row *effort, int repeat, bool gate_only);
void forecast_release(struct forecast *f);
void forecast_add(struct forecast *f, const struct forecast_cell *cell);

/* The gate of a cell needs no process: it was kept, or there is none. */
void forecast_no_gate(struct forecast *f, size_t cell);
/* Of stored processes so many were disturbed, and so many were not. */
void forecast_disturbed(struct forecast *f, size_t disturbed, size_t others);
/* A reference took so long; `loss`: that of the first loss. */
void forecast_reference(struct forecast *f, size_t cell, bool loss, double seconds);
/* A gate came to its first step after so long. */
void forecast_launch(struct forecast *f, size_t cell, double seconds);
/* A gate ended that took so long without its reference. */
void forecast_gate(struct forecast *f, size_t cell, double seconds);
/* A process that is warm knows how long its steps are. */
void forecast_step(struct forecast *f, size_t cell, double seconds);
/* A process ended; `seconds` since the one before it, without a reference. */
void forecast_process(struct forecast *f, size_t cell, const struct process_record *record,
		      double seconds);
/* Likewise: it ended so long after its window began. */
void forecast_tail(struct forecast *f, size_t cell, const struct process_record *record,
		   double seconds);
/* The processes of a cell that count so far. */
void forecast_estimate(struct forecast *f, size_t cell, const struct estimate *estimate);
void forecast_end(struct forecast *f, size_t cell);

struct forecast_range forecast_range(const struct forecast *f);
/* Questions, as often as a line on a terminal changes: what they take does not grow with the cells,
 * but for the first one. */

/* Processes that the run will have had at its end, those that have ended included: as likely more
 * as fewer. */
double forecast_processes(struct forecast *f);
/* Whether their number is known: nothing decides on the way how many are enough. */
bool forecast_is_fixed(const struct forecast *f);
struct forecast_time forecast_left(struct forecast *f, const struct forecast_now *now);

#endif
