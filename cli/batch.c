/* `prony batch`: a run in parts on a cluster with Slurm, or the same run on every node of it. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/batch_queue.h"
#include "cli/batch_script.h"
#include "cli/batch_units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/machine_lock.h"
#include "cli/results.h"
#include "cli/run_part.h"
#include "cli/selection.h"
#include "report/summary.h"
#include "study/parts.h"

#define SECOND_NS INT64_C(1000000000)

struct batch_options {
	struct run_options run; /* must be first: RUN_OPTION_AXIS relies on it */
	long long nodes, max_jobs, poll;
	bool print, wait, resume, every_node;
	struct option_list options;
	const char *folder;
} batch_options = {.run = RUN_OPTIONS_DEFAULT, .poll = 5, .max_jobs = 100};

#define OWN_ROWS                                                                                   \
	{INT_OPTION(struct batch_options, nodes, "nodes", 1, RUN_PARTS_MAX, "N",                   \
		    "number of parts, each an array task with a node of its own")},                \
		{FLAG_OPTION(struct batch_options, every_node, "every-node",                       \
			     "the whole suite once on each idle node, a job for each")},           \
		{INT_OPTION(struct batch_options, max_jobs, "max-jobs", 1, 100000, "N",            \
			    "with --every-node: most jobs in the queue at a time; further ones "   \
			    "need --wait (default: 100)")},                                        \
		{FLAG_OPTION(struct batch_options, print, "print",                                 \
			     "print the script for sbatch, and submit nothing")},                  \
		{FLAG_OPTION(struct batch_options, wait, "wait",                                   \
			     "wait for the end of the jobs, then import and show the results")},   \
		{FLAG_OPTION(struct batch_options, resume, "resume",                               \
			     "submit only what is missing of the submission before")},             \
		{.name = "sbatch-option",                                                          \
		 .kind = OPTION_LIST,                                                              \
		 .offset = offsetof(struct batch_options, options),                                \
		 .metavar = "OPTION",                                                              \
		 .help = "a line for sbatch, as it is, such as '-p gpu'"},                         \
		{TEXT_OPTION(struct batch_options, folder, "folder", "DIR",                        \
			     "folder of scripts, logs and stores, which all nodes see (default: "  \
			     "prony-SUITE)")},                                                     \
		{INT_OPTION(struct batch_options, poll, "poll", 1, 3600, "SECONDS",                \
			    "with --wait: time between two looks at the queue (default: 5)")},     \
		CLI_OPTION_STORE(struct run_options)

static const struct option own_rows[] = {OWN_ROWS, {.name = NULL}};

#define ROW(kind, member, ...)                                                                     \
	{                                                                                          \
		kind(struct run_options, member, __VA_ARGS__)                                      \
	}

const struct option batch_option_rows[] = {
	OWN_ROWS,
	RUN_OPTIONS_CELLS RUN_OPTIONS_EFFORT RUN_OPTIONS_PATIENCE CLI_OPTION_DATA(
		struct run_options),
	ROW(FLAG_OPTION, gate, "gate", "repeat parity gates that passed in an earlier run"),
	ROW(FLAG_OPTION, gate_only, "gate-only", "run only the parity gates, without timing"),
	ROW(TEXT_OPTION, setup, "setup", "COMMAND", "shell command before each process"),
	ROW(TEXT_OPTION, cleanup, "cleanup", "COMMAND", "shell command after each process"),
	ROW(TEXT_OPTION, name, "name", "NAME", "name of the run; must be unique"),
	{.name = NULL},
};

/* The state of one `prony batch`. */
struct batch {
	const struct batch_options *options;
	struct selection selection;
	char *name; /* of the suite, or "run", in characters that Slurm takes in names */
	char *folder, *script_path, *words, *again;
	int parts; /* 0: every node */
	double seconds;
	struct units units;
};

/* Those of our own options that another submission has not. */
static const struct option once_rows[] = {{.name = "folder", .kind = OPTION_STRING},
					  {.name = "resume", .kind = OPTION_FLAG},
					  {.name = NULL}};

/* Returns our words without these options. The caller frees it. */
static char *words_of(const struct cli_call *call, const struct option *without)
{
	struct strbuf text;
	const char **words = memory_alloc((size_t)call->argc * sizeof *words);
	size_t count = run_words(call, without, words);
	strbuf_init(&text, 0);
	for (size_t i = 0; i < count; i++) {
		strbuf_puts(&text, i > 0 ? " " : "");
		shell_word(words[i], &text);
	}
	free(words);
	return strbuf_take(&text);
}

