/* Runs the cells of a plan: schedules gates and rounds, starts worker processes, measures them and
 * enforces limits. This folder contains nothing specific to a framework: a worker is a command
 * line. The caller (study/) decides whether a cell needs another process, and gets every result as
 * an event. */
#ifndef PRONY_RUN_RUN_H
#define PRONY_RUN_RUN_H

#include <jansson.h>
#include <stdbool.h>

#include "plan/plan.h"
#include "samples/record.h"

/* The numbers of the measuring protocol, set by the caller (stats/effort.h). */
struct run_limits {
	int64_t warm_up_cap_ns, window_ns, min_steps;
	bool test_steadiness;
	int64_t block_ns;	 /* shortest block between two synchronisations of the warm-up */
	int64_t window_block_ns; /* the same for the window */
	int64_t window_max_ns;	 /* a window is never longer, except for few_steps steps */
	int64_t few_steps;
	int64_t request_timeout_ns; /* of one request, in addition to its own expected time */
	int64_t memory_limit_bytes; /* resident memory of a worker's tree; 0 = none */
	int64_t start_delay_ns;	    /* upper bound of a random delay before each timed process */
};

struct workload;

/* The progress of a cell and what was made for it; one for each cell of the plan. For a resumed run
 * the caller fills the first part, and releases it at the end. */
struct run_cell {
	int64_t id;		 /* set by the caller: the cell's place in its store */
	enum cell_status status; /* PENDING until the cell ends */
	unsigned flags;		 /* collected during the run */
	bool gate_done;
	bool gate_kept; /* by a verdict of an earlier run; repeated if the worker's description
			   differs */
	int tried;	/* replicates so far, stored ones included: the number of the next one */
	int rounds;	/* the first round after those of the stored replicates */
	double *means;	/* step means in ns of the processes that ended ok, in order; owned */
	enum disturbance *disturbances; /* of each of these processes; owned */
	size_t mean_count;

	int failures;	       /* in a row */
	bool bundled;	       /* the timed bundle is written */
	struct workload *work; /* NULL until needed */
};

/* Adds a process that ended ok. */
void run_cell_add(struct run_cell *cell, const struct process_record *record);
void run_cell_release(struct run_cell *cell);

enum run_event_kind {
	EVENT_REFERENCE /* the reference is computed: fraction, several times a second */,
	EVENT_PREPARE /* data, reference and bundle of a gate or a process are made */,
	EVENT_GATE_START,
	EVENT_GATE_AGAIN /* after an accident (crash or time-out); text: what happened */,
	EVENT_GATE_LATE /* its reference or gate is not begun: the caller allowed it no time; text:
			 * why
			 */
	,
	EVENT_GATE_KEPT /* like EVENT_GATE_END; text: the date on which the gate passed */,
	EVENT_GATE_END /* in all cases: status, details (the evidence), log */,
	EVENT_FRAMEWORK /* details: the worker's own description, in a gate or a process */,
	EVENT_PROCESS_START,
	EVENT_STAGE /* of a gate or a process; text: "import", "build", "warm-up"... */,
	EVENT_PROCESS_END /* record */,
	EVENT_CELL_END /* status, flags; text: the reason */
};

/* The stage of a timed process whose length is known; listeners compare with it. */
#define RUN_STAGE_MEASURING "measuring"

/* Pointers are borrowed. */
struct run_event {
	enum run_event_kind kind;
	size_t cell; /* index in the plan */
	int round;
	const char *text;
	double fraction; /* the part that is done, below 1 */
	enum cell_status status;
	unsigned flags;
	const json_t *details;
	const char *log;
	const struct process_record *record;
};

#define RUN_REASON_BYTES 200

enum run_choice {
	RUN_NOW,
	RUN_LATER /* other cells need the time more */,
	RUN_STOP /* no time is left; the cell stays pending, so that the run can be resumed */,
	RUN_END
};
struct run_decision {
	enum run_choice choice;
	/* For RUN_END: how the cell ends, flags to add, and the reason. */
	enum cell_status status;
	unsigned flags;
	char reason[RUN_REASON_BYTES];
};

