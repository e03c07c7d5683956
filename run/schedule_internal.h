/* Private to the schedule, grouped by source file, lower layers first: schedule.c calls
 * gate_schedule.c, which calls gate_second.c; all call schedule_cells.c; proofs.c runs nothing. */
#ifndef PRONY_RUN_SCHEDULE_INTERNAL_H
#define PRONY_RUN_SCHEDULE_INTERNAL_H

#include "base/cache.h"
#include "base/files.h"
#include "base/random.h"
#include "run/gate_cache.h"
#include "run/run.h"

#define FAILURES_MAX 2 /* in a row: the first crash or time-out may be an accident */

struct schedule {
	const struct plan *plan;
	struct run_cell *cells;
	const struct run_settings *settings;
	const struct run_caller *caller;
	struct workload **works; /* distinct works; each cell uses one */
	size_t work_count;
	char *folder; /* parent folder of the bundles */
	struct reference_control control;
	bool refused;	     /* the caller did not allow the last reference */
	size_t watched_cell; /* the cell whose reference is computed */
	int64_t watched_ns;  /* time of the last event about the reference */
	struct gate_cache gates;
	struct cache answers;
	struct random random;
	struct file_stamp program; /* identity of settings->self when the run began */
	int folder_fd;
};

/* schedule_cells.c: the works of cells, their bundles, their ends. */

/* Reports an event to the caller. */
void schedule_say(const struct schedule *s, enum run_event_kind kind, size_t cell, int round,
		  const char *text);

/* Checks that another process may be started. PRONY_INTERRUPTED when the user stopped the run.
 * PRONY_IO when prony's executable, from which workers and guards are started, has been replaced:
 * one table would mix results of two programs. */
enum prony_status schedule_may_start(const struct schedule *s, struct error *err);
/* Whether a process that ended this way may succeed the next time. */
bool schedule_is_accident(enum cell_status ended);
/* Reports the progress of the cell's reference. */
struct reference_control *schedule_control(struct schedule *s, size_t cell);
/* Whether the last reference was not begun, or was given up at its deadline. */
bool schedule_gave_up(const struct schedule *s);
/* Sets the work of a cell; cells that differ only in their framework share it. */
enum prony_status schedule_need_work(struct schedule *s, size_t cell, struct error *err);
/* Fills in what a process of the cell is started with; writes its bundle if it is missing. *folder
 * of the bundle: the caller frees it, also after an error. */
enum prony_status schedule_launch(struct schedule *s, size_t cell, bool gate, int round,
				  struct launch *launch, char **folder, struct error *err);
/* Does the same for the next seed of a training until a target: its own weights, order of samples
 * and expected loss. Call seeded_release in any case. */
struct seeded {
	struct plan_cell cell;
	struct workload work;
};
enum prony_status schedule_launch_seed(struct schedule *s, size_t cell, int round,
				       struct seeded *seeded, struct launch *launch, char **folder,
				       struct error *err);
void seeded_release(struct seeded *seeded);
/* Asks the caller what is next for the cell; ends the cell if the answer is RUN_END. */
enum prony_status schedule_decide(struct schedule *s, size_t cell, enum run_choice *choice,
				  struct error *err);
/* Sets the cell's final status and removes the files that no cell needs any more. */
enum prony_status schedule_end_cell(struct schedule *s, size_t cell, enum cell_status status,
				    const char *reason, struct error *err);
/* If `status` means that the cell's data or model is broken (PRONY_BAD_INPUT, in err), ends the
 * cell; the others continue. Every other status is returned unchanged. */
enum prony_status schedule_end_broken(struct schedule *s, size_t cell, enum prony_status status,
				      struct error *err);

/* schedule.c: opens the caches and makes the folder of the bundles; release it also after an error.
 */
enum prony_status schedule_init(struct schedule *s, struct error *err);
void schedule_release(struct schedule *s);

/* gate_agreement.c: instead of a gate, compares the engines of each file that no graph expresses
 * with each other. */
enum prony_status gate_agreement(struct schedule *s, struct error *err);

/* gate_second.c: the second gate. A framework may give a max-pool's gradient to another of several
 * equal maxima than the first, or to each; it reports so in its settings (equal_maxima). On
 * pictures with equal pixels its training is then always a mismatch. The gate is repeated on random
 * pixels, no two of which are equal, to check the rest of its work within the same bounds. */
struct second_gate { /* zero if it was not needed */
	struct plan_cell cell;
	struct workload work;
	char *folder; /* of its bundle */
};

/* Whether a rule for equal maxima may explain the outcome of the gate of `launch`: a max-pool is
 * differentiated, the data are not random pixels, and everything before the first gradient is
 * right. */
bool second_gate_may_help(const struct launch *launch, const struct gate_outcome *outcome);
/* Makes the second gate's work with its answers and its bundle in *second (release it, also after
 * an error), and its launch; `first`: the launch of the first gate. */
enum prony_status second_gate_init(struct schedule *s, const struct launch *first,
				   struct second_gate *second, struct launch *launch,
				   struct error *err);
/* Replaces the first outcome by that of the second gate, which reached a verdict. The names in
 * *outcome then belong to *second: release that later. */
void second_gate_take(struct gate_outcome *outcome, struct gate_outcome *again);
void second_gate_release(struct second_gate *second, bool keep_bundle);

/* gate_schedule.c */

/* Runs the gate of a pending cell unless it has run, or the caller decides otherwise. If nothing is
 * to be timed, that ends the cell. */
enum prony_status schedule_gate(struct schedule *s, size_t cell, struct error *err);
/* Compares the worker's description with the one in a kept verdict. If they differ, for example
 * because a library changed unnoticed, the gate is repeated before the cell's time counts. */
enum prony_status schedule_doubt_kept(struct schedule *s, size_t cell, const json_t *details,
				      bool *doubted, struct error *err);

#endif
