/* Drives one worker process through its phases and then through profiled steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process_tree.h"
#include "bundle/bundle.h"
#include "client/leftover.h"
#include "profile/profile_internal.h"
#include "profile/read.h"
#include "run/team.h"
#include "sensors/sampling.h"

#define RECORDS_MAX 4096
#define WARM_NS INT64_C(300000000)
#define PLAIN_NS INT64_C(500000000) /* before, and again after profiling layers */
#define LAYERS_NS INT64_C(1000000000)
#define LINES_NS INT64_C(300000000) /* without the tracer */
#define CORES_NS INT64_C(200000000)
#define EVENTS_WANTED 50000

/* The state of a profiling process. */
struct taking {
	struct profile *profile;
	const struct profile_settings *settings;
	struct launch launch;
	struct team *team;
	struct sampling *sampling;
	struct process_record record; /* for its series only */
	int64_t steps_done, plain_steps, plain_ns, plain_from_ns, plain_to_ns;
	double step_ns; /* best estimate of a step's duration */
	unsigned profiles;
};

const char *profile_phase_name(int phase)
{
	static const char *const names[] = {
#define X(id, name) [PROFILE_PHASE_##id] = name,
		PROFILE_PHASES(X)
#undef X
	};
	return names[phase];
}

static int64_t clamp(double value, int64_t least, int64_t most)
{
	return value < (double)least ? least : value > (double)most ? most : (int64_t)value;
}

static int64_t patience(const struct taking *t, int64_t steps)
{
	return t->settings->run->limits.request_timeout_ns +
	       (int64_t)(20 * (double)steps * t->step_ns);
}

static int64_t next_slot(const struct taking *t)
{
	return t->steps_done % t->launch.cell->recipe.slots;
}

static void add_phase(struct profile *profile, int phase, int64_t begin_ns, int64_t ns,
		      int64_t steps)
{
	struct profile_phase *row = &profile->phases[phase];
	if (row->ns < 0)
		*row = (struct profile_phase){.begin_ns = begin_ns};
	row->ns += ns;
	row->steps += steps;
}

/* Runs steps without profiling; they count as a phase. */
static enum prony_status run_steps(struct taking *t, int phase, int64_t steps, struct error *err)
{
	struct client_window window;
	enum prony_status status = team_run(t->team, steps, SYNC_STEP, 1, next_slot(t),
					    patience(t, steps), &window, err);
	if (status != PRONY_OK)
		return status;
	int64_t begin = window.records[0].begin_ns;
	int64_t passed = window.records[window.count - 1].end_ns - begin;
	t->steps_done += steps;
	t->step_ns = (double)passed / (double)steps;
	add_phase(t->profile, phase, begin, passed, steps);
	return PRONY_OK;
}

static enum prony_status warm_up(struct taking *t, struct error *err)
{
	enum prony_status status = PRONY_OK;
	int64_t fixed = t->launch.cell->warm_up_steps, passed = 0;
	if (fixed >= 0)
		return fixed > 0 ? run_steps(t, PROFILE_PHASE_WARM,
					     clamp((double)fixed, 1, RECORDS_MAX), err)
				 : PRONY_OK;
	for (int64_t steps = 1; status == PRONY_OK && steps <= RECORDS_MAX && passed < WARM_NS;
	     steps *= 2) {
		status = run_steps(t, PROFILE_PHASE_WARM, steps, err);
		passed += (int64_t)(t->step_ns * (double)steps);
	}
	return status;
}

static enum prony_status run_plain(struct taking *t, struct error *err)
{
	int64_t wanted = t->settings->steps;
	int64_t steps =
		clamp(wanted > 0 ? (double)wanted : (double)PLAIN_NS / t->step_ns, 2, RECORDS_MAX);
	sampling_mark(t->sampling, true);
	int64_t begin = clock_monotonic_ns();
	enum prony_status status = run_steps(t, PROFILE_PHASE_STEPS, steps, err);
	if (status == PRONY_OK && t->plain_from_ns == 0) {
		t->plain_from_ns = begin;
		t->plain_to_ns = clock_monotonic_ns();
	}
	sampling_mark(t->sampling, false);
	return status;
}

static enum prony_status
ask_profile(struct taking *t, enum protocol_profile what, int64_t steps,
	    enum prony_status (*read)(struct profile *profile, const char *path,
				      const struct profile_bracket *bracket, struct error *err),
	    struct error *err)
{
	struct profile_bracket bracket = {.steps = steps};
	char *path = path_join(t->launch.folder, BUNDLE_PROFILE_FILE);
	enum prony_status status =
		client_profile(t->team->clients[0], what, steps, next_slot(t), patience(t, steps),
			       &bracket.begin_ns, &bracket.end_ns, err);
	t->steps_done += steps;
	if (status == PRONY_OK)
		status = read(t->profile, path, &bracket, err);
	if (status == PRONY_OK)
		add_phase(t->profile,
			  what == PROFILE_LAYERS ? PROFILE_PHASE_LAYERS : PROFILE_PHASE_LINES,
			  bracket.begin_ns, bracket.end_ns - bracket.begin_ns, steps);
	free(path);
	return status;
}