static enum prony_status check_options(const struct batch_options *o, struct error *err)
{
	for (size_t i = 0; i < o->options.count; i++)
		/* What follows a line break would be a command of the script. */
		if (!*o->options.values[i] || strpbrk(o->options.values[i], "\r\n"))
			return error_set(err, PRONY_USAGE,
					 "--sbatch-option: takes one line, such as '-p gpu'; give "
					 "the option again for another line");
	if (o->every_node == (o->nodes > 0))
		return error_set(err, PRONY_USAGE,
				 "give either --nodes N, for a run in N parts, or --every-node");
	if (o->folder && !*o->folder)
		return error_set(err, PRONY_USAGE, "--folder takes a folder, not \"\"");
	if (o->print && (o->wait || o->resume))
		return error_set(err, PRONY_USAGE, "--print submits nothing: leave out --%s",
				 o->wait ? "wait" : "resume");
	return PRONY_OK;
}

/* The name of the jobs and the folder: a suite may be a file of any name. The caller frees it. */
static char *name_of(const char *suite)
{
	char *name = memory_strdup(suite);
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			*c = '_';
	return name;
}

/* What no machine can run is not submitted; the nodes may have what this one lacks. */
static enum prony_status check_plan(const struct plan *plan, struct error *err)
{
	const struct plan_cell *missing = NULL;
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->cells[i].status == CELL_PENDING)
			return PRONY_OK;
		if (!missing && plan->cells[i].status == CELL_MISSING)
			missing = &plan->cells[i];
	}
	if (!missing)
		return error_set(err, PRONY_USAGE, "nothing to submit, no cell can run: %s",
				 plan->count ? plan->cells[0].reason : "there is none");
	cli_say("prony: no cell can run on this machine (%s: %s), so it is not known what can on "
		"the nodes\n",
		missing->cell.framework, missing->reason);
	return PRONY_OK;
}

/* Cuts the plan into parts and forecasts the longest task. */
static void deal(struct batch *batch)
{
	const struct selection *s = &batch->selection;
	int wanted = batch->options->every_node ? 1 : (int)batch->options->nodes;
	struct parts parts;
	parts_deal(&s->plan, &s->spec, wanted, s->cpu_count, &parts);
	int filled = 0;
	for (int i = 0; i < wanted; i++)
		filled += parts.tables[i] > 0;
	for (int i = 0; i < wanted; i++)
		if (parts.seconds[i] > batch->seconds)
			batch->seconds = parts.seconds[i];
	parts_release(&parts);
	if (filled < wanted)
		cli_say("the run has %d table%s, so %d part%s\n", filled, filled == 1 ? "" : "s",
			filled, filled == 1 ? "" : "s");
	batch->parts = batch->options->every_node ? 0 : filled;
}

static enum prony_status prepare(struct batch *batch, const struct cli_call *call,
				 struct error *err)
{
	const struct batch_options *o = batch->options;
	enum prony_status status = check_options(o, err);
	if (status == PRONY_OK)
		status = selection_make(&batch->selection, &o->run, call->words, call->count, err);
	if (status == PRONY_OK)
		status = check_plan(&batch->selection.plan, err);
	if (status != PRONY_OK)
		return status;
	const char *suite = batch->selection.spec.suite;
	batch->name = name_of(suite && *suite ? suite : "run");
	batch->words = words_of(call, own_rows);
	batch->again = words_of(call, once_rows);
	char *here = realpath(".", NULL);
	char *folder =
		o->folder ? memory_strdup(o->folder) : memory_printf("prony-%s", batch->name);
	batch->folder = *folder == '/' || !here ? memory_strdup(folder) : path_join(here, folder);
	batch->script_path = path_join(batch->folder, "job.sh");
	free(folder);
	free(here);
	if (strpbrk(batch->folder, "%\\"))
		return error_set(err, PRONY_USAGE,
				 "%s: Slurm would expand %% and \\ in the names of the logs there; "
				 "take another --folder",
				 batch->folder);
	deal(batch);
	return PRONY_OK;
}

static void script_of(const struct batch *batch, struct strbuf *out)
{
	const struct batch_script script = {.prony = batch->selection.self,
					    .words = batch->words,
					    .name = batch->name,
					    .folder = batch->folder,
					    .parts = batch->parts,
					    .seconds = batch->seconds,
					    .options = &batch->options->options};
	batch_script_text(&script, out);
}

/* Makes the folder and its script. */
static enum prony_status write_script(const struct batch *batch, struct error *err)
{
	char *parts = path_join(batch->folder, "parts"), *logs = path_join(batch->folder, "log");
	enum prony_status status = directory_make(parts, err);
	struct strbuf text;
	strbuf_init(&text, 0);
	script_of(batch, &text);
	if (status == PRONY_OK)
		status = directory_make(logs, err);
	if (status == PRONY_OK)
		status =
			file_write_atomic(batch->script_path, strbuf_text(&text), text.length, err);
	strbuf_release(&text);
	free(parts);
	free(logs);
	return status;
}

