/* Decides what a run measures and stores every result. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "frameworks/registry.h"
#include "spec/spec.h"
#include "stats/steady.h"
#include "study/counted.h"

#define START_DELAY_NS INT64_C(1000000000) /* docs/measurement.md: breaks up periodic effects */

enum prony_status study_init(struct study *study, const struct plan *plan,
			     const struct effort_row *effort, int repeat, struct error *err)
{
	*study = (struct study){.plan = plan, .effort = effort, .repeat = repeat};
	study->cells = calloc(plan->count ? plan->count : 1, sizeof *study->cells);
	return study->cells ? PRONY_OK
			    : error_set(err, PRONY_NOMEM, "no memory for %zu cells", plan->count);
}

void study_release(struct study *study)
{
	for (size_t i = 0; study->cells && i < study->plan->count; i++)
		run_cell_release(&study->cells[i]);
	free(study->cells);
	study->cells = NULL;
	budget_release(&study->budget);
}

static int compare_ids(const void *id, const void *cell)
{
	int64_t a = *(const int64_t *)id, b = ((const struct stored_cell *)cell)->id;
	return (a > b) - (a < b);
}

/* Takes over what the store has of a cell of a resumed run, whose cells are in order of id. */
static void take_over(const struct stored_run *stored, struct run_cell *cell)
{
	const struct stored_cell *old =
		stored->cell_count ? bsearch(&cell->id, stored->cells, stored->cell_count,
					     sizeof *stored->cells, compare_ids)
				   : NULL;
	if (!old)
		return;
	cell->status = old->status;
	/* A run that was killed after the gate has not stored the cell's flags. */
	cell->flags = old->flags | gate_flags(old->gate, old->evidence);
	cell->gate_done = old->gate != CELL_PENDING;
	cell->tried = (int)old->process_count;
	for (size_t p = 0; p < old->process_count; p++) {
		if (old->processes[p].round >= cell->rounds)
			cell->rounds = (int)old->processes[p].round + 1;
		cell->flags |= cell_flags_parse(old->processes[p].flags);
		if (!strcmp(old->processes[p].status, "ok"))
			run_cell_add(cell, &old->processes[p]);
	}
}

static enum prony_status register_cell(struct study *study, const struct stored_run *stored,
				       size_t i, struct error *err)
{
	const struct plan_cell *planned = &study->plan->cells[i];
	struct run_cell *cell = &study->cells[i];
	enum prony_status status =
		store_cell(study->store, study->run, &planned->cell, &cell->id, err);
	if (status != PRONY_OK)
		return status;
	take_over(stored, cell);
	if (cell->status != CELL_PENDING || planned->status == CELL_PENDING)
		return PRONY_OK;
	cell->status = planned->status;
	return store_cell_status(study->store, cell->id, cell->status, 0, planned->reason, err);
}

enum prony_status study_register(struct study *study, struct store *store, int64_t run, bool resume,
				 struct error *err)
{
	struct stored_run stored = {.cells = NULL};
	char which[32];
	enum prony_status status = PRONY_OK;
	study->store = store;
	study->run = run;
	if (resume) {
		snprintf(which, sizeof which, "%lld", (long long)run);
		status = store_load_run(store, which, 0, &stored, err);
	}
	/* One transaction: thousands of them would each wait for the disk. */
	if (status == PRONY_OK) {
		status = store_batch_begin(store, err);
		if (status == PRONY_OK) {
			for (size_t i = 0; i < study->plan->count && status == PRONY_OK; i++)
				status = register_cell(study, &stored, i, err);
			if (status == PRONY_OK && study->part > 0)
				status = store_part_cells(store, run, study->part, err);
			status = store_batch_end(store, status, err);
		}
	}
	stored_run_release(&stored);
	return status;
}

/* Returns the fixed number of processes of a cell; 0: by the effort. */
static int repeat_of(const struct study *study, size_t index)
{
	int own = study->plan->cells[index].repeat;

	return own > 0 ? own : study->repeat;
}

