#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/random.h"
#include "client/leftover.h"
#include "run/gate_cache.h"
#include "run/gating.h"
#include "run/lock.h"
#include "run/run.h"
#include "run/timing.h"

#define HOOK_TIMEOUT_NS INT64_C(600000000000)
#define REFERENCE_EVERY_NS INT64_C(200000000)
#define FAILURES_MAX 2 /* in a row: a crash or a time-out may be an accident once */

struct schedule {
	const struct plan *plan;
	struct run_cell *cells;
	const struct run_settings *settings;
	const struct run_callbacks *callbacks;
	struct workload **works; /* distinct ones; each cell uses one */
	size_t work_count;
	char *folder; /* bundles live below it */
	struct reference_watch watch;
	size_t watched_cell;
	int64_t watched_ns; /* when it was told last */
	struct gate_cache gates;
	struct cache answers;
	struct random random;
	int lock_fd, folder_fd;
};

void run_cell_add_mean(struct run_cell *cell, double mean_ns)
{
	/* Doubles at powers of two. */
	if ((cell->mean_count & (cell->mean_count - 1)) == 0)
		cell->means =
			memory_realloc(cell->means, (cell->mean_count ? 2 * cell->mean_count : 1) *
							    sizeof *cell->means);
	cell->means[cell->mean_count++] = mean_ns;
}

void run_cell_release(struct run_cell *cell)
{
	free(cell->means);
	cell->means = NULL;
	cell->mean_count = 0;
}

static void say_waiting(void *context, const char *path)
{
	struct schedule *s = context;
	struct run_event event = {.kind = EVENT_WAITING, .text = path};
	if (s->callbacks->event)
		s->callbacks->event(s->callbacks->context, &event);
}

static void say_reference(void *context, double fraction)
{
	struct schedule *s = context;
	int64_t now = clock_monotonic_ns();
	if (!s->callbacks->event || now - s->watched_ns < REFERENCE_EVERY_NS)
		return;
	s->watched_ns = now;
	struct run_event event = {
		.kind = EVENT_REFERENCE, .cell = s->watched_cell, .fraction = fraction};
	s->callbacks->event(s->callbacks->context, &event);
}

static struct reference_watch *watch_reference(struct schedule *s, size_t cell)
{
	s->watched_cell = cell;
	s->watch = (struct reference_watch){
		.stop = s->settings->stop, .progress = say_reference, .context = s};
	return &s->watch;
}

static enum prony_status schedule_init(struct schedule *s, struct error *err)
{
	size_t count = s->plan->count ? s->plan->count : 1;
	s->works = calloc(count, sizeof *s->works);
	if (!s->works)
		return error_set(err, PRONY_NOMEM, "no memory for a schedule of %zu cells", count);
	if (s->settings->cache) {
		gate_cache_open(&s->gates, s->settings->self);
		cache_open(ANSWERS_CACHE, ANSWERS_LIMIT_BYTES, &s->answers);
	}
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

static void schedule_release(struct schedule *s)
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
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->works);
	free(s->folder);
}

/* The work of a cell, shared with cells that differ in their framework only. */
static enum prony_status need_work(struct schedule *s, size_t cell, struct error *err)
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
	s->works[s->work_count++] = work;
	enum prony_status status =
		workload_init(work, &s->plan->cells[cell], s->settings->seed, err);
	if (s->settings->reference_bytes > 0)
		work->reference_bytes = s->settings->reference_bytes;
	work->answers = &s->answers;
	char *files = NULL;
	if (status == PRONY_OK && asprintf(&files, "%s/work-%zu", s->folder, s->work_count) < 0)
		return error_set(err, PRONY_NOMEM, "no memory for a path");
	if (status == PRONY_OK)
		status = workload_share_files(work, files, err);
	if (status == PRONY_OK)
		s->cells[cell].work = work;
	free(files);
	return status;
}

/* Whether a cell that has not ended, other than this one, has the same work. */
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

/* A cell has ended: its bundle goes, and with the last cell of a work the files that they shared.
 */
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

