/*
 * Decides what a run measures: which cells want another process, when one is known well enough and
 * when there is no time left. Stores every result, and tells a listener what happens.
 */
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
	struct run_cell *cells; /* one for each of the plan; owned */
	struct budget budget;
	struct store *store;
	int64_t run; /* its id in the store */
	/* Hears every event after its result is stored; `so_far`: of the processes that count. May
	 * be NULL. */
	void (*listener)(void *context, const struct run_event *event, const struct run_cell *cell,
			 const struct estimate *so_far);
	void *listener_context;
};

/* The plan is borrowed. The budget is set before study_execute. study_release frees it, also after
 * an error. */
enum prony_status study_init(struct study *study, const struct plan *plan,
			     const struct effort_row *effort, int repeat, struct error *err);
void study_release(struct study *study);

/* Finds or makes the plan's cells in the run `run` of the store, and with `resume` takes over what
 * was measured of them. Cells that cannot run get their status. */
enum prony_status study_register(struct study *study, struct store *store, int64_t run, bool resume,
				 struct error *err);

/* Measures and marks the run as finished. Of settings->limits what the effort says is set here. */
enum prony_status study_execute(struct study *study, struct run_settings *settings,
				struct error *err);

#endif