/* Profile one step first and keep only its number of events: it covers one-time work of the
 * profiler and shows how many steps fit. */
static enum prony_status take_layers(struct taking *t, struct error *err)
{
	struct profile *profile = t->profile;
	if (!(t->profiles & 1u << PROFILE_LAYERS))
		return PRONY_OK;
	enum prony_status status = ask_profile(t, PROFILE_LAYERS, 1, profile_read_layers, err);
	if (status != PRONY_OK)
		return status;
	int64_t most = EVENTS_WANTED / (int64_t)profile->span_count;
	int64_t steps = clamp((double)LAYERS_NS / t->step_ns, 3, most < 3 ? 3 : most);
	if (t->settings->steps > 0)
		steps = t->settings->steps;
	profile->phases[PROFILE_PHASE_LAYERS].ns = -1;
	status = ask_profile(t, PROFILE_LAYERS, steps, profile_read_layers, err);
	if (status == PRONY_OK)
		profile_sum_layers(profile,
				   t->launch.work->is_model ? NULL : &t->launch.work->graph);
	return status;
}

static enum prony_status take_lines(struct taking *t, struct error *err)
{
	if (!(t->profiles & 1u << PROFILE_LINES))
		return PRONY_OK;
	enum prony_status status = ask_profile(t, PROFILE_LINES, 1, profile_read_lines, err);
	int64_t steps = t->settings->steps > 0 ? t->settings->steps
					       : clamp((double)LINES_NS / t->step_ns, 3, 100);
	/* A single step is not a profile, in case the others fail. */
	t->profile->phases[PROFILE_PHASE_LINES].ns = -1;
	t->profile->has_lines = false;
	return status == PRONY_OK ? ask_profile(t, PROFILE_LINES, steps, profile_read_lines, err)
				  : status;
}

static enum prony_status read_back(struct taking *t, struct error *err)
{
	const struct plan_cell *cell = t->launch.cell;
	const char *what = t->launch.work->is_model		 ? "outputs"
			   : cell->recipe.stage == STAGE_FORWARD ? "logits"
								 : "loss";
	struct arena arena;
	struct tensor_set set;
	arena_init(&arena, 0);
	int64_t begin = clock_monotonic_ns();
	enum prony_status status = team_read(t->team, what, &arena, &set, err);
	if (status == PRONY_OK)
		add_phase(t->profile, PROFILE_PHASE_READ, begin, clock_monotonic_ns() - begin, 0);
	arena_release(&arena);
	return status;
}

/* The phases timed by the session follow each other from the start of the process. */
static void keep_facts(struct taking *t, const struct worker_facts *facts)
{
	const int64_t took[] = {facts->spawn_ns, facts->import_ns, facts->open_ns, facts->build_ns,
				facts->feed_ns};
	int64_t at = client_started_ns(t->team->clients[0]);
	for (int i = 0; i < (int)(sizeof took / sizeof *took); i++) {
		add_phase(t->profile, PROFILE_PHASE_START + i, at, took[i], 0);
		at += took[i];
	}
	t->profiles = facts->profiles;
	snprintf(t->profile->version, sizeof t->profile->version, "%s",
		 json_string_or(facts->details, "version", ""));
	snprintf(t->profile->no_layers, sizeof t->profile->no_layers, "%s", facts->no_layers);
}

static enum prony_status ask_worker(struct taking *t, struct error *err)
{
	struct worker_facts facts = {0};
	if (t->launch.cell->target.world_size > 1)
		return error_set(err, PRONY_UNSUPPORTED,
				 "device %s: several ranks cannot be profiled; use one, cpu:%d",
				 t->launch.cell->cell.device, t->launch.cell->recipe.threads);
	enum prony_status status =
		team_launch(t->team, &t->launch, RECORDS_MAX, INPUT_RESIDENT, err);
	if (status == PRONY_OK)
		status = sampling_start(PROCESS_HERE, client_guard(t->team->clients[0]),
					t->launch.cpus, t->launch.cpu_count, NULL, &t->sampling,
					err);
	if (status == PRONY_OK)
		status = team_prepare(t->team, &t->launch, &t->launch.cell->recipe, &facts, err);
	if (status == PRONY_OK)
		keep_facts(t, &facts);
	worker_facts_release(&facts);
	if (status == PRONY_OK)
		status = run_steps(t, PROFILE_PHASE_FIRST, 1, err);
	if (status == PRONY_OK)
		status = warm_up(t, err);
	if (status == PRONY_OK)
		status = run_plain(t, err);
	if (status == PRONY_OK)
		status = take_layers(t, err);
	if (status == PRONY_OK)
		status = run_plain(t, err);
	if (status == PRONY_OK)
		status = take_lines(t, err);
	return status == PRONY_OK ? read_back(t, err) : status;
}