/* Returns the number of good processes of an ok cell; `repeat`: a fixed number, or 0. */
static int needed_of(int repeat)
{
	return repeat > 0 ? repeat : OK_PROCESSES_MIN;
}

/* Returns how a cell without another process ends. If only the time is over, a cell with too few
 * processes does not end. */
static struct run_decision end_of(const struct run_cell *cell, int needed, bool late)
{
	int good = (int)cell->mean_count;
	struct run_decision end = {.choice = RUN_END, .status = CELL_OK};
	if (good >= needed)
		return end;
	if (late)
		return (struct run_decision){.choice = RUN_STOP};
	end.status = CELL_INVALID;
	snprintf(end.reason, sizeof end.reason, "%d of %d processes ended ok, %d are needed", good,
		 cell->tried, needed);
	return end;
}

static struct run_decision decide(void *context, size_t index)
{
	struct study *study = context;
	const struct plan_cell *planned = &study->plan->cells[index];
	const struct run_cell *cell = &study->cells[index];
	bool late = budget_late(&study->budget, index);
	bool not_converged = false;
	struct run_decision decision = {.choice = RUN_NOW};
	if (late && !cell->gate_done && !planned->ungated)
		return (struct run_decision){.choice = RUN_STOP};
	int repeat = repeat_of(study, index);
	bool more = counted_wants_more(cell, study->effort, repeat, &not_converged);
	if (!more || late) {
		decision = end_of(cell, needed_of(repeat), late && more);
		decision.flags = more || not_converged ? CELL_FLAG_NOT_CONVERGED : 0;
	} else if (budget_later(&study->budget, study->cells, study->plan->count, index,
				(size_t)needed_of(repeat))) {
		decision.choice = RUN_LATER;
	}
	return decision;
}

static bool affords(void *context, size_t cell, double multiplications, int64_t *deadline_ns,
		    char why[RUN_REASON_BYTES])
{
	struct study *study = context;
	return budget_affords(&study->budget, cell,
			      study->left ? time_left_gate(study->left, cell, multiplications) : 0,
			      deadline_ns, why);
}

static void order(void *context, size_t *cells, size_t count)
{
	const struct study *study = context;
	budget_order(&study->budget, study->cells, cells, count);
}

static bool judge_steady(void *context, const struct step_record *blocks,
			 const int64_t *block_steps, size_t count, int64_t window_ns)
{
	(void)context;
	return steady_reached(blocks, block_steps, count, window_ns);
}

/* Returns the flags that follow from how the cell was run, not from its results. */
static unsigned standing_flags(const struct study *study, size_t index)
{
	const struct plan_cell *planned = &study->plan->cells[index];
	unsigned flags = 0;
	if (study->effort == &effort_table[EFFORT_QUICK])
		flags |= CELL_FLAG_SCREENING;
	if (planned->location->origin == ORIGIN_DISCOVERED)
		flags |= CELL_FLAG_DISCOVERED;
	if (planned->cell.input == INPUT_NATIVE && planned->location->framework->fed_by_script)
		flags |= CELL_FLAG_FED_BY_SCRIPT;
	if (planned->recipe.stage != STAGE_FORWARD && planned->network->file &&
	    planned->network->file->no_normalisation)
		flags |= CELL_FLAG_NO_NORMALISATION;
	return flags;
}

static enum prony_status store_event(const struct study *study, const struct run_event *event,
				     struct error *err)
{
	int64_t id = study->cells[event->cell].id;
	switch (event->kind) {
	case EVENT_FRAMEWORK:
		return store_cell_framework(study->store, id, event->details, err);
	case EVENT_GATE_KEPT:
	case EVENT_GATE_END:
		return store_gate(study->store, id, event->status, event->details, event->log, err);
	case EVENT_PROCESS_END:
		return store_process(study->store, id, event->record, err);
	case EVENT_GATE_LATE:
		return store_cell_status(study->store, id, CELL_PENDING, 0, event->text, err);
	case EVENT_CELL_END:
		return store_cell_status(study->store, id, event->status,
					 event->flags | standing_flags(study, event->cell),
					 event->text, err);
	default:
		return PRONY_OK;
	}
}

