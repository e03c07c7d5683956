/*
 * The orchestrator: schedules rounds, starts one worker process per replicate, drives it through
 * the gate and the timed window, enforces limits. Knows no framework: a worker is an argv. Whether
 * another process is wanted, and what becomes of a result, are callbacks.
 */
#ifndef PRONY_RUN_RUN_H
#define PRONY_RUN_RUN_H

#include <jansson.h>
#include <stdbool.h>

#include "plan/plan.h"
#include "samples/record.h"

/* The numbers of the protocol, handed in by the caller (stats/effort.h). */
struct run_limits {
	int64_t warm_up_cap_ns, window_ns, min_steps;
	bool test_steadiness;
	int64_t block_ns;	 /* shortest block between two synchronisations of the warm-up */
	int64_t window_block_ns; /* the same of the window */
	int64_t window_max_ns;	 /* a window is never longer, but for few_steps steps */
	int64_t few_steps;
	int processes_min;	    /* that must end ok before a cell is */
	int64_t request_timeout_ns; /* of one request beside its own expected time */
	int64_t memory_limit_bytes; /* resident memory of a worker's tree; 0 = none */
	int64_t start_delay_ns;	    /* upper end of a random delay before each timed process */
};

struct workload;

/*
 * How far a cell has come, and what was made for it: one for each cell of the plan. The caller
 * fills the first part for a resumed run and releases it at the end.
 */
struct run_cell {
	int64_t id;		 /* the caller's own: the cell's place in its store */
	enum cell_status status; /* PENDING while it can go on */
	unsigned flags;		 /* collected on the way */
	bool gate_done;
	bool gate_kept; /* by a verdict of an earlier run; a worker that says otherwise repeats it
			 */
	int tried;	/* replicates so far, stored ones included: the next one's number */
	int rounds;	/* the first round that none of the stored ones had */
	double *means;	/* step means in ns of those that ended ok, in order; owned */
	enum disturbance *disturbances; /* of each of them; owned */
	size_t mean_count;

	int failures;	       /* in a row */
	bool bundled;	       /* the timed bundle is written */
	struct workload *work; /* NULL until needed */
};

/* Adds a process that ended ok. */
void run_cell_add(struct run_cell *cell, const struct process_record *record);
void run_cell_release(struct run_cell *cell);

enum run_event_kind {
	EVENT_REFERENCE /* the reference computes: fraction, several times a second */,
	EVENT_PREPARE /* data, reference and bundle of a gate or a process are made */,
	EVENT_GATE_START,
	EVENT_GATE_AGAIN /* after an accident; text: what happened */,
	EVENT_GATE_KEPT /* text: the date on which it passed */,
	EVENT_GATE_END /* however it ended */,
	EVENT_PROCESS_START,
	EVENT_STAGE /* of either; text: "import", "build", "warm-up"... */,
	EVENT_PROCESS_END,
	EVENT_CELL_END
};

/* The stage of a timed process whose length is known: listeners may ask for it. */
#define RUN_STAGE_MEASURING "measuring"

struct run_event {
	enum run_event_kind kind;
	size_t cell; /* index in the plan */
	int round;
	const char *text;
	double fraction;		     /* EVENT_REFERENCE: done, below 1 */
	const struct process_record *record; /* EVENT_PROCESS_END */
};

struct run_callbacks {
	void *context;
	/* Another process of this cell? Asked before each. Sets *flags to add to the cell. */
	bool (*wants_more)(void *context, size_t cell, unsigned *flags);
	/* Not in this round: others need the time more. Asked of cells that want another; the first
	 * round in which every cell says so runs them all. May be NULL. */
	bool (*later)(void *context, size_t cell);
	/* Why there is no time left for the cell's gate or another process; NULL: there is. May be
	 * NULL. */
	const char *(*late)(void *context, size_t cell);
	/* A steadiness verdict on the warm-up blocks so far (stats/steady.h). */
	bool (*steady)(void *context, const struct step_record *blocks, const int64_t *block_steps,
		       size_t count, int64_t window_ns);
	/* Sinks; an error ends the run (the store is gone). */
	/* What the framework said of itself; after its gate and each of its processes; may be NULL.
	 */
	enum prony_status (*framework)(void *context, size_t cell, const json_t *details,
				       struct error *err);
	enum prony_status (*gate)(void *context, size_t cell, enum cell_status verdict,
				  const json_t *evidence, const char *log, struct error *err);
	enum prony_status (*process)(void *context, size_t cell,
				     const struct process_record *record, struct error *err);
	enum prony_status (*cell_end)(void *context, size_t cell, enum cell_status status,
				      unsigned flags, const char *reason, struct error *err);
	void (*event)(void *context, const struct run_event *event);
};

struct run_settings {
	uint64_t seed;
	struct run_limits limits;
	int64_t reference_bytes; /* the gate's reference may take; 0 = half of the machine's */
	const char *self;	 /* our executable: the guard is `self guard` */
	const int *cpus;	 /* first logical CPU of each physical core that may be used */
	int cpu_count;
	bool cache;	   /* use and fill the caches of verdicts and of the reference's answers */
	bool repeat_gates; /* do not use that of verdicts */
	bool gate_only;	   /* nothing is timed: cells end with their gate */
	const char *keep_bundle; /* folder that gets the bundles; NULL = temporary, removed */
	const char *setup_command,
		*cleanup_command; /* shell text around each process; NULL = none */
	const volatile int *stop; /* set by a signal handler: finish cleanly, PRONY_INTERRUPTED */
};

/*
 * Runs every pending cell of the plan: first its gate, then rounds in which each cell that wants
 * more runs once, in seeded random order. A cell whose process or gate fails ends with that status:
 * at once, or after a second crash or time-out in a row, which may be accidents. So does a cell
 * whose data or model turn out to be broken. `cells` has one element per cell of the plan. The
 * caller holds the machine's lock (run/lock.h).
 */
enum prony_status run_execute(const struct plan *plan, struct run_cell *cells,
			      const struct run_settings *settings,
			      const struct run_callbacks *callbacks, struct error *err);

#endif
