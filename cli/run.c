/* `prony run`: spec -> plan -> run -> store -> table. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "diagnose/machine.h"
#include "plan/plan.h"
#include "report/html.h"
#include "report/summary.h"
#include "run/run.h"
#include "samplers/procfs.h"
#include "stats/effort.h"
#include "stats/steady.h"
#include "store/store.h"

enum { CPUS_MAX = 1024, DEFAULT_TIMEOUT_S = 300 };
#define SECOND_NS INT64_C(1000000000)
#define START_DELAY_NS SECOND_NS /* docs/measurement.md: breaks up what is periodic on the machine */

static volatile int stop_wanted;

static void on_signal(int number)
{
	(void)number;
	stop_wanted = 1;
}

/* One cell's side of the store, and its process means so far. */
struct cell_book {
	int64_t id;
	double *means; /* of ok processes, in order */
	size_t mean_count, mean_capacity;
	int tried;
	bool ended_here;
	struct estimate estimate;
};

/* Everything of one `prony run`. */
struct job {
	const struct run_options *options;
	struct spec spec;
	struct plan plan;
	struct store *store;
	struct run_meta meta;
	struct cell_book *books;
	struct run_cell_state *states;
	const struct effort_row *effort;
	struct progress progress;
	json_t *machine;
	char *self;
	int cpus[CPUS_MAX], cpu_count;
	bool plan_ready;
};

static enum prony_status add_mean(struct cell_book *book, double mean, struct error *err)
{
	if (book->mean_count == book->mean_capacity) {
		size_t capacity = book->mean_capacity ? 2 * book->mean_capacity : 16;
		double *means = realloc(book->means, capacity * sizeof *means);
		if (!means)
			return error_set(err, PRONY_NOMEM, "no memory for process means");
		book->means = means;
		book->mean_capacity = capacity;
	}
	book->means[book->mean_count++] = mean;
	return PRONY_OK;
}

static bool wants_more(void *context, size_t cell, unsigned *flags)
{
	struct job *job = context;
	struct cell_book *book = &job->books[cell];
	bool not_converged = false;
	bool more = effort_wants_more(job->effort, job->spec.repeat, book->means, book->mean_count,
	                              book->tried, &not_converged);
	if (!more && not_converged)
		*flags |= CELL_FLAG_NOT_CONVERGED;
	return more;
}

static bool judge_steady(void *context, const struct step_record *blocks,
                         const int64_t *block_steps, size_t count, int64_t window_ns)
{
	(void)context;
	return steady_reached(blocks, block_steps, count, window_ns);
}

static enum prony_status sink_framework(void *context, size_t cell, const json_t *details,
                                        struct error *err)
{
	struct job *job = context;
	return store_cell_framework(job->store, job->books[cell].id, details, err);
}

static enum prony_status sink_gate(void *context, size_t cell, enum cell_status verdict,
                                   const json_t *evidence, const char *log, struct error *err)
{
	struct job *job = context;
	enum prony_status status =
		store_gate(job->store, job->books[cell].id, verdict, evidence, log, err);
	const json_t *details = json_object_get(evidence, "framework");
	if (status == PRONY_OK && details)
		status = store_cell_framework(job->store, job->books[cell].id, details, err);
	return status;
}

static enum prony_status sink_process(void *context, size_t cell,
                                      const struct process_record *record, struct error *err)
{
	struct job *job = context;
	struct cell_book *book = &job->books[cell];
	enum prony_status status = store_process(job->store, book->id, record, err);
	if (status != PRONY_OK)
		return status;
	book->tried++;
	if (!strcmp(record->status, "ok"))
		status = add_mean(book, record->step_mean_ns, err);
	return status;
}

/* Flags that follow from how the cell was run, not from what happened. */
static unsigned standing_flags(const struct job *job, size_t cell)
{
	unsigned flags = 0;
	if (job->spec.effort == EFFORT_QUICK)
		flags |= CELL_FLAG_SCREENING;
	if (job->plan.cells[cell].place.origin == ORIGIN_DISCOVERED)
		flags |= CELL_FLAG_DISCOVERED;
	return flags;
}

static enum prony_status sink_cell_end(void *context, size_t cell, enum cell_status status,
                                       unsigned flags, const char *reason, struct error *err)
{
	struct job *job = context;
	job->books[cell].ended_here = true;
	return store_cell_status(job->store, job->books[cell].id, status,
	                         flags | standing_flags(job, cell), reason, err);
}