static enum prony_status make_drive(struct schedule *s, size_t cell, bool gate, int round,
				    struct drive *drive, char **folder, struct error *err)
{
	const struct plan_cell *planned = &s->plan->cells[cell];
	char *path = bundle_path(s, cell, gate);
	if (!path)
		return error_set(err, PRONY_NOMEM, "no memory for a path");
	*folder = path;
	*drive = (struct drive){.settings = s->settings,
				.callbacks = s->callbacks,
				.cell = planned,
				.index = cell,
				.work = s->cells[cell].work,
				.folder = path,
				.cpus = s->settings->cpus,
				.cpu_count = planned->recipe.threads,
				.round = round,
				.replicate = s->cells[cell].tried};
	if (drive->cpu_count > s->settings->cpu_count)
		drive->cpu_count = s->settings->cpu_count;
	if (!gate && s->cells[cell].bundled)
		return PRONY_OK;
	enum prony_status status =
		workload_write_bundle(s->cells[cell].work, planned, gate, path, err);
	if (status == PRONY_OK && !gate)
		s->cells[cell].bundled = true;
	return status;
}

static enum prony_status end_cell(struct schedule *s, size_t cell, enum cell_status status,
				  const char *reason, struct error *err)
{
	struct run_cell *state = &s->cells[cell];
	state->status = status;
	drop_files(s, cell);
	enum prony_status result = s->callbacks->cell_end(s->callbacks->context, cell, status,
							  state->flags, reason, err);
	struct run_event event = {.kind = EVENT_CELL_END, .cell = cell, .text = reason};
	if (s->callbacks->event)
		s->callbacks->event(s->callbacks->context, &event);
	return result;
}

/* A shell command around each process (--setup, --cleanup). */
static enum prony_status run_hook(const char *command, const char *what, struct error *err)
{
	if (!command)
		return PRONY_OK;
	const char *argv[] = {"sh", "-c", command, NULL};
	struct process_spec spec = {.argv = argv};
	struct process_end end;
	enum prony_status status = process_run(&spec, HOOK_TIMEOUT_NS, 65536, NULL, &end, err);
	if (status == PRONY_OK && (end.signalled || end.code))
		status = error_set(err, PRONY_USAGE, "the %s command failed with %s %d: %s", what,
				   end.signalled ? "signal" : "exit code", end.code, command);
	return status;
}

/* Takes the verdict of an earlier run over; *kept: there was one. */
static enum prony_status take_kept(struct schedule *s, size_t cell, const char *key, bool *kept,
				   struct error *err)
{
	struct kept_gate gate;
	/* Who wants bundles wants that of the gate, too. */
	*kept = !s->settings->repeat_gates && !s->settings->keep_bundle &&
		gate_cache_read(&s->gates, key, &gate);
	if (!*kept)
		return PRONY_OK;
	struct run_event event = {.kind = EVENT_GATE_KEPT,
				  .cell = cell,
				  .text = json_string_or(gate.evidence, "cached", "")};
	if (s->callbacks->event)
		s->callbacks->event(s->callbacks->context, &event);
	enum prony_status status = s->callbacks->gate(s->callbacks->context, cell, CELL_OK,
						      gate.evidence, gate.log, err);
	if (status == PRONY_OK)
		status = tell_framework(s->callbacks, cell,
					json_object_get(gate.evidence, "framework"), err);
	s->cells[cell].gate_done = s->cells[cell].gate_kept = status == PRONY_OK;
	kept_gate_release(&gate);
	return status;
}

/* Stores what came of a gate and draws the consequences for its cell. */
static enum prony_status take_gating(struct schedule *s, size_t cell, const struct gating *gating,
				     struct error *err)
{
	json_t *evidence = gating_evidence(gating);
	enum prony_status status =
		s->callbacks->gate(s->callbacks->context, cell, gating->status, evidence,
				   gating->log ? gating->log : "", err);
	json_decref(evidence);
	if (status == PRONY_OK && gating->compared)
		status = tell_framework(s->callbacks, cell, gating->framework, err);
	if (status != PRONY_OK)
		return status;
	s->cells[cell].gate_done = true;
	s->cells[cell].gate_kept = false;
	return gating->status == CELL_OK ? PRONY_OK
					 : end_cell(s, cell, gating->status, gating->reason, err);
}

/* `key`: under which a pass is kept; NULL: it is not. */
static enum prony_status run_gate(struct schedule *s, size_t cell, const char *key,
				  struct error *err)
{
	struct drive drive;
	struct gating gating = {.status = CELL_PENDING};
	char *folder = NULL;
	enum prony_status status =
		workload_need_gate(s->cells[cell].work, &s->plan->cells[cell], s->settings->seed,
				   watch_reference(s, cell), err);
	if (status == PRONY_OK)
		status = make_drive(s, cell, true, 0, &drive, &folder, err);
	if (status == PRONY_OK)
		status = gating_run(&drive, &gating, err);
	if (status == PRONY_OK && key)
		gate_cache_write(&s->gates, key, &gating);
	if (status == PRONY_OK)
		status = take_gating(s, cell, &gating, err);
	gating_release(&gating);
	if (folder && !s->settings->keep_bundle)
		directory_remove(folder, NULL);
	free(folder);
	return status;
}

