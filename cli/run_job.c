#include "cli/run_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "cli/run_counted.h"
#include "diagnose/machine.h"
#include "frameworks/registry.h"
#include "run/gating.h"
#include "stats/steady.h"

static bool wants_more(void *context, size_t cell, unsigned *flags)
{
	struct job *job = context;
	const struct run_cell *at = &job->cells[cell];
	bool not_converged = false;
	bool more = counted_wants_more(at, job->effort, job->chosen.spec.repeat, &not_converged);
	if (!more && not_converged)
		*flags |= CELL_FLAG_NOT_CONVERGED;
	return more;
}

/* With a fixed number of processes there is nothing to choose. */
static bool can_wait(void *context, size_t cell)
{
	struct job *job = context;
	return job->chosen.spec.repeat == 0 &&
	       budget_later(&job->budget, job->cells, job->chosen.plan.count, cell,
			    OK_PROCESSES_MIN);
}

static const char *is_late(void *context, size_t cell)
{
	const struct job *job = context;
	return budget_late(&job->budget, cell);
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
	return store_cell_framework(job->store, job->cells[cell].id, details, err);
}

static enum prony_status sink_gate(void *context, size_t cell, enum cell_status verdict,
				   const json_t *evidence, const char *log, struct error *err)
{
	struct job *job = context;
	return store_gate(job->store, job->cells[cell].id, verdict, evidence, log, err);
}

static enum prony_status sink_process(void *context, size_t cell,
				      const struct process_record *record, struct error *err)
{
	struct job *job = context;
	return store_process(job->store, job->cells[cell].id, record, err);
}

/* Flags that follow from how the cell was run, not from what happened. */
static unsigned standing_flags(const struct job *job, size_t cell)
{
	unsigned flags = 0;
	if (job->chosen.spec.effort == EFFORT_QUICK)
		flags |= CELL_FLAG_SCREENING;
	if (job->chosen.plan.cells[cell].place->origin == ORIGIN_DISCOVERED)
		flags |= CELL_FLAG_DISCOVERED;
	if (job->chosen.plan.cells[cell].cell.input == INPUT_NATIVE &&
	    job->chosen.plan.cells[cell].place->framework->fed_by_script)
		flags |= CELL_FLAG_FED_BY_SCRIPT;
	return flags;
}

static enum prony_status sink_cell_end(void *context, size_t cell, enum cell_status status,
				       unsigned flags, const char *reason, struct error *err)
{
	struct job *job = context;
	return store_cell_status(job->store, job->cells[cell].id, status,
				 flags | standing_flags(job, cell), reason, err);
}

static void on_event(void *context, const struct run_event *event)
{
	struct job *job = context;
	const struct run_cell *cell = &job->cells[event->cell];
	struct estimate so_far;
	if (event->kind == EVENT_PROCESS_END)
		budget_spend(&job->budget, event->cell, event->record->total_ns);
	counted_estimate(cell, &so_far);
	progress_event(&job->progress, event, cell, &so_far);
}

void job_callbacks(struct job *job, struct run_callbacks *out)
{
	*out = (struct run_callbacks){
		.context = job,
		.wants_more = wants_more,
		.later = can_wait,
		.late = is_late,
		.steady = judge_steady,
		.framework = sink_framework,
		.gate = sink_gate,
		.process = sink_process,
		.cell_end = sink_cell_end,
		.event = on_event,
	};
}

/* Does every worker of the plan get a value of prony's own for the variable? */
static bool is_replaced(const struct plan *plan, const char *name)
{
	size_t length = strlen(name), workers = 0, replaced = 0;
	for (size_t i = 0; i < plan->count; i++) {
		const char *const *rows = plan->cells[i].worker_environment;
		workers += rows != NULL;
		while (rows && *rows && (strncmp(*rows, name, length) || (*rows)[length] != '='))
			rows++;
		replaced += rows && *rows;
	}
	return workers > 0 && replaced == workers;
}

void job_drop_replaced(struct job *job)
{
	json_t *set = json_object_get(json_object_get(job->machine, "should_match"), "environment");
	json_t *value;
	const char *name;
	void *next;
	json_object_foreach_safe(set, next, name, value)
	{
		if (is_replaced(&job->chosen.plan, name))
			json_object_del(set, name);
	}
}

