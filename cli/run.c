/* `prony run`: spec -> plan -> run -> store -> table. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/identity.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/machine_lock.h"
#include "cli/memory_limit.h"
#include "cli/results.h"
#include "cli/run_baseline.h"
#include "cli/run_job.h"
#include "cli/run_launch.h"
#include "cli/run_outcome.h"
#include "cli/run_part.h"
#include "cli/run_plan.h"
#include "diagnose/machine.h"
#include "diagnose/measured.h"
#include "report/summary.h"
#include "run/lock.h"

#define SECOND_NS INT64_C(1000000000)

#define LONG_S 1200 /* of a run, in seconds: options that shorten it are proposed */

/* How long other programs are watched before a run: enough to detect a busy processor. */
#define FINDINGS_WATCH_NS INT64_C(40000000)

static void on_event(void *context, const struct run_event *event, const struct run_cell *cell,
		     const struct estimate *so_far)
{
	struct job *job = context;
	progress_event(&job->progress, event, cell, so_far);
}

static enum prony_status execute(struct job *job, struct error *err)
{
	const struct run_options *o = job->options;
	char *lock = job->lock_fd >= 0 ? lock_default_path() : NULL;
	struct run_settings settings = {
		.seed = job->selection.spec.seed,
		.limits = {.request_timeout_ns = SECOND_NS * o->timeout,
			   .memory_limit_bytes = memory_limit_worker(o->memory_limit).bytes},
		.reference_bytes = memory_limit_reference(),
		.self = job->selection.self,
		.lock_path = lock,
		.lock_fd = job->lock_fd,
		.cpus = job->selection.cpus,
		.cpu_count = job->selection.cpu_count,
		.cache = true,
		.repeat_gates = o->gate,
		.gate_only = o->gate_only,
		.keep_bundle = o->keep_bundle,
		.setup_command = o->setup,
		.cleanup_command = o->cleanup,
		.stop = &stop_wanted,
	};
	job->study.listener = on_event;
	job->study.listener_context = job;
	progress_start(&job->progress);
	enum prony_status status = study_execute(&job->study, &settings, err);
	progress_end(&job->progress);
	free(lock);
	return status;
}

/* Prints the table or its JSON, and writes the report if requested. */
static enum prony_status show_result(struct job *job, struct error *err)
{
	struct stored_run stored;
	struct summary summary;
	char which[32];
	snprintf(which, sizeof which, "%lld", (long long)job->meta.id);
	bool as_json = !strcmp(job->options->format, "json");
	enum prony_status status =
		store_load_run(job->store, which, as_json ? STORE_CHECKS : 0, &stored, err);
	if (status != PRONY_OK)
		return status;
	summary_init(&summary, &stored);
	if (as_json) {
		json_t *json = summary_to_json(&summary);
		status = baseline_compare(job, &stored, json, err);
		cli_print_json(json);
		json_decref(json);
	} else {
		results_print(&summary);
		status = baseline_compare(job, &stored, NULL, err);
	}
	summary_release(&summary);
	stored_run_release(&stored);
	if (status == PRONY_OK && job->options->report)
		status = report_page(job->options->store, which, job->options->report, err);
	return status;
}

static bool something_runs(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->cells[i].status == CELL_PENDING)
			return true;
	return false;
}

/* Prints "4 cells, default effort: 20 to 48 processes, about 17 min". */
static void say_time(struct job *job)
{
	char time[240], effort[40] = "", line[340];
	size_t count = job->selection.plan.count;
	if (!job->left.gate_only)
		snprintf(effort, sizeof effort, ", %s effort", job->study.effort->name);
	time_left_plan_text(&job->left, time, sizeof time);
	if (job->lock_fd >= 0) {
		time_left_text(&job->left, clock_monotonic_ns(), line, sizeof line);
		lock_say_holder(job->lock_fd, line);
	}
	snprintf(line, sizeof line, "%zu cell%s%s: %s", count, count == 1 ? "" : "s", effort, time);
	progress_say(&job->progress, line);
}