/* The share of each processor during steps without profiling. */
static void keep_cores(struct taking *t)
{
	struct profile *profile = t->profile;
	const struct series *cpu = series_find(t->record.series, t->record.series_count, "cpu");
	/* The kernel counts in hundredths of a second, so shorter stretches would give 0 or 1. */
	if (!cpu || t->plain_to_ns - t->plain_from_ns < CORES_NS)
		return;
	profile->cores = arena_array(&profile->arena, cpu->channel_count, sizeof *profile->cores);
	profile->core_names =
		arena_array(&profile->arena, cpu->channel_count, sizeof(*profile->core_names));
	for (size_t i = 0; i < cpu->channel_count; i++) {
		profile->cores[i] = series_over(cpu, i, t->plain_from_ns, t->plain_to_ns).mean;
		profile->core_names[i] = arena_strdup(&profile->arena, cpu->channels[i]);
	}
	profile->core_count = cpu->channel_count;
}

static enum prony_status take(struct taking *t, struct error *err)
{
	struct profile *profile = t->profile;
	struct error why = ERROR_INIT;
	struct team team = {.count = 0};
	struct client_end end;
	t->team = &team;
	enum prony_status status = ask_worker(t, &why);
	sampling_stop(t->sampling, &t->record);
	keep_cores(t);
	team_end(&team, &end);
	free(end.log);
	if (status == PRONY_INTERRUPTED || status == PRONY_NOMEM)
		return error_set(err, status, "%s", why.text);
	const struct profile_phase *plain = &profile->phases[PROFILE_PHASE_STEPS];
	if (plain->steps > 0)
		profile->step_ns = (double)plain->ns / (double)plain->steps;
	profile->status = status == PRONY_OK ? CELL_OK : cell_status_from(status);
	snprintf(profile->reason, sizeof profile->reason, "%s", why.text);
	return PRONY_OK;
}

static enum prony_status take_in(const struct plan_cell *cell,
				 const struct profile_settings *settings, struct workload *work,
				 const char *folder, struct profile *out, struct error *err)
{
	static const struct run_caller deaf = {.context = NULL};
	char *bundle = path_join(folder, "case");
	struct taking t = {.profile = out,
			   .settings = settings,
			   .launch = {.settings = settings->run,
				      .caller = &deaf,
				      .cell = cell,
				      .work = work,
				      .folder = bundle,
				      .cpus = settings->run->cpus,
				      .cpu_count = cell->recipe.threads,
				      .profile = true}};
	if (t.launch.cpu_count > settings->run->cpu_count)
		t.launch.cpu_count = settings->run->cpu_count;
	process_record_init(&t.record);
	enum prony_status status = workload_write_bundle(work, cell, false, bundle, err);
	if (status == PRONY_OK)
		status = take(&t, err);
	process_record_release(&t.record);
	free(bundle);
	return status;
}

enum prony_status profile_take(const struct plan_cell *cell,
			       const struct profile_settings *settings, struct profile *out,
			       struct error *err)
{
	struct workload work;
	char *folder = NULL;
	int lock_fd = -1;
	*out = (struct profile){.cell = cell, .status = cell->status};
	arena_init(&out->arena, 0);
	for (int i = 0; i < PROFILE_PHASE_COUNT; i++)
		out->phases[i].ns = -1;
	if (cell->status != CELL_PENDING) {
		snprintf(out->reason, sizeof out->reason, "%s", cell->reason);
		return PRONY_OK;
	}
	if (cell->cell.stage == STAGE_LOAD || cell->recipe.input == INPUT_STREAM ||
	    cell->recipe.input == INPUT_NATIVE) {
		out->status = CELL_UNSUPPORTED;
		snprintf(out->reason, sizeof out->reason,
			 "only steps on resident batches can be profiled; use --input resident");
		return PRONY_OK;
	}
	enum prony_status status = workload_init(&work, cell, settings->run->seed, err);
	if (status == PRONY_OK)
		status = leftover_claim(&folder, &lock_fd, err);
	if (status == PRONY_OK)
		status = take_in(cell, settings, &work, folder, out, err);
	if (folder)
		directory_remove(folder, NULL);
	if (lock_fd >= 0)
		close(lock_fd);
	free(folder);
	workload_release(&work);
	return status;
}

void profile_release(struct profile *profile)
{
	arena_release(&profile->arena);
	*profile = (struct profile){.status = CELL_PENDING};
}
