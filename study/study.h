/* Decides what a run measures: which cells need another process, when a cell is known well enough
 * and when no time is left. Stores every result, and reports events to a listener. */
#ifndef PRONY_STUDY_STUDY_H
#define PRONY_STUDY_STUDY_H

#include "plan/plan.h"
#include "run/run.h"
#include "stats/effort.h"
#include "store/store.h"
#include "study/budget.h"

struct study {
	const struct plan *plan;
	const struct effort_row *effort;
	int repeat;		/* fixed number of processes of a cell; 0: by the effort */
	struct run_cell *cells; /* one for each cell of the plan; owned */
	struct budget budget;
	const struct time_left *left; /* expected times, for the budget; borrowed */
	struct store *store;
	int64_t run;  /* its id in the store */
	int64_t part; /* of the run, from 1; 0: it has no parts. Set it before study_register */
	/* Gets every event after its result is stored; `so_far`: the estimate from the processes
	 * that count. May be NULL. */
	void (*listener)(void *context, const struct run_event *event, const struct run_cell *cell,
			 const struct estimate *so_far);
	void *listener_context;
};

/* The plan is borrowed. Set the budget and `left` before study_execute. study_release frees the
 * study, also after an error. */
enum prony_status study_init(struct study *study, const struct plan *plan,
			     const struct effort_row *effort, int repeat, struct error *err);
void study_release(struct study *study);

/* Finds or makes the plan's cells in the run `run` of the store, and with `resume` takes over their
 * earlier results. Cells that cannot run get their status. */
enum prony_status study_register(struct study *study, struct store *store, int64_t run, bool resume,
				 struct error *err);

/* Measures, and marks the run as finished unless the time was over before each cell ended. Sets
 * those settings->limits that depend on the effort. */
enum prony_status study_execute(struct study *study, struct run_settings *settings,
				struct error *err);

/* Whether there is a process of any cell, or with `gate_only` a gate. */
bool study_began(const struct study *study, bool gate_only);
/* Whether the budget had no time for the reference and gate of a cell. */
bool study_refused(const struct study *study);
/* Returns the number of cells that have not ended. */
size_t study_unfinished(const struct study *study);

#endif