enum prony_status job_begin_run(struct job *job, int argc, char **argv, struct error *err)
{
	struct strbuf command;
	strbuf_init(&command, 1 << 16);
	strbuf_puts(&command, "prony");
	for (int i = 0; i < argc; i++)
		strbuf_printf(&command, " %s", argv[i]);
	char *canonical = spec_canonical(&job->chosen.spec);
	char *machine = json_dumps(job->machine, JSON_COMPACT | JSON_SORT_KEYS);
	struct run_meta *meta = &job->meta;
	snprintf(meta->name, sizeof meta->name, "%s", job->options->name ? job->options->name : "");
	snprintf(meta->suite, sizeof meta->suite, "%s",
		 job->chosen.spec.suite ? job->chosen.spec.suite : "");
	snprintf(meta->version, sizeof meta->version, "%s", PRONY_VERSION);
	snprintf(meta->effort, sizeof meta->effort, "%s", effort_name(job->chosen.spec.effort));
	snprintf(meta->statistic, sizeof meta->statistic, "%s", job->chosen.spec.statistic);
	meta->seed = (int64_t)job->chosen.spec.seed;
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
		status = store_run_unfinished(job->store, canonical, meta->environment_hash,
					      &meta->id, &none);
		if (status == PRONY_MISSING)
			progress_say(&job->progress, "nothing to resume: a new run starts");
		else if (status != PRONY_OK)
			error_set(err, status, "%s", none.text);
	}
	if (status == PRONY_OK && *meta->name)
		status = store_run_name(job->store, meta->id, meta->name, false, err);
	if (status == PRONY_MISSING)
		status = store_run_begin(job->store, meta, err);
	meta->spec = meta->command = meta->environment = NULL;
	free(canonical);
	free(machine);
	strbuf_release(&command);
	return status;
}

static int compare_ids(const void *id, const void *cell)
{
	int64_t a = *(const int64_t *)id, b = ((const struct stored_cell *)cell)->id;
	return (a > b) - (a < b);
}

/* Takes over what the store knows of a cell of a resumed run, whose cells are in order of id. */
static void take_over(const struct stored_run *stored, struct run_cell *cell)
{
	const struct stored_cell *old =
		stored->cell_count ? bsearch(&cell->id, stored->cells, stored->cell_count,
					     sizeof *stored->cells, compare_ids)
				   : NULL;
	if (!old)
		return;
	cell->status = old->status;
	/* One that was killed behind its gate has no flags in the store yet. */
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

/* Finds or makes a cell in the store. */
static enum prony_status register_cell(struct job *job, const struct stored_run *stored, size_t i,
				       struct error *err)
{
	const struct plan_cell *planned = &job->chosen.plan.cells[i];
	struct run_cell *cell = &job->cells[i];
	enum prony_status status =
		store_cell(job->store, job->meta.id, &planned->cell, &cell->id, err);
	if (status != PRONY_OK)
		return status;
	take_over(stored, cell);
	if (cell->status != CELL_PENDING || planned->status == CELL_PENDING)
		return PRONY_OK;
	cell->status = planned->status;
	return store_cell_status(job->store, cell->id, cell->status, 0, planned->reason, err);
}

enum prony_status job_register_cells(struct job *job, struct error *err)
{
	struct stored_run stored = {.cells = NULL};
	char which[32];
	enum prony_status status = PRONY_OK;
	if (job->options->resume) {
		snprintf(which, sizeof which, "%lld", (long long)job->meta.id);
		status = store_load_run(job->store, which, 0, &stored, err);
	}
	/* Thousands of transactions would take as many turns of the disk. */
	if (status == PRONY_OK) {
		status = store_batch_begin(job->store, err);
		if (status == PRONY_OK) {
			for (size_t i = 0; i < job->chosen.plan.count && status == PRONY_OK; i++)
				status = register_cell(job, &stored, i, err);
			status = store_batch_end(job->store, status, err);
		}
	}
	stored_run_release(&stored);
	return status;
}