static enum prony_status on_event(void *context, const struct run_event *event, struct error *err)
{
	struct study *study = context;
	const struct run_cell *cell = &study->cells[event->cell];
	enum prony_status status = store_event(study, event, err);
	if (status != PRONY_OK)
		return status;
	if (event->kind == EVENT_PROCESS_END)
		budget_spend(&study->budget, event->cell, event->record->total_ns);
	budget_look_again(&study->budget);
	if (study->listener) {
		struct estimate so_far;
		counted_estimate(cell, study->repeat <= 0 && study->effort->stop_half_width > 0,
				 &so_far);
		study->listener(study->listener_context, event, cell, &so_far);
	}
	return PRONY_OK;
}

bool study_began(const struct study *study, bool gate_only)
{
	bool any = false;
	for (size_t i = 0; i < study->plan->count; i++)
		any |= study->cells[i].tried > 0 || (gate_only && study->cells[i].gate_done);
	return any;
}

bool study_refused(const struct study *study)
{
	bool any = false;
	for (size_t i = 0; study->budget.refused && i < study->plan->count; i++)
		any |= study->budget.refused[i];
	return any;
}

size_t study_unfinished(const struct study *study)
{
	size_t count = 0;
	for (size_t i = 0; i < study->plan->count; i++)
		count += study->cells[i].status == CELL_PENDING;
	return count;
}

/* Under a budget, warm-ups are so short that each cell can get its first processes in time, but
 * long enough to become steady. */
static int64_t warm_up_cap(const struct study *study)
{
	const struct effort_row *effort = study->effort;
	int64_t cap = effort->warm_up_cap_ns;
	int64_t processes = (int64_t)study_unfinished(study) * needed_of(study->repeat);
	if (study->budget.length_ns == 0 || !effort->test_steadiness || processes == 0)
		return cap;
	int64_t share = study->budget.length_ns / processes - effort->window_ns;
	return share > cap ? cap : share < STEADY_MIN_NS ? STEADY_MIN_NS : share;
}

static void set_limits(const struct study *study, struct run_limits *limits)
{
	const struct effort_row *effort = study->effort;
	limits->warm_up_cap_ns = warm_up_cap(study);
	limits->window_ns = effort->window_ns;
	limits->min_steps = effort->min_steps;
	limits->test_steadiness = effort->test_steadiness;
	limits->block_ns = BLOCK_MIN_NS;
	limits->window_block_ns = RECORD_BLOCK_NS;
	limits->window_max_ns = WINDOW_MAX_NS;
	limits->few_steps = FEW_STEPS;
	limits->start_delay_ns = effort == &effort_table[EFFORT_QUICK] ? 0 : START_DELAY_NS;
}

enum prony_status study_execute(struct study *study, struct run_settings *settings,
				struct error *err)
{
	struct run_caller caller = {
		.context = study, .decide = decide, .steady = judge_steady, .event = on_event};
	if (study->budget.length_ns > 0)
		caller.affords = affords;
	set_limits(study, &settings->limits);
	budget_begin(&study->budget, study->plan, study->left, needed_of(study->repeat),
		     settings->gate_only ? 0 : study->effort->window_ns);
	caller.order = study->budget.length_ns > 0 ? order : NULL;
	enum prony_status status = run_execute(study->plan, study->cells, settings, &caller, err);
	if (status != PRONY_OK || study_unfinished(study) > 0)
		return status;
	if (study->part > 0)
		return store_part_finish(study->store, study->run, study->part, clock_wall_ns(),
					 err);
	return store_run_finish(study->store, study->run, clock_wall_ns(), err);
}
