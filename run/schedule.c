/* Runs the cells of a plan: gates first, then rounds of timed processes. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "client/leftover.h"
#include "run/schedule_internal.h"
#include "run/timing.h"

#define HOOK_OUTPUT_BYTES 200 /* the end of its output is in the message */
#define HOOK_TIMEOUT_NS INT64_C(600000000000)

void run_cell_add(struct run_cell *cell, const struct process_record *record)
{
	size_t n = cell->mean_count, room = n ? 2 * n : 1;
	if ((n & (n - 1)) == 0) {
		cell->means = memory_realloc(cell->means, room * sizeof *cell->means);
		cell->disturbances =
			memory_realloc(cell->disturbances, room * sizeof *cell->disturbances);
	}
	cell->means[n] = record->step_mean_ns;
	cell->disturbances[n] = process_disturbance(record);
	cell->mean_count++;
}

void run_cell_release(struct run_cell *cell)
{
	free(cell->means);
	free(cell->disturbances);
	cell->means = NULL;
	cell->disturbances = NULL;
	cell->mean_count = 0;
}

enum prony_status schedule_init(struct schedule *s, struct error *err)
{
	size_t count = s->plan->count ? s->plan->count : 1;
	s->works = calloc(count, sizeof *s->works);
	if (!s->works)
		return error_set(err, PRONY_NOMEM, "no memory for a schedule of %zu cells", count);
	if (s->settings->cache) {
		gate_cache_open(&s->gates, s->settings->self);
		cache_open(ANSWERS_CACHE, ANSWERS_LIMIT_BYTES, &s->answers);
	}
	s->program = file_stamp(s->settings->self);
	random_init_named(&s->random, s->settings->seed, "schedule");
	if (s->settings->keep_bundle) {
		enum prony_status status = directory_make(s->settings->keep_bundle, err);
		if (status == PRONY_OK && !(s->folder = strdup(s->settings->keep_bundle)))
			status = error_set(err, PRONY_NOMEM, "no memory for a path");
		return status;
	}
	leftover_sweep();
	return leftover_claim(&s->folder, &s->folder_fd, err);
}

void schedule_release(struct schedule *s)
{
	for (size_t i = 0; i < s->work_count; i++) {
		workload_release(s->works[i]);
		free(s->works[i]);
	}
	gate_cache_close(&s->gates);
	cache_close(&s->answers);
	if (s->folder && !s->settings->keep_bundle)
		directory_remove(s->folder, NULL);
	if (s->folder_fd >= 0)
		close(s->folder_fd);
	free(s->works);
	free(s->folder);
}

/* Runs a shell command before or after a process (--setup, --cleanup). */
static enum prony_status run_hook(const struct schedule *s, size_t cell, int round,
				  const char *command, const char *what, struct error *err)
{
	if (!command)
		return PRONY_OK;
	const char *argv[] = {"sh", "-c", command, NULL};
	struct process_spec spec = {.argv = argv, .stop = s->settings->stop};
	struct process_end end;
	schedule_say(s, EVENT_STAGE, cell, round, what);
	char *output = NULL;
	enum prony_status status =
		process_run(&spec, HOOK_TIMEOUT_NS, HOOK_OUTPUT_BYTES, &output, &end, err);
	/* Ctrl-C goes to all processes of the terminal; the command may end before prony's handler
	 * runs. */
	if (status == PRONY_OK && end.signalled && end.code == SIGINT)
		status = error_set(err, PRONY_INTERRUPTED, "interrupted");
	if (status == PRONY_OK && (end.signalled || end.code))
		status = error_set(err, PRONY_USAGE, "the %s command failed with %s %d: %s%s%s",
				   what, end.signalled ? "signal" : "exit code", end.code, command,
				   *output ? "; it printed: " : "", output);
	free(output);
	return status;
}

/* Reports how a process ended. Ends its cell unless the failure may be an accident and is the first
 * in a row. */
static enum prony_status take_record(struct schedule *s, size_t cell,
				     const struct process_record *record, struct error *err)
{
	struct run_cell *state = &s->cells[cell];
	enum cell_status ended = CELL_INVALID;
	cell_status_parse(record->status, &ended);
	state->tried++;
	if (ended == CELL_OK)
		run_cell_add(state, record);
	const struct run_event event = {.kind = EVENT_PROCESS_END,
					.cell = cell,
					.round = (int)record->round,
					.record = record};
	enum prony_status status = run_emit(s->caller, &event, err);
	if (status != PRONY_OK)
		return status;
	if (ended == CELL_OK) {
		state->failures = 0;
		return PRONY_OK;
	}
	if (!schedule_is_accident(ended) || ++state->failures >= FAILURES_MAX)
		return schedule_end_cell(s, cell, ended, record->error, err);
	return PRONY_OK;
}

/* Computes the first loss that is expected of a timed process, and makes its bundle. */
static enum prony_status launch_timed(struct schedule *s, size_t cell, int round,
				      struct seeded *seeded, struct launch *launch, char **folder,
				      struct error *err)
{
	const struct plan_cell *planned = &s->plan->cells[cell];
	enum prony_status status = PRONY_OK;

	if (planned->until.goal)
		return schedule_launch_seed(s, cell, round, seeded, launch, folder, err);
	if (!planned->ungated && planned->recipe.input != INPUT_NATIVE)
		status = workload_need_loss(s->cells[cell].work, planned, schedule_control(s, cell),
					    err);
	return status == PRONY_OK ? schedule_launch(s, cell, false, round, launch, folder, err)
				  : status;
}