/* `anew`: whatever was kept. */
static enum prony_status gate_cell(struct schedule *s, size_t cell, bool anew, struct error *err)
{
	const struct plan_cell *planned = &s->plan->cells[cell];
	char key[DIGEST_HEX_BYTES];
	bool keepable = false, kept = false;
	enum prony_status status = need_work(s, cell, err);
	if (status == PRONY_OK)
		status = workload_need_gate_case(s->cells[cell].work, planned, s->settings->seed,
						 err);
	if (status == PRONY_OK)
		keepable = gate_cache_key(&s->gates, planned, s->cells[cell].work, key);
	if (status == PRONY_OK && keepable && !anew)
		status = take_kept(s, cell, key, &kept, err);
	if (status == PRONY_OK && !kept)
		status = run_gate(s, cell, keepable ? key : NULL, err);
	return status;
}

/*
 * A kept verdict knows what the worker said of itself in the gate. One that now says otherwise, a
 * library that nobody saw change, is gated again before its time counts.
 */
static enum prony_status doubt_kept(struct schedule *s, size_t cell, const json_t *details,
				    bool *doubted, struct error *err)
{
	struct kept_gate gate;
	char key[DIGEST_HEX_BYTES];
	*doubted = false;
	/* One that ended before it said anything proves nothing. */
	if (!s->cells[cell].gate_kept || !json_object_get(details, "name"))
		return PRONY_OK;
	enum prony_status status = workload_need_gate_case(
		s->cells[cell].work, &s->plan->cells[cell], s->settings->seed, err);
	if (status != PRONY_OK)
		return status;
	*doubted = !gate_cache_key(&s->gates, &s->plan->cells[cell], s->cells[cell].work, key) ||
		   !gate_cache_read(&s->gates, key, &gate);
	if (!*doubted) {
		*doubted = !gate_cache_agrees(gate.evidence, details);
		kept_gate_release(&gate);
	}
	s->cells[cell].gate_kept = false;
	return *doubted ? gate_cell(s, cell, true, err) : PRONY_OK;
}

/* Stores a replicate's outcome and draws the consequences for its cell. */
static enum prony_status take_record(struct schedule *s, size_t cell,
				     const struct process_record *record, struct error *err)
{
	struct run_cell *state = &s->cells[cell];
	enum cell_status ended = CELL_INVALID;
	enum prony_status status = s->callbacks->process(s->callbacks->context, cell, record, err);
	if (status != PRONY_OK)
		return status;
	cell_status_parse(record->status, &ended);
	state->tried++;
	if (ended == CELL_OK)
		run_cell_add_mean(state, record->step_mean_ns);
	struct run_event event = {.kind = EVENT_PROCESS_END,
				  .cell = cell,
				  .round = (int)record->round,
				  .record = record};
	if (s->callbacks->event)
		s->callbacks->event(s->callbacks->context, &event);
	if (ended == CELL_OK) {
		state->failures = 0;
		return PRONY_OK;
	}
	bool accident = ended == CELL_CRASHED || ended == CELL_TIMEOUT;
	if (!accident || ++state->failures >= FAILURES_MAX)
		return end_cell(s, cell, ended, record->error, err);
	return PRONY_OK;
}

static enum prony_status run_replicate(struct schedule *s, size_t cell, int round,
				       struct error *err)
{
	const struct plan_cell *planned = &s->plan->cells[cell];
	struct drive drive;
	struct process_record record;
	char *folder = NULL;
	json_t *details = NULL;
	bool doubted = false;
	process_record_init(&record);
	enum prony_status status = need_work(s, cell, err);
	if (status == PRONY_OK && !planned->ungated)
		status = workload_need_loss(s->cells[cell].work, planned, watch_reference(s, cell),
					    err);
	if (status == PRONY_OK)
		status = make_drive(s, cell, false, round, &drive, &folder, err);
	if (status == PRONY_OK)
		status = run_hook(s->settings->setup_command, "--setup", err);
	if (status == PRONY_OK && s->settings->limits.start_delay_ns > 0)
		clock_sleep_until_ns(
			clock_monotonic_ns() +
			(int64_t)random_below(&s->random,
					      (uint64_t)s->settings->limits.start_delay_ns));
	if (status == PRONY_OK)
		status = timing_run(&drive, &record, &s->cells[cell].flags, &details, err);
	if (status == PRONY_OK)
		status = tell_framework(s->callbacks, cell, details, err);
	if (status == PRONY_OK)
		status = doubt_kept(s, cell, details, &doubted, err);
	if (status == PRONY_OK && !doubted)
		status = take_record(s, cell, &record, err);
	if (status == PRONY_OK)
		status = run_hook(s->settings->cleanup_command, "--cleanup", err);
	json_decref(details);
	process_record_release(&record);
	free(folder);
	return status;
}

