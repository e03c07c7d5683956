/*
 * Private to the schedule, by the file that has it, the ones below first: schedule.c calls
 * gate_schedule.c, that gate_second.c, all call schedule_cells.c.
 */
#ifndef PRONY_RUN_SCHEDULE_INTERNAL_H
#define PRONY_RUN_SCHEDULE_INTERNAL_H

#include "base/cache.h"
#include "base/files.h"
#include "base/random.h"
#include "run/gate_cache.h"
#include "run/run.h"

#define FAILURES_MAX 2 /* in a row: a crash or a time-out may be an accident once */

struct schedule {
	const struct plan *plan;
	struct run_cell *cells;
	const struct run_settings *settings;
	const struct run_caller *caller;
	struct workload **works; /* distinct ones; each cell uses one */
	size_t work_count;
	char *folder; /* bundles live below it */
	struct reference_watch watch;
	size_t watched_cell; /* whose reference is computed */
	int64_t watched_ns;  /* time of the last event about it */
	struct gate_cache gates;
	struct cache answers;
	struct random random;
	struct file_stamp program; /* settings->self when the run began */
	int folder_fd;
};

/* schedule_cells.c: the works of cells, their bundles, their ends. */

/* Reports an event to the caller. */
void schedule_say(const struct schedule *s, enum run_event_kind kind, size_t cell, int round,
		  const char *text);

/*
 * Before another process is started. PRONY_INTERRUPTED when the user stopped the run; PRONY_IO when
 * the program, which is what workers and guards are started from, is not the one that began: their
 * figures would stand in one table with those of another program.
 */
enum prony_status schedule_may_start(const struct schedule *s, struct error *err);
/* Whether a process that ended so may do better the next time. */
bool schedule_is_accident(enum cell_status ended);
/* Reports how far the reference of the cell has come. */
struct reference_watch *schedule_watch(struct schedule *s, size_t cell);
/* Sets the work of a cell, shared with cells that differ in their framework only. */
enum prony_status schedule_need_work(struct schedule *s, size_t cell, struct error *err);
/* What a process of the cell is started with; its bundle is written where it is not there yet.
 * *folder of the bundle: caller frees, also after an error. */
enum prony_status schedule_launch(struct schedule *s, size_t cell, bool gate, int round,
				  struct launch *launch, char **folder, struct error *err);
/* Asks the caller what is next for the cell, and ends it where that is its end. */
enum prony_status schedule_decide(struct schedule *s, size_t cell, enum run_choice *choice,
				  struct error *err);
/* Gives the cell its status and removes the files that no cell needs any more. */
enum prony_status schedule_end_cell(struct schedule *s, size_t cell, enum cell_status status,
				    const char *reason, struct error *err);
/*
 * Where `status` says that the cell's data or model is broken (PRONY_BAD_INPUT, in err): that ends
 * the cell, and the others go on. Everything else comes back as it is.
 */
enum prony_status schedule_end_broken(struct schedule *s, size_t cell, enum prony_status status,
				      struct error *err);

/* gate_agreement.c: in place of a gate, the engines of each file that no graph expresses are held
 * to each other. */
enum prony_status gate_agreement(struct schedule *s, struct error *err);

/*
 * gate_second.c: a framework may give a max-pool's gradient to another of several equal maxima
 * than the first, or to each, which its settings say (equal_maxima). Pictures with equal pixels
 * then make its training a mismatch whatever else it does. It is gated again on random pixels, of
 * which no two are equal: what it shows there is the rest of its work, within the same bounds.
 */
struct second_gate { /* zero: was not needed */
	struct plan_cell cell;
	struct workload work;
	char *folder; /* of its bundle */
};

/* Whether that may be how the gate of `launch` ended: a max-pool is differentiated, on other
 * data than random pixels, and what comes before the first gradient is right. */
bool second_gate_may_help(const struct launch *launch, const struct gate_outcome *outcome);
/* The second gate's work with its answers and its bundle, in *second (release it, also after an
 * error), and its launch; `first`: that of the first one. */
enum prony_status second_gate_init(struct schedule *s, const struct launch *first,
				   struct second_gate *second, struct launch *launch,
				   struct error *err);
/* Puts the second gate, which came to a verdict, in the place of the first. The names in *outcome
 * are then those of *second: release that later. */
void second_gate_take(struct gate_outcome *outcome, struct gate_outcome *again);
void second_gate_release(struct second_gate *second, bool keep_bundle);

/* gate_schedule.c */

/* The gate of every cell that is pending and has not passed it. Where nothing is to be timed that
 * ends the cell. */
enum prony_status schedule_run_gates(struct schedule *s, struct error *err);
/*
 * A kept verdict knows what the worker said of itself in the gate. One that now says otherwise, a
 * library that nobody saw change, is gated again before its time counts.
 */
enum prony_status schedule_doubt_kept(struct schedule *s, size_t cell, const json_t *details,
				      bool *doubted, struct error *err);

#endif
