#include "cli/run_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "diagnose/machine.h"

/* Whether prony sets this variable for every worker of the plan. */
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
		if (is_replaced(&job->selection.plan, name))
			json_object_del(set, name);
	}
}

static enum prony_status begin_part(struct job *job, struct error *err)
{
	enum part_begun begun;
	enum prony_status status = store_part_begin(job->store, &job->meta, &job->part,
						    job->options->resume, &begun, err);
	if (status == PRONY_OK && begun == PART_RESTARTS)
		progress_say(&job->progress, "this part was begun on another machine: its tables "
					     "are measured anew");
	return status;
}

enum prony_status job_begin_run(struct job *job, int argc, char **argv, struct error *err)
{
	struct strbuf command;
	strbuf_init(&command, 1 << 16);
	strbuf_puts(&command, "prony");
	for (int i = 0; i < argc; i++)
		strbuf_printf(&command, " %s", argv[i]);
	char *canonical = spec_canonical(&job->selection.spec);
	char *machine = json_dumps(job->machine, JSON_COMPACT | JSON_SORT_KEYS);
	struct run_meta *meta = &job->meta;
	snprintf(meta->name, sizeof meta->name, "%s", job->options->name ? job->options->name : "");
	snprintf(meta->suite, sizeof meta->suite, "%s",
		 job->selection.spec.suite ? job->selection.spec.suite : "");
	snprintf(meta->version, sizeof meta->version, "%s", PRONY_VERSION);
	snprintf(meta->effort, sizeof meta->effort, "%s", effort_name(job->selection.spec.effort));
	snprintf(meta->statistic, sizeof meta->statistic, "geometric");
	meta->seed = (int64_t)job->selection.spec.seed;
	meta->started_wall_ns = clock_wall_ns();
	meta->finished_wall_ns = RECORD_NONE;
	meta->spec = canonical;
	meta->command = strbuf_text(&command);
	meta->environment = machine;
	machine_hash(job->machine, meta->environment_hash);
	if (gethostname(meta->host, sizeof meta->host - 1))
		snprintf(meta->host, sizeof meta->host, "unknown");
	enum prony_status status = PRONY_MISSING;
	if (job->part.part > 0) {
		status = begin_part(job, err);
	} else if (job->options->resume) {
		struct error none = ERROR_INIT;
		status = store_run_unfinished(job->store, canonical, meta->environment_hash,
					      &meta->id, &none);
		if (status == PRONY_MISSING)
			progress_say(&job->progress, "nothing to resume: starting a new run");
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
