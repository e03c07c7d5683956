/* The works of cells, their bundles and their ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "run/schedule_internal.h"

#define REFERENCE_EVERY_NS INT64_C(200000000)

enum prony_status schedule_may_start(const struct schedule *s, struct error *err)
{
	if (s->settings->stop && *s->settings->stop)
		return error_set(err, PRONY_INTERRUPTED, "interrupted");
	struct file_stamp now = file_stamp(s->settings->self);
	if (!file_stamp_equal(&now, &s->program))
		return error_set(err, PRONY_IO,
				 "%s was replaced or removed during this run, so the run cannot "
				 "continue; the results so far are stored",
				 s->settings->self);
	if (s->settings->lock_path &&
	    !lock_file_stands(s->settings->lock_path, s->settings->lock_fd))
		return error_set(
			err, PRONY_IO,
			"the lock %s was removed or replaced, so another prony may measure "
			"at the same time; the results so far are stored (continue with "
			"--resume)",
			s->settings->lock_path);
	return PRONY_OK;
}

void schedule_say(const struct schedule *s, enum run_event_kind kind, size_t cell, int round,
		  const char *text)
{
	struct run_event event = {.kind = kind, .cell = cell, .round = round, .text = text};
	run_emit(s->caller, &event, NULL);
}

static void say_reference(void *context, double fraction)
{
	struct schedule *s = context;
	int64_t now = clock_monotonic_ns();
	if (now - s->watched_ns < REFERENCE_EVERY_NS)
		return;
	s->watched_ns = now;
	struct run_event event = {
		.kind = EVENT_REFERENCE, .cell = s->watched_cell, .fraction = fraction};
	run_emit(s->caller, &event, NULL);
}

static bool may_begin(void *context, double multiplications)
{
	struct schedule *s = context;
	char why[RUN_REASON_BYTES];
	s->refused = s->caller->affords &&
		     !s->caller->affords(s->caller->context, s->watched_cell, multiplications,
					 &s->control.deadline_ns, why);
	if (s->refused)
		schedule_say(s, EVENT_GATE_LATE, s->watched_cell, 0, why);
	return !s->refused;
}

struct reference_control *schedule_control(struct schedule *s, size_t cell)
{
	s->watched_cell = cell;
	s->refused = false;
	s->control = (struct reference_control){.stop = s->settings->stop,
						.may_begin = may_begin,
						.progress = say_reference,
						.context = s};
	return &s->control;
}

bool schedule_gave_up(const struct schedule *s)
{
	return s->refused ||
	       (s->control.deadline_ns > 0 && clock_monotonic_ns() >= s->control.deadline_ns);
}

enum prony_status schedule_need_work(struct schedule *s, size_t cell, struct error *err)
{
	if (s->cells[cell].work)
		return PRONY_OK;
	char key[CELL_KEY_BYTES];
	workload_key(&s->plan->cells[cell], key);
	for (size_t i = 0; i < s->work_count; i++)
		if (!strcmp(s->works[i]->key, key)) {
			s->cells[cell].work = s->works[i];
			return PRONY_OK;
		}
	struct workload *work = calloc(1, sizeof *work);
	if (!work)
		return error_set(err, PRONY_NOMEM, "no memory for the work of a cell");
	enum prony_status status =
		workload_init(work, &s->plan->cells[cell], s->settings->seed, err);
	if (s->settings->reference_bytes > 0)
		work->reference_bytes = s->settings->reference_bytes;
	work->answers = &s->answers;
	char *files = NULL;
	if (status == PRONY_OK && asprintf(&files, "%s/work-%zu", s->folder, s->work_count) < 0)
		status = error_set(err, PRONY_NOMEM, "no memory for a path");
	if (status == PRONY_OK)
		status = workload_share_files(work, files, err);
	free(files);
	if (status != PRONY_OK) {
		workload_release(work);
		free(work);
		return status;
	}
	s->cells[cell].work = s->works[s->work_count++] = work;
	return PRONY_OK;
}

/* Whether another cell that has not ended has the same work. */
static bool work_is_wanted(const struct schedule *s, size_t but)
{
	char key[CELL_KEY_BYTES];
	for (size_t cell = 0; cell < s->plan->count; cell++) {
		if (cell == but || s->cells[cell].status != CELL_PENDING)
			continue;
		workload_key(&s->plan->cells[cell], key);
		if (!strcmp(s->cells[but].work->key, key))
			return true;
	}
	return false;
}

static char *bundle_path(const struct schedule *s, size_t cell, bool gate)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s-%s", s->folder, s->plan->cells[cell].hash,
		     gate ? "gate" : "case") < 0)
		return NULL;
	return path;
}