/* Names the cells that cannot run, before the others are measured. */
static void say_lacks(struct job *job)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	if (something_runs(&job->selection.plan) && plan_lacks_text(&job->selection.plan, &line))
		progress_say(&job->progress, strbuf_text(&line));
	strbuf_release(&line);
}

/* Whether the budget is too short for one process of each cell. */
static bool budget_is_short(const struct job *job)
{
	double needed = 0, reference;
	for (size_t i = 0; i < job->selection.plan.count; i++)
		if (!job->left.cells[i].ended)
			needed += time_left_first(&job->left, i, 1, &reference);
	return needed > job->left.budget;
}

/* Proposes options that shorten a long run, or give more cells a figure in a short one. */
static void say_shorter(struct job *job)
{
	bool quick = job->study.effort == &effort_table[EFFORT_QUICK];
	if (job->options->budget && !quick && !job->left.gate_only && budget_is_short(job))
		progress_say(&job->progress, "the budget is too short for a process of each cell; "
					     "--quick takes less time for each (screening)");
	if (time_left_seconds(&job->left, job->left.began_ns) < LONG_S || job->options->budget ||
	    job->left.gate_only)
		return;
	cli_say("to take less time: %s--budget 10m (ends within that time)\n",
		quick ? "" : "--quick (for screening), or ");
}

static int dry_run(struct job *job)
{
	say_time(job);
	say_shorter(job);
	if (!strcmp(job->options->format, "json")) {
		json_t *json = plan_to_json(&job->selection.plan);
		cli_print_json(json);
		json_decref(json);
		return 0;
	}
	struct strbuf text;
	strbuf_init(&text, 0);
	if (job->options->show_command)
		plan_commands_text(&job->selection.plan, &text);
	else
		plan_text(&job->selection.plan, cli_width(), job->options->full, &text);
	cli_page(strbuf_text(&text));
	strbuf_release(&text);
	return 0;
}

static enum prony_status make_plan(struct job *job, const char **suites, size_t count,
				   struct error *err)
{
	struct budget budget;
	enum prony_status status = budget_parse(job->options->budget, &budget, err);
	if (status == PRONY_OK)
		status = selection_make(&job->selection, job->options, suites, count, err);
	if (status != PRONY_OK)
		return status;
	run_part_take(job);
	status = study_init(&job->study, &job->selection.plan,
			    &effort_table[job->selection.spec.effort], job->selection.spec.repeat,
			    err);
	if (status != PRONY_OK)
		return status;
	job->study.part = job->part.part;
	job->study.budget = budget;
	job->study.left = &job->left;
	time_left_init(&job->left, &job->selection.plan, job->study.effort,
		       job->selection.spec.repeat, job->selection.spec.gate_only,
		       job->selection.cpu_count, (double)budget.length_ns * 1e-9);
	progress_init(&job->progress, &job->selection.plan, &job->left);
	for (size_t i = 0; i < job->selection.plan.note_count; i++)
		progress_say(&job->progress, job->selection.plan.notes[i]);
	return PRONY_OK;
}

/* Prints the conditions of this machine that will disturb the measurement. */
static void say_findings(struct job *job)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	if (conditions_found(job->machine, false, &line)) {
		strbuf_puts(&line, "; see prony doctor");
		progress_say(&job->progress, strbuf_text(&line));
	}
	strbuf_release(&line);
}

/* The SHA-256 of each library of native, the floor, by the name of the framework. (54 MB take 0.16
 * s; other frameworks' libraries may have a gigabyte.) */
static json_t *floor_libraries(const struct plan *plan)
{
	json_t *libraries = json_object();
	for (size_t i = 0; i < plan->count; i++) {
		const struct framework_location *place = plan->cells[i].location;
		char hex[DIGEST_HEX_BYTES];
		struct error ignored = ERROR_INIT;
		if (plan->cells[i].status != CELL_PENDING || !place->framework->floor ||
		    !place->library)
			continue;
		char *name = memory_printf("%s%s%s", place->framework->name,
					   *place->environment ? "@" : "", place->environment);
		if (!json_object_get(libraries, name) &&
		    digest_file(place->library, hex, &ignored) == PRONY_OK)
			json_object_set_new(libraries, name, json_string(hex));
		free(name);
	}
	return libraries;
}