static void on_event(void *context, const struct run_event *event)
{
	struct job *job = context;
	struct cell_book *book = &job->books[event->cell];
	struct estimate so_far;
	/* The record of this very event is not in the book yet. */
	double last[1] = {0};
	estimate_compute(book->means, book->mean_count, 0, &so_far);
	if (event->kind == EVENT_PROCESS_END && !strcmp(event->record->status, "ok")) {
		size_t count = book->mean_count + 1;
		double *means = malloc(count * sizeof *means);
		if (means) {
			if (book->mean_count)
				memcpy(means, book->means, book->mean_count * sizeof *means);
			means[count - 1] = event->record->step_mean_ns;
			estimate_compute(means, count, 0, &so_far);
			free(means);
		} else {
			last[0] = event->record->step_mean_ns;
			estimate_compute(last, 1, 0, &so_far);
		}
	}
	progress_event(&job->progress, event, &so_far);
}

/* Opens the run in the store: a new one, or with --resume the newest unfinished one of the same kind. */
static enum prony_status begin_run(struct job *job, int argc, char **argv, struct error *err)
{
	struct strbuf command;
	strbuf_init(&command, 1 << 16);
	strbuf_puts(&command, "prony");
	for (int i = 0; i < argc; i++)
		strbuf_printf(&command, " %s", argv[i]);
	char *canonical = spec_canonical(&job->spec);
	char *machine = json_dumps(job->machine, JSON_COMPACT | JSON_SORT_KEYS);
	struct run_meta *meta = &job->meta;
	snprintf(meta->suite, sizeof meta->suite, "%s", job->spec.suite ? job->spec.suite : "");
	snprintf(meta->version, sizeof meta->version, "%s", PRONY_VERSION);
	snprintf(meta->effort, sizeof meta->effort, "%s", effort_name(job->spec.effort));
	snprintf(meta->statistic, sizeof meta->statistic, "%s", job->spec.statistic);
	meta->seed = (int64_t)job->spec.seed;
	meta->started_wall_ns = clock_wall_ns();
	meta->finished_wall_ns = RECORD_NONE;
	meta->spec = canonical;
	meta->command = strbuf_text(&command);
	meta->environment = machine;
	machine_hash(job->machine, meta->environment_hash);
	if (gethostname(meta->host, sizeof meta->host - 1))
		snprintf(meta->host, sizeof meta->host, "unknown");
	enum prony_status status = PRONY_MISSING;
	if (job->options->resume) {
		struct error none = ERROR_INIT;
		status = store_run_unfinished(job->store, canonical, meta->environment_hash, &meta->id,
		                              &none);
		if (status == PRONY_MISSING)
			progress_say(&job->progress, "nothing to resume: a new run starts");
		else if (status != PRONY_OK)
			error_set(err, status, "%s", none.text);
	}
	if (status == PRONY_MISSING)
		status = store_run_begin(job->store, meta, err);
	meta->spec = meta->command = meta->environment = NULL;
	free(canonical);
	free(machine);
	strbuf_release(&command);
	return status;
}

/* Takes over what the store knows of a cell of a resumed run. */
static enum prony_status take_over(struct job *job, const struct stored_run *stored, size_t cell,
                                   struct error *err)
{
	struct cell_book *book = &job->books[cell];
	struct run_cell_state *state = &job->states[cell];
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < stored->cell_count; i++) {
		const struct stored_cell *old = &stored->cells[i];
		if (old->id != book->id)
			continue;
		for (size_t p = 0; p < old->process_count && status == PRONY_OK; p++) {
			book->tried++;
			state->tried++;
			unsigned flags = cell_flags_parse(old->processes[p].flags);
			state->flags |= flags;
			if (strcmp(old->processes[p].status, "ok"))
				continue;
			state->succeeded++;
			status = add_mean(book, old->processes[p].step_mean_ns, err);
		}
	}
	return status;
}

static enum prony_status register_cells(struct job *job, struct error *err)
{
	struct stored_run stored;
	char which[32];
	bool loaded = false;
	enum prony_status status = PRONY_OK;
	if (job->options->resume) {
		snprintf(which, sizeof which, "%lld", (long long)job->meta.id);
		status = store_load_run(job->store, which, false, false, &stored, err);
		loaded = status == PRONY_OK;
	}
	for (size_t i = 0; i < job->plan.count && status == PRONY_OK; i++) {
		const struct plan_cell *cell = &job->plan.cells[i];
		struct cell_state state;
		status = store_cell(job->store, job->meta.id, &cell->cell, &state, err);
		if (status != PRONY_OK)
			break;
		job->books[i].id = state.id;
		job->states[i] = (struct run_cell_state){.gate_done = state.gate_done,
		                                         .status = state.status, .flags = state.flags};
		if (loaded)
			status = take_over(job, &stored, i, err);
		if (status == PRONY_OK && state.status == CELL_PENDING && cell->status != CELL_PENDING) {
			job->states[i].status = cell->status;
			status = store_cell_status(job->store, state.id, cell->status, 0, cell->reason, err);
		}
	}
	if (loaded)
		stored_run_release(&stored);
	return status;
}