/* The functions of the caller: decisions and events. */
struct run_caller {
	void *context;
	/* Decides what is next for a pending cell: its gate, another process, or its end. Called
	 * before each gate, each round and each process. If every cell of a round that does
	 * not stop answers RUN_LATER, all of them run. */
	struct run_decision (*decide)(void *context, size_t cell);
	/* Whether a reference of so many multiplications may be computed for the cell (0: none is
	 * needed) and, before its gate, the gate may run. If so, the reference is given up at
	 * *deadline_ns (0: never); if not, the cell stays pending and decide answers RUN_STOP for
	 * it, after the event EVENT_GATE_LATE with the text `why`. NULL: always. */
	bool (*affords)(void *context, size_t cell, double multiplications, int64_t *deadline_ns,
			char why[RUN_REASON_BYTES]);
	/* If it is not NULL, a cell's gate runs just before its first process, instead of all gates
	 * before all processes, and the cells of a round run in the order that this gives them,
	 * instead of a random one. `cells`: in random order. */
	void (*order)(void *context, size_t *cells, size_t count);
	/* Whether a process is warm, judged by its warm-up blocks so far (stats/steady.h). */
	bool (*steady)(void *context, const struct step_record *blocks, const int64_t *block_steps,
		       size_t count, int64_t window_ns);
	/* Gets every event; may be NULL. An error ends the run. */
	enum prony_status (*event)(void *context, const struct run_event *event, struct error *err);
};

/* All flags that a gate can give. */
#define GATE_FLAGS (CELL_FLAG_AGREEMENT | CELL_FLAG_EQUAL_MAXIMA | CELL_FLAG_COARSE_GATE)
/* Returns the flags that follow from the gate's verdict and stored evidence (NULL: none). */
unsigned gate_flags(enum cell_status verdict, const json_t *evidence);

struct run_settings {
	uint64_t seed;
	struct run_limits limits;
	int64_t reference_bytes; /* most memory for the gate's reference; 0 = half of the machine's
				  */
	const char *self;	 /* prony's executable: the guard is `self guard` */
	const char *lock_path;	 /* of the machine's lock, held as lock_fd; NULL = none is held */
	int lock_fd;
	const int *cpus; /* first logical CPU of each physical core that may be used */
	int cpu_count;
	bool cache;	   /* use and fill the caches of verdicts and of the reference's answers */
	bool repeat_gates; /* do not use the cache of verdicts */
	bool gate_only;	   /* time nothing: cells end with their gate */
	const char *keep_bundle; /* folder for the bundles; NULL = temporary, removed */
	const char *setup_command,
		*cleanup_command; /* shell commands before and after each process; NULL = none */
	const volatile int *stop; /* set by a signal handler: finish cleanly, PRONY_INTERRUPTED */
};

/* Runs every pending cell of the plan: first its gate, then rounds in which each cell that needs
 * another process runs once, in seeded random order (or the caller's). A cell whose process or gate
 * fails ends with that status. A crash or a time-out may be an accident, so only the second in a
 * row ends the cell. A cell whose data or model is broken ends too. `cells` has one element per
 * cell of the plan. The caller holds the machine's lock (run/lock.h). */
enum prony_status run_execute(const struct plan *plan, struct run_cell *cells,
			      const struct run_settings *settings, const struct run_caller *caller,
			      struct error *err);

/* What proofs_keep copied: of `works`, the answers of gates, the first losses; passed gates. */
struct proofs {
	size_t works, references, losses, gates;
};

/* Computes the reference's answers for the cells of a plan, also for those that this machine lacks
 * something to run, unless they are kept already. Copies them, with the passed gates of earlier
 * runs, into `folder`/cache, which another machine reads if it is a shared folder there
 * (base/cache.h). Answers that are too large for the cache are left out. Uses of the settings seed,
 * self, cache, reference_bytes and stop, and of the caller its event. */
enum prony_status proofs_keep(const struct plan *plan, struct run_cell *cells,
			      const struct run_settings *settings, const struct run_caller *caller,
			      const char *folder, struct proofs *out, struct error *err);

#endif