/* Whether nothing more comes for the unit unless it is submitted. */
static bool unit_waits(const struct unit *unit)
{
	return unit->state == UNIT_MISSING || unit->state == UNIT_PARTLY;
}

/* Adds "1,3" for the parts that are missing and not in the queue: their indexes in the array. */
static size_t add_indexes(const struct units *units, struct strbuf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < units->count; i++)
		if (unit_waits(&units->at[i]))
			strbuf_printf(out, "%s%zu", count++ ? "," : "", i);
	return count;
}

static enum prony_status submit_parts(struct batch *batch, struct error *err)
{
	struct strbuf array;
	int64_t job = 0;
	strbuf_init(&array, 0);
	strbuf_puts(&array, "--array=");
	size_t count = add_indexes(&batch->units, &array);
	char *output = memory_printf("--output=%s/log/%%A_%%a.log", batch->folder);
	char *run =
		memory_printf("--export=ALL,PRONY_RUN_ID=%" PRId64, units_run_id(&batch->units));
	const char *options[] = {output, strbuf_text(&array), run};
	enum prony_status status = PRONY_OK;
	if (count > 0)
		status = queue_submit(batch->script_path, options,
				      units_run_id(&batch->units) ? 3 : 2, &job, err);
	if (status == PRONY_OK && count > 0) {
		status = units_submitted(&batch->units, job, NULL, err);
		cli_say("job %" PRId64 ": %zu of %d parts\n", job, count, batch->parts);
	}
	free(output);
	free(run);
	strbuf_release(&array);
	return status;
}

/* Submits jobs for nodes without one, as long as --max-jobs allows. */
static enum prony_status submit_nodes(struct batch *batch, struct error *err)
{
	size_t queued = units_in(&batch->units, UNIT_QUEUED), submitted = 0;
	char *output = memory_printf("--output=%s/log/%%j.log", batch->folder);
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < batch->units.count && status == PRONY_OK; i++) {
		struct unit *unit = &batch->units.at[i];
		const char *const options[] = {output, "-w", unit->name};
		int64_t job = 0;
		if (!unit_waits(unit) || unit->submitted ||
		    queued + submitted >= (size_t)batch->options->max_jobs)
			continue;
		status = queue_submit(batch->script_path, options, 3, &job, err);
		if (status == PRONY_OK)
			status = units_submitted(&batch->units, job, unit, err);
		submitted++;
	}
	if (submitted > 0 && status == PRONY_OK)
		cli_say("%zu job%s, a node each\n", submitted, submitted == 1 ? "" : "s");
	free(output);
	return status;
}

static enum prony_status submit(struct batch *batch, struct error *err)
{
	return batch->parts ? submit_parts(batch, err) : submit_nodes(batch, err);
}

/* Polls until no job of this batch is in the queue. A queue that does not answer is asked again. */
static enum prony_status wait_for_jobs(struct batch *batch, struct error *err)
{
	enum { SILENT_MAX = 10, QUEUE_MAX = 1000000 };
	size_t told = SIZE_MAX;
	int silent = 0;
	for (;;) {
		enum prony_status status = units_look(&batch->units, err);
		if (status == PRONY_OK && !batch->parts)
			status = submit_nodes(batch, err);
		silent = status == PRONY_OK ? 0 : silent + 1;
		if (stop_wanted)
			return error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (status != PRONY_OK && (status != PRONY_IO || silent == SILENT_MAX))
			return status;
		size_t queued = units_in(&batch->units, UNIT_QUEUED);
		size_t here = units_in(&batch->units, UNIT_HERE);
		if (silent == 0 && here * QUEUE_MAX + queued != told)
			cli_say("%zu of %zu stores are here, %zu in the queue\n", here,
				batch->units.count, queued);
		told = silent ? told : here * QUEUE_MAX + queued;
		if (silent == 0 && queued == 0)
			return PRONY_OK;
		error_clear(err);
		int64_t until = clock_monotonic_ns() + batch->options->poll * SECOND_NS;
		while (!stop_wanted && clock_monotonic_ns() < until)
			clock_sleep_until_ns(until);
	}
}

/* Two rounds decide what lasts. */
static void say_rounds(const struct batch *batch)
{
	struct strbuf folder;
	char *other = memory_printf("%s-again", batch->folder);
	strbuf_init(&folder, 0);
	shell_word(other, &folder);
	cli_say("imported; to compare the nodes: prony show --by node\n"
		"another round, which shows what lasts: prony batch %s --folder %s\n",
		batch->again, strbuf_text(&folder));
	strbuf_release(&folder);
	free(other);
}