/* Adds which prony this is to the record. The hash of the machine covers it, so that a run is only
 * resumed by the prony that began it. */
static void add_program(struct job *job)
{
	if (!job->program) {
		job->program = json_object();
		json_object_set_new(job->program, "build", json_string(identity_build()));
		json_object_set_new(job->program, "sha256", json_string(identity_sha256()));
		json_object_set_new(job->program, "libraries",
				    floor_libraries(&job->selection.plan));
	}
	json_object_set(json_object_get(job->machine, "should_match"), "program", job->program);
}

static void record_machine(struct job *job)
{
	json_decref(job->machine);
	job->machine = machine_record("");
	measured_add(job->machine);
	add_program(job);
	job_drop_replaced(job);
}

/* Waits for the machine lock before any watching or timing, because another prony would count as
 * load. Then reads again what may have changed meanwhile: the record of the machine, and the run
 * that the baseline's name refers to. */
static enum prony_status take_machine(struct job *job, struct error *err)
{
	enum prony_status status = PRONY_OK;
	if (something_runs(&job->selection.plan)) {
		status = machine_lock(&stop_wanted, &job->lock_fd, err);
		if (status != PRONY_OK)
			return status;
		record_machine(job);
		baseline_release(job);
		status = baseline_load(job, err);
	}
	if (status == PRONY_OK)
		machine_findings_add(job->machine, "", FINDINGS_WATCH_NS);
	return status;
}

static void release_machine(struct job *job)
{
	if (job->lock_fd >= 0)
		close(job->lock_fd);
	job->lock_fd = -1;
}

/* Shows what an interrupted run has measured; whoever reads JSON or the page finds it also if that
 * is nothing. The run's own error stays; another one is printed. */
static void show_so_far(struct job *job)
{
	struct error err = ERROR_INIT;
	const struct run_options *o = job->options;
	bool any = o->report || !strcmp(o->format, "json");
	if ((any || study_began(&job->study, o->gate_only)) && show_result(job, &err) != PRONY_OK)
		cli_fail(&err);
}

static enum prony_status measure(struct job *job, const struct cli_call *call, struct error *err)
{
	record_machine(job);
	catch_signals();
	enum prony_status status = baseline_load(job, err);
	if (status == PRONY_OK)
		status = store_open(job->options->store, false, &job->store, err);
	if (status == PRONY_OK)
		status = take_machine(job, err);
	if (status == PRONY_OK)
		status = job_begin_run(job, call->argc, call->argv, err);
	if (status == PRONY_OK)
		status = baseline_is_older(job, err);
	if (status == PRONY_OK)
		status = study_register(&job->study, job->store, job->meta.id, job->options->resume,
					err);
	if (status == PRONY_OK) {
		time_left_begin(&job->left, job->study.cells, clock_monotonic_ns());
		say_time(job);
		if (job->options->budget)
			say_shorter(job);
		say_lacks(job);
		say_findings(job);
		status = execute(job, err);
	}
	/* Release the machine lock before printing: the pager may block. */
	release_machine(job);
	if (status == PRONY_OK)
		status = show_result(job, err);
	else if (status == PRONY_INTERRUPTED && job->study.store)
		show_so_far(job);
	return status;
}

/* --launch: the nodes measure, here their results are imported and shown. Returns the exit code. */
static int measure_on_nodes(struct job *job, const struct cli_call *call, struct error *err)
{
	int exit_code = job->options->dry_run ? dry_run(job) : 0;
	struct error shown = ERROR_INIT;
	run_launch(job, call, &exit_code, err);
	/* An error of the run stays, and is the one that counts. */
	if (job->meta.id && show_result(job, &shown) != PRONY_OK)
		error_set(err, shown.code, "%s", shown.text);
	return exit_code;
}