/* What a worker may take; 0 = not known. */
static int64_t memory_limit_bytes(const struct run_options *options)
{
	int64_t available = procfs_available_bytes();
	if (options->memory_limit)
		return (int64_t)options->memory_limit << 20;
	return available > 0 ? available / 10 * 9 : 0;
}

static void fill_settings(struct job *job, struct run_settings *settings)
{
	const struct run_options *o = job->options;
	*settings = (struct run_settings){
		.seed = job->spec.seed,
		.limits = {.warm_up_cap_ns = job->effort->warm_up_cap_ns,
		           .window_ns = job->effort->window_ns,
		           .min_steps = job->effort->min_steps,
		           .test_steadiness = job->effort->test_steadiness,
		           .processes_min = job->spec.repeat > 0 ? job->spec.repeat : OK_PROCESSES_MIN,
		           .request_timeout_ns = SECOND_NS * (o->timeout ? o->timeout : DEFAULT_TIMEOUT_S),
		           .memory_limit_bytes = memory_limit_bytes(o),
		           .start_delay_ns = job->spec.effort == EFFORT_QUICK ? 0 : START_DELAY_NS},
		.self = job->self,
		.cpus = job->cpus,
		.cpu_count = job->cpu_count,
		.keep_bundle = o->keep_bundle,
		.setup_command = o->setup,
		.cleanup_command = o->cleanup,
		.stop = &stop_wanted,
	};
}

static enum prony_status execute(struct job *job, struct error *err)
{
	struct run_settings settings;
	struct run_callbacks callbacks = {
		.context = job, .wants_more = wants_more, .steady = judge_steady,
		.framework = sink_framework, .gate = sink_gate, .process = sink_process,
		.cell_end = sink_cell_end, .event = on_event,
	};
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	fill_settings(job, &settings);
	enum prony_status status =
		run_execute(&job->plan, job->states, &settings, &callbacks, err);
	progress_end(&job->progress);
	if (status == PRONY_OK)
		status = store_run_finish(job->store, job->meta.id, clock_wall_ns(), err);
	return status;
}

static enum prony_status write_report(const struct summary *summary, const char *path,
                                      struct error *err)
{
	struct strbuf page;
	strbuf_init(&page, 0);
	const struct summary *summaries[] = {summary};
	enum prony_status status = html_report(summaries, 1, &page, err);
	if (status == PRONY_OK)
		status = file_write_atomic(path, page.text, page.length, err);
	strbuf_release(&page);
	return status;
}

/* The table, or its JSON, and the page when wanted. */
static enum prony_status show_result(struct job *job, struct error *err)
{
	struct stored_run stored;
	struct summary summary;
	char which[32];
	snprintf(which, sizeof which, "%lld", (long long)job->meta.id);
	enum prony_status status = store_load_run(job->store, which, true, false, &stored, err);
	if (status != PRONY_OK)
		return status;
	summary_init(&summary, &stored);
	if (!strcmp(job->options->format, "json")) {
		json_t *json = summary_to_json(&summary);
		cli_print_json(json);
		json_decref(json);
	} else {
		struct strbuf text;
		strbuf_init(&text, 0);
		summary_render(&summary, cli_colour(), cli_width(), &text);
		fputs(strbuf_text(&text), stdout);
		strbuf_release(&text);
	}
	if (job->options->report) {
		status = write_report(&summary, job->options->report, err);
		if (status == PRONY_OK)
			fprintf(stderr, "report: %s\n", job->options->report);
	}
	summary_release(&summary);
	stored_run_release(&stored);
	return status;
}

/* 1 when a cell that was asked for by name is not ok. */
static int outcome(const struct job *job)
{
	for (size_t i = 0; i < job->plan.count; i++) {
		enum cell_status status = job->states[i].status;
		bool lenient = status == CELL_UNSUPPORTED || status == CELL_MISSING;
		if (status != CELL_OK && (job->plan.cells[i].explicit_ || !lenient))
			return 1;
	}
	return 0;
}