/* Removes the bundle of a cell that has ended, and with the last cell of a work the files that they
 * shared. */
static void drop_files(struct schedule *s, size_t cell)
{
	if (!s->cells[cell].work)
		return;
	char *path = s->settings->keep_bundle ? NULL : bundle_path(s, cell, false);
	if (path)
		directory_remove(path, NULL);
	free(path);
	if (!work_is_wanted(s, cell))
		workload_drop_files(s->cells[cell].work);
}

static struct launch launch_of(const struct schedule *s, size_t cell, int round, const char *folder)
{
	const struct plan_cell *planned = &s->plan->cells[cell];
	struct launch launch = {.settings = s->settings,
				.caller = s->caller,
				.cell = planned,
				.index = cell,
				.work = s->cells[cell].work,
				.folder = folder,
				.cpus = s->settings->cpus,
				.cpu_count = planned->recipe.threads * s->cells[cell].work->ranks,
				.round = round,
				.replicate = s->cells[cell].tried};

	if (launch.cpu_count > s->settings->cpu_count)
		launch.cpu_count = s->settings->cpu_count;
	return launch;
}

enum prony_status schedule_launch(struct schedule *s, size_t cell, bool gate, int round,
				  struct launch *launch, char **folder, struct error *err)
{
	char *path = bundle_path(s, cell, gate);
	if (!path)
		return error_set(err, PRONY_NOMEM, "no memory for a path");
	*folder = path;
	*launch = launch_of(s, cell, round, path);
	if (!gate && s->cells[cell].bundled)
		return PRONY_OK;
	enum prony_status status =
		workload_write_bundle(s->cells[cell].work, launch->cell, gate, path, err);
	if (status == PRONY_OK && !gate)
		s->cells[cell].bundled = true;
	return status;
}

enum prony_status schedule_launch_seed(struct schedule *s, size_t cell, int round,
				       struct seeded *seeded, struct launch *launch, char **folder,
				       struct error *err)
{
	/* A seed whose process failed is tried again. */
	uint64_t seed = s->settings->seed + s->cells[cell].mean_count;
	*folder = bundle_path(s, cell, false);
	if (!*folder)
		return error_set(err, PRONY_NOMEM, "no memory for a path");
	*launch = launch_of(s, cell, round, *folder);
	seeded->cell = *launch->cell;
	seeded->cell.recipe.seed = seed;
	launch->cell = &seeded->cell;
	launch->work = &seeded->work;
	enum prony_status status = workload_init(&seeded->work, &seeded->cell, seed, err);
	seeded->work.reference_bytes = s->cells[cell].work->reference_bytes;
	seeded->work.answers = &s->answers;
	if (status == PRONY_OK)
		status = workload_need_loss(&seeded->work, &seeded->cell, schedule_control(s, cell),
					    err);
	/* That of the seed before. */
	if (status == PRONY_OK)
		status = directory_remove(*folder, err);
	if (status == PRONY_OK)
		status = workload_write_bundle(&seeded->work, &seeded->cell, false, *folder, err);
	return status;
}

void seeded_release(struct seeded *seeded)
{
	workload_release(&seeded->work);
}

enum prony_status schedule_end_cell(struct schedule *s, size_t cell, enum cell_status status,
				    const char *reason, struct error *err)
{
	struct run_cell *state = &s->cells[cell];
	state->status = status;
	drop_files(s, cell);
	struct run_event event = {.kind = EVENT_CELL_END,
				  .cell = cell,
				  .text = reason,
				  .status = status,
				  .flags = state->flags};
	return run_emit(s->caller, &event, err);
}

enum prony_status schedule_decide(struct schedule *s, size_t cell, enum run_choice *choice,
				  struct error *err)
{
	struct run_decision decision = s->caller->decide(s->caller->context, cell);
	*choice = decision.choice;
	if (decision.choice != RUN_END)
		return PRONY_OK;
	s->cells[cell].flags |= decision.flags;
	return schedule_end_cell(s, cell, decision.status, decision.reason, err);
}

enum prony_status schedule_end_broken(struct schedule *s, size_t cell, enum prony_status status,
				      struct error *err)
{
	if (status != PRONY_BAD_INPUT)
		return status;
	struct error why = *err;
	error_clear(err);
	return schedule_end_cell(s, cell, cell_status_from(status), why.text, err);
}

bool schedule_is_accident(enum cell_status ended)
{
	return ended == CELL_CRASHED || ended == CELL_TIMEOUT;
}