static enum prony_status show_reference(void *context, const struct run_event *event,
					struct error *err)
{
	struct job *job = context;
	(void)err;
	progress_event(&job->progress, event, &job->study.cells[event->cell], NULL);
	return PRONY_OK;
}

/* --keep-proofs: computes references and measures nothing. */
static enum prony_status keep_proofs(struct job *job, struct error *err)
{
	const struct run_settings settings = {.seed = job->selection.spec.seed,
					      .reference_bytes = memory_limit_reference(),
					      .self = job->selection.self,
					      .cache = true,
					      .stop = &stop_wanted};
	const struct run_caller caller = {.context = job, .event = show_reference};
	const char *folder = job->options->keep_proofs;
	struct proofs kept;
	catch_signals();
	enum prony_status status = machine_lock(&stop_wanted, &job->lock_fd, err);
	if (status != PRONY_OK)
		return status;
	job->left.gate_only = true;
	progress_start(&job->progress);
	status = proofs_keep(&job->selection.plan, job->study.cells, &settings, &caller, folder,
			     &kept, err);
	progress_end(&job->progress);
	if (status == PRONY_OK)
		cli_out("%s/cache: the references of %zu and the first losses of %zu of %zu works, "
			"%zu passed gates\n",
			folder, kept.references, kept.losses, kept.works, kept.gates);
	return status;
}

static void job_release(struct job *job)
{
	baseline_release(job);
	json_decref(job->machine);
	json_decref(job->program);
	store_close(job->store);
	release_machine(job);
	time_left_release(&job->left);
	study_release(&job->study);
	selection_release(&job->selection);
}

/* Fails before any measurement if bundles cannot be written to the folder. */
static enum prony_status check_folder(const char *path, struct error *err)
{
	enum prony_status status = directory_make(path, err);
	if (status != PRONY_OK)
		return status;
	char *file = path_join(path, "case.json");
	status = file_check_output(file, err);
	free(file);
	return status;
}

int command_run(const struct cli_call *call, struct error *err)
{
	struct run_options *options = &run_options;
	struct job job = {.options = options, .lock_fd = -1};
	int exit_code = 0;
	options->dry_run |= options->show_command;
	selection_init(&job.selection);
	enum prony_status status = run_allow_parse(&options->allow, &job.allowed, err);
	if (status == PRONY_OK)
		status = baseline_check_options(options, job.allowed, err);
	if (status == PRONY_OK)
		status = run_part_check(options, err);
	if (status == PRONY_OK)
		status = run_launch_check(options, call, err);
	if (status == PRONY_OK)
		status = results_check_output(options->report, options->store, err);
	if (status == PRONY_OK && options->keep_bundle && !options->dry_run)
		status = check_folder(options->keep_bundle, err);
	if (status == PRONY_OK)
		status = make_plan(&job, call->words, call->count, err);
	if (status == PRONY_OK && options->launch)
		exit_code = measure_on_nodes(&job, call, err);
	else if (status == PRONY_OK && options->dry_run)
		exit_code = dry_run(&job);
	else if (status == PRONY_OK && options->keep_proofs)
		status = keep_proofs(&job, err);
	else if (status == PRONY_OK)
		status = measure(&job, call, err);
	if (status == PRONY_INTERRUPTED && job.meta.id && !options->launch) {
		exit_code = cli_fail(err);
		error_clear(err);
		cli_say("prony: the results so far are stored; to continue, add --resume to the "
			"command\n");
	} else if (status == PRONY_OK && !options->dry_run && !options->keep_proofs &&
		   !options->launch) {
		/* A part of a run with fewer tables than parts may be empty. */
		bool failed = job.selection.plan.count > 0 && run_has_failed(&job);
		exit_code = run_exit(&job, failed);
		baseline_save(&job, failed, err);
	}
	job_release(&job);
	return exit_code;
}