static enum prony_status run_replicate(struct schedule *s, size_t cell, int round,
				       struct error *err)
{
	struct launch launch;
	struct seeded seeded = {.work = {.files = NULL}};
	struct process_record record;
	char *folder = NULL;
	json_t *details = NULL;
	bool doubted = false;
	process_record_init(&record);
	schedule_say(s, EVENT_PREPARE, cell, round, NULL);
	enum prony_status status = schedule_need_work(s, cell, err);
	if (status == PRONY_OK)
		status = launch_timed(s, cell, round, &seeded, &launch, &folder, err);
	if (status == PRONY_OK)
		status = run_hook(s, cell, round, s->settings->setup_command, "--setup", err);
	if (status == PRONY_OK && s->settings->limits.start_delay_ns > 0)
		clock_sleep_until_ns(
			clock_monotonic_ns() +
			(int64_t)random_below(&s->random,
					      (uint64_t)s->settings->limits.start_delay_ns));
	if (status == PRONY_OK)
		status = timing_run(&launch, &record, &s->cells[cell].flags, &details, err);
	if (status == PRONY_OK)
		status = emit_framework(s->caller, cell, details, err);
	if (status == PRONY_OK)
		status = schedule_doubt_kept(s, cell, details, &doubted, err);
	if (status == PRONY_OK && !doubted)
		status = take_record(s, cell, &record, err);
	if (status == PRONY_OK)
		status = run_hook(s, cell, round, s->settings->cleanup_command, "--cleanup", err);
	json_decref(details);
	process_record_release(&record);
	seeded_release(&seeded);
	free(folder);
	return status;
}

/* Ends the cells that need no other process. */
static enum prony_status end_cells(struct schedule *s, struct error *err)
{
	enum prony_status status = PRONY_OK;
	enum run_choice choice;
	for (size_t cell = 0; cell < s->plan->count && status == PRONY_OK; cell++)
		if (s->cells[cell].status == CELL_PENDING)
			status = schedule_decide(s, cell, &choice, err);
	return status;
}

static enum run_choice choice_of(const struct schedule *s, size_t cell)
{
	return s->caller->decide(s->caller->context, cell).choice;
}

/* Lists the cells of a round: those that need another process now, or all if all can wait. */
static size_t list_round(const struct schedule *s, size_t *round)
{
	size_t count = 0, waiting = 0;
	for (size_t cell = 0; cell < s->plan->count; cell++)
		if (s->cells[cell].status == CELL_PENDING) {
			round[count] = cell;
			enum run_choice choice = choice_of(s, cell);
			count += choice == RUN_NOW;
			waiting += choice == RUN_LATER;
		}
	for (size_t cell = 0; count == 0 && waiting > 0 && cell < s->plan->count; cell++)
		if (s->cells[cell].status == CELL_PENDING && choice_of(s, cell) == RUN_LATER)
			round[count++] = cell;
	return count;
}

/*
 * Returns the number of rounds so far; a resumed run continues after the last round that was begun.
 */
static int rounds_so_far(const struct schedule *s)
{
	int rounds = 0;
	for (size_t cell = 0; cell < s->plan->count; cell++)
		if (s->cells[cell].rounds > rounds)
			rounds = s->cells[cell].rounds;
	return rounds;
}

/* Runs the cell's gate if it has not run, and a process. */
static enum prony_status run_turn(struct schedule *s, size_t cell, int round, struct error *err)
{
	const struct run_cell *state = &s->cells[cell];
	enum prony_status status = schedule_may_start(s, err);
	if (status == PRONY_OK && choice_of(s, cell) <= RUN_LATER)
		status = schedule_gate(s, cell, err);
	if (status == PRONY_OK && state->status == CELL_PENDING && choice_of(s, cell) <= RUN_LATER)
		status = schedule_end_broken(s, cell, run_replicate(s, cell, round, err), err);
	if (status == PRONY_INTERRUPTED && !(s->settings->stop && *s->settings->stop) &&
	    schedule_gave_up(s)) {
		error_clear(err);
		status = PRONY_OK;
	}
	return status;
}

static enum prony_status run_rounds(struct schedule *s, struct error *err)
{
	size_t *cells = calloc(s->plan->count ? s->plan->count : 1, sizeof *cells), count;
	enum prony_status status =
		cells ? PRONY_OK : error_set(err, PRONY_NOMEM, "no memory for a round");
	for (int round = rounds_so_far(s); status == PRONY_OK; round++) {
		status = end_cells(s, err);
		count = status == PRONY_OK ? list_round(s, cells) : 0;
		if (count == 0)
			break;
		random_shuffle(&s->random, cells, count);
		if (s->caller->order)
			s->caller->order(s->caller->context, cells, count);
		for (size_t i = 0; i < count && status == PRONY_OK; i++)
			status = run_turn(s, cells[i], round, err);
	}
	free(cells);
	return status;
}

static bool anything_pending(const struct schedule *s)
{
	for (size_t cell = 0; cell < s->plan->count; cell++)
		if (s->cells[cell].status == CELL_PENDING)
			return true;
	return false;
}

enum prony_status run_execute(const struct plan *plan, struct run_cell *cells,
			      const struct run_settings *settings, const struct run_caller *caller,
			      struct error *err)
{
	struct schedule s = {.plan = plan,
			     .cells = cells,
			     .settings = settings,
			     .caller = caller,
			     .folder_fd = -1};
	if (!anything_pending(&s))
		return PRONY_OK;
	enum prony_status status = schedule_init(&s, err);
	if (status == PRONY_OK)
		status = gate_agreement(&s, err);
	for (size_t cell = 0; cell < plan->count && status == PRONY_OK && !caller->order; cell++)
		status = schedule_gate(&s, cell, err);
	if (status == PRONY_OK)
		status = run_rounds(&s, err);
	schedule_release(&s);
	return status;
}