static bool stopped(const struct schedule *s)
{
	return s->settings->stop && *s->settings->stop;
}

/* A cell that wants no further process ends: ok if enough of them were. */
static enum prony_status end_sated(struct schedule *s, size_t cell, struct error *err)
{
	int succeeded = (int)s->cells[cell].mean_count;
	int wanted = s->settings->limits.processes_min;
	char reason[96];
	if (succeeded > 0 && succeeded >= wanted)
		return end_cell(s, cell, CELL_OK, "", err);
	snprintf(reason, sizeof reason, "%d of %d processes ended ok, %d are needed", succeeded,
		 s->cells[cell].tried, wanted);
	return end_cell(s, cell, CELL_INVALID, reason, err);
}

/* Lists the cells that want another process; the others end. */
static enum prony_status gather(struct schedule *s, size_t *wanted, size_t *count,
				struct error *err)
{
	*count = 0;
	for (size_t cell = 0; cell < s->plan->count; cell++) {
		struct run_cell *state = &s->cells[cell];
		if (state->status != CELL_PENDING)
			continue;
		if (s->callbacks->wants_more(s->callbacks->context, cell, &state->flags)) {
			wanted[(*count)++] = cell;
			continue;
		}
		enum prony_status status = end_sated(s, cell, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

static enum prony_status run_rounds(struct schedule *s, struct error *err)
{
	size_t *wanted = calloc(s->plan->count ? s->plan->count : 1, sizeof *wanted), count;
	enum prony_status status =
		wanted ? PRONY_OK : error_set(err, PRONY_NOMEM, "no memory for a round");
	for (int round = 0; status == PRONY_OK; round++) {
		status = gather(s, wanted, &count, err);
		if (status != PRONY_OK || !count)
			break;
		random_shuffle(&s->random, wanted, count);
		for (size_t i = 0; i < count && status == PRONY_OK; i++) {
			if (stopped(s))
				status = error_set(err, PRONY_INTERRUPTED, "interrupted");
			else
				status = run_replicate(s, wanted[i], round, err);
		}
	}
	free(wanted);
	return status;
}

/* Those of all networks together would not fit. */
static void drop_gate_after(struct schedule *s, size_t done)
{
	char key[CELL_KEY_BYTES];
	if (!s->cells[done].work)
		return;
	for (size_t cell = done + 1; cell < s->plan->count; cell++) {
		workload_key(&s->plan->cells[cell], key);
		if (s->cells[cell].status == CELL_PENDING && !strcmp(s->cells[done].work->key, key))
			return;
	}
	workload_drop_gate(s->cells[done].work);
}

static enum prony_status run_gates(struct schedule *s, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t cell = 0; cell < s->plan->count && status == PRONY_OK; cell++) {
		const struct run_cell *state = &s->cells[cell];
		if (state->status != CELL_PENDING || state->gate_done ||
		    s->plan->cells[cell].ungated)
			continue;
		status = stopped(s) ? error_set(err, PRONY_INTERRUPTED, "interrupted")
				    : gate_cell(s, cell, false, err);
		drop_gate_after(s, cell);
	}
	return status;
}

static enum prony_status take_lock(struct schedule *s, struct error *err)
{
	char *path = s->settings->lock_path ? strdup(s->settings->lock_path) : lock_default_path();
	if (!path)
		return error_set(err, PRONY_NOMEM, "no memory for a path");
	enum prony_status status =
		lock_take(path, s->settings->stop, say_waiting, s, &s->lock_fd, err);
	free(path);
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
			      const struct run_settings *settings,
			      const struct run_callbacks *callbacks, struct error *err)
{
	struct schedule s = {.plan = plan,
			     .cells = cells,
			     .settings = settings,
			     .callbacks = callbacks,
			     .lock_fd = -1,
			     .folder_fd = -1};
	if (!anything_pending(&s))
		return PRONY_OK;
	enum prony_status status = schedule_init(&s, err);
	if (status == PRONY_OK)
		status = take_lock(&s, err);
	if (status == PRONY_OK)
		status = run_gates(&s, err);
	if (status == PRONY_OK)
		status = run_rounds(&s, err);
	schedule_release(&s);
	return status;
}