static int dry_run(const struct job *job)
{
	json_t *json = plan_to_json(&job->plan);
	if (!strcmp(job->options->format, "json")) {
		cli_print_json(json);
		json_decref(json);
		return 0;
	}
	for (size_t i = 0; i < job->plan.count; i++) {
		const struct plan_cell *cell = &job->plan.cells[i];
		printf("%s  %s%s%s\n", cell->key,
		       cell->status == CELL_PENDING ? "would run" : cell_status_name(cell->status),
		       cell->status == CELL_PENDING ? "" : ": ",
		       cell->status == CELL_PENDING ? "" : cell->reason);
		if (!job->options->show_command || !cell->worker_argv)
			continue;
		fputs("   ", stdout);
		for (const char *const *row = cell->worker_environment; row && *row; row++)
			printf(" %s", *row);
		for (const char *const *word = cell->worker_argv; *word; word++)
			printf(" %s", *word);
		putchar('\n');
	}
	json_decref(json);
	return 0;
}

static int expected_processes(const struct job *job)
{
	int each = job->spec.repeat > 0 ? job->spec.repeat : job->effort->processes_start, sum = 0;
	for (size_t i = 0; i < job->plan.count; i++)
		if (job->plan.cells[i].status == CELL_PENDING)
			sum += each;
	return sum;
}

static enum prony_status make_plan(struct job *job, const char **suites, size_t count,
                                   struct error *err)
{
	enum prony_status status =
		run_options_spec(job->options, suites, count, &job->spec, err);
	if (status != PRONY_OK)
		return status;
	job->self = path_self();
	job->cpu_count = machine_cores(job->cpus, CPUS_MAX);
	struct plan_settings settings = {.data_folder = job->options->data, .self = job->self,
	                                 .cores = job->cpu_count,
	                                 .memory_bytes = memory_limit_bytes(job->options)};
	status = plan_expand(&job->spec, &settings, &job->plan, err);
	if (status != PRONY_OK)
		return status;
	job->plan_ready = true;
	job->effort = &effort_table[job->spec.effort];
	progress_init(&job->progress, &job->plan, expected_processes(job), 0);
	for (size_t i = 0; i < job->plan.note_count; i++)
		progress_say(&job->progress, job->plan.notes[i]);
	return PRONY_OK;
}

static enum prony_status measure(struct job *job, int argc, char **argv, struct error *err)
{
	char line[160];
	snprintf(line, sizeof line, "%zu cell%s, %s effort, %d process%s to run", job->plan.count,
	         job->plan.count == 1 ? "" : "s", job->effort->name, job->progress.expected,
	         job->progress.expected == 1 ? "" : "es");
	progress_say(&job->progress, line);
	size_t count = job->plan.count ? job->plan.count : 1;
	job->books = calloc(count, sizeof *job->books);
	job->states = calloc(count, sizeof *job->states);
	if (!job->books || !job->states)
		return error_set(err, PRONY_NOMEM, "no memory for %zu cells", count);
	job->machine = machine_record("");
	enum prony_status status = store_open(job->options->store, false, &job->store, err);
	if (status == PRONY_OK)
		status = begin_run(job, argc, argv, err);
	if (status == PRONY_OK)
		status = register_cells(job, err);
	for (size_t i = 0; i < job->plan.count && status == PRONY_OK; i++)
		job->progress.done += job->books[i].tried;
	if (status == PRONY_OK)
		status = execute(job, err);
	if (status == PRONY_OK)
		status = show_result(job, err);
	return status;
}

static void job_release(struct job *job)
{
	for (size_t i = 0; job->books && i < job->plan.count; i++)
		free(job->books[i].means);
	free(job->books);
	free(job->states);
	json_decref(job->machine);
	store_close(job->store);
	if (job->plan_ready)
		plan_release(&job->plan);
	spec_release(&job->spec);
	free(job->self);
}

int command_run(const struct cli_command *command, int argc, char **argv)
{
	struct run_options options;
	struct error err = ERROR_INIT;
	size_t count = 0;
	int exit_code = 0;
	const char **suites = calloc((size_t)argc + 1, sizeof *suites);
	run_options_init(&options);
	if (!suites || !cli_parse(command, argc, argv, &options, suites, &count, &exit_code)) {
		free(suites);
		return exit_code;
	}
	struct job job = {.options = &options};
	spec_init(&job.spec);
	enum prony_status status = make_plan(&job, suites, count, &err);
	if (status == PRONY_OK && options.dry_run)
		exit_code = dry_run(&job);
	else if (status == PRONY_OK)
		status = measure(&job, argc, argv, &err);
	if (status != PRONY_OK) {
		exit_code = cli_fail(&err);
		if (status == PRONY_INTERRUPTED && job.store)
			fputs("prony: what was measured is stored; the same command with --resume goes on\n",
			      stderr);
	} else if (!options.dry_run) {
		exit_code = outcome(&job);
	}
	job_release(&job);
	free(suites);
	return exit_code;
}