static enum prony_status import_and_show(struct batch *batch, struct error *err)
{
	struct store *store = NULL;
	enum prony_status status = store_open(batch->options->run.store, false, &store, err);
	for (size_t i = 0; i < batch->units.count && status == PRONY_OK; i++) {
		struct store_imported imported = {.runs = 0};
		char *path = units_store(&batch->units, &batch->units.at[i]);
		if (file_exists(path))
			status = store_import(store, path, &imported, err);
		results_say_doubled(path, &imported);
		free(path);
	}
	struct stored_run run;
	if (status == PRONY_OK && batch->parts &&
	    units_in(&batch->units, UNIT_HERE) + units_in(&batch->units, UNIT_PARTLY) > 0) {
		char uid[33];
		units_uid(&batch->units, uid);
		status = results_load_from(store, uid, 0, &run, err);
		if (status == PRONY_OK) {
			struct summary summary;
			summary_init(&summary, &run);
			results_print(&summary);
			summary_release(&summary);
			stored_run_release(&run);
		}
	}
	if (status == PRONY_OK && !batch->parts)
		say_rounds(batch);
	store_close(store);
	return status;
}

static void say_missing(const struct batch *batch)
{
	size_t missing = batch->units.count - units_in(&batch->units, UNIT_HERE), named = 0;
	struct strbuf names;
	strbuf_init(&names, 0);
	for (size_t i = 0; i < batch->units.count; i++)
		if (batch->units.at[i].state != UNIT_HERE && named++ < 8)
			strbuf_printf(&names, "%s%s", named > 1 ? ", " : "",
				      batch->units.at[i].name);
	cli_say("prony: %zu of %zu %s ended without a finished store: %s%s; their logs are in "
		"%s/log; "
		"to submit only these, add --resume\n",
		missing, batch->units.count, batch->parts ? "parts" : "nodes", strbuf_text(&names),
		named > 8 ? "..." : "", batch->folder);
	strbuf_release(&names);
}

static enum prony_status find_units(struct batch *batch, struct error *err)
{
	const struct batch_options *o = batch->options;
	enum prony_status status =
		units_init(&batch->units, batch->folder, &batch->selection.spec, batch->parts, err);
	if (status == PRONY_OK && batch->units.job_count > 0 && !o->resume)
		return error_set(err, PRONY_USAGE,
				 "%s: holds a submission (job %" PRId64 "); add --resume to submit "
				 "what is missing of it, or --folder DIR for another one",
				 batch->folder, batch->units.jobs[0].id);
	/* The units of one kind are no units of the other. */
	for (size_t i = 0; i < batch->units.job_count && status == PRONY_OK; i++)
		if (!batch->units.jobs[i].node != (batch->parts > 0))
			status =
				error_set(err, PRONY_USAGE,
					  "%s: holds a submission with %s; use the same options, "
					  "or --folder DIR for another one",
					  batch->folder, batch->parts ? "--every-node" : "--nodes");
	if (status == PRONY_OK && !batch->parts)
		status = units_find_nodes(&batch->units, &o->options, err);
	if (status == PRONY_OK)
		status = units_look(&batch->units, err);
	return status;
}

static enum prony_status run_batch(struct batch *batch, int *exit_code, struct error *err)
{
	enum prony_status status = find_units(batch, err);
	if (status == PRONY_OK)
		status = write_script(batch, err);
	if (status == PRONY_OK)
		status = submit(batch, err);
	if (status == PRONY_OK && !batch->options->wait) {
		size_t left = units_in(&batch->units, UNIT_MISSING);
		cli_say("stores come to %s/parts; to wait for them and import them: the same "
			"command "
			"with --resume --wait\n",
			batch->folder);
		if (!batch->parts && left > 0)
			cli_say("%zu nodes have no job yet (--max-jobs)\n", left);
		return PRONY_OK;
	}
	if (status == PRONY_OK)
		status = wait_for_jobs(batch, err);
	if (status == PRONY_INTERRUPTED)
		cli_say("prony: the jobs go on; to wait for them again: the same command with "
			"--resume --wait\n");
	if (status == PRONY_OK)
		status = import_and_show(batch, err);
	if (status == PRONY_OK && units_in(&batch->units, UNIT_HERE) < batch->units.count) {
		say_missing(batch);
		*exit_code = 1;
	}
	return status;
}

int command_batch(const struct cli_call *call, struct error *err)
{
	struct batch batch = {.options = &batch_options};
	int exit_code = 0;
	selection_init(&batch.selection);
	enum prony_status status = prepare(&batch, call, err);
	if (status == PRONY_OK && batch_options.print) {
		struct strbuf text;
		strbuf_init(&text, 0);
		script_of(&batch, &text);
		status = cli_bytes(strbuf_text(&text), text.length, err);
		strbuf_release(&text);
	} else if (status == PRONY_OK) {
		catch_signals();
		run_batch(&batch, &exit_code, err);
	}
	units_release(&batch.units);
	free(batch.name);
	free(batch.folder);
	free(batch.script_path);
	free(batch.words);
	free(batch.again);
	selection_release(&batch.selection);
	return exit_code;
}
