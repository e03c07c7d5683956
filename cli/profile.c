/* `prony profile`: shows where the step time of one cell goes, for each named framework. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/machine_lock.h"
#include "cli/memory_limit.h"
#include "cli/profile_text.h"
#include "cli/results.h"
#include "cli/selection.h"
#include "client/leftover.h"
#include "profile/write.h"

enum { DEFAULT_TOP = 15 };
#define SECOND_NS INT64_C(1000000000)
#define OUTPUT_BYTES_MAX ((size_t)1 << 30)

struct profile_options {
	struct run_options run; /* must be first: RUN_OPTION_AXIS relies on it */
	long long steps, top;
	const char *format, *output;
} profile_options = {.top = DEFAULT_TOP, .format = "table", .run = RUN_OPTIONS_DEFAULT};

static const char *const formats[] = {"table", "json", "csv", "chrome", "folded", NULL};

#define ROW_INT(member, flag, low, high, unit, what)                                               \
	{                                                                                          \
		INT_OPTION(struct profile_options, member, flag, low, high, unit, what)            \
	}

const struct option profile_option_rows[] = {
	RUN_OPTIONS_CELLS ROW_INT(steps, "steps", 1, 100000, "N",
				  "number of profiled steps; as many run unprofiled before and "
				  "after (default: about a second)"),
	ROW_INT(run.warm_up, "warm-up", 0, 4096, "N", "number of warm-up steps"),
	ROW_INT(top, "top", 1, 1000000, "N", "rows of a table (default: 15)"),
	ROW_INT(run.seed, "seed", 0, INT32_MAX, "N", "seed of weights and batches (default: 1)"),
	RUN_OPTIONS_PATIENCE CLI_OPTION_DATA(struct run_options),
	{.letter = 'o',
	 TEXT_OPTION(struct profile_options, output, "output", "FILE",
		     "output file (default: standard output)")},
	{CHOICE_OPTION(struct profile_options, format, "format", formats, "FORMAT",
		       "output format; chrome is a trace for Perfetto, folded are stacks for a "
		       "flame graph")},
	{.name = NULL},
};

/* The state of `prony profile`. */
struct profiling {
	const struct profile_options *options;
	struct selection selection;
	struct profile *profiles; /* one per cell of the plan */
	size_t count;		  /* number of profiles so far */
};

static void key_without_framework(const struct plan_cell *cell, char key[CELL_KEY_BYTES])
{
	struct cell anonymous = cell->cell;
	snprintf(anonymous.framework, sizeof anonymous.framework, "-");
	cell_key(&anonymous, key);
}

/* A profile is about one cell: all frameworks must share its axes. */
static enum prony_status check_one(const struct plan *plan, struct error *err)
{
	char first[CELL_KEY_BYTES], other[CELL_KEY_BYTES];
	if (plan->count == 0)
		return error_set(err, PRONY_USAGE, "no cell matches these options");
	key_without_framework(&plan->cells[0], first);
	for (size_t i = 1; i < plan->count; i++) {
		key_without_framework(&plan->cells[i], other);
		if (strcmp(first, other) != 0)
			return error_set(err, PRONY_USAGE,
					 "a profile shows one cell, in one or several frameworks, "
					 "but %zu match; give one batch, one stage and so on; the "
					 "first two are '%.200s' and '%.200s'",
					 plan->count, first, other);
	}
	return PRONY_OK;
}

/* Without any word, the default of `prony run` would be profiled in every framework. */
static bool names_cell(const struct run_options *run, size_t words)
{
	return words > 0 || run->axes[AXIS_FRAMEWORK].count || run->axes[AXIS_NETWORK].count ||
	       run->workers.count;
}

static enum prony_status choose(struct profiling *p, const char **words, size_t count,
				struct error *err)
{
	if (!names_cell(&p->options->run, count))
		return error_set(err, PRONY_USAGE,
				 "which cell? Give a framework and a network, for example: prony "
				 "profile -f native -n lenet -s train");
	enum prony_status status =
		selection_make(&p->selection, &p->options->run, words, count, err);
	if (status != PRONY_OK)
		return status;
	for (size_t i = 0; i < p->selection.plan.note_count; i++)
		cli_say("%s\n", p->selection.plan.notes[i]);
	return check_one(&p->selection.plan, err);
}

static enum prony_status take_all(struct profiling *p, struct error *err)
{
	const struct run_options *run = &p->options->run;
	struct run_settings settings = {
		.seed = p->selection.spec.seed,
		.limits = {.request_timeout_ns = SECOND_NS * run->timeout,
			   .memory_limit_bytes = memory_limit_worker(run->memory_limit).bytes},
		.self = p->selection.self,
		.cpus = p->selection.cpus,
		.cpu_count = p->selection.cpu_count,
		.stop = &stop_wanted};
	const struct profile_settings how = {.run = &settings, .steps = p->options->steps};
	int fd = -1;
	enum prony_status status = machine_lock(&stop_wanted, &fd, err);
	p->profiles = memory_alloc(p->selection.plan.count * sizeof *p->profiles);
	leftover_sweep();
	while (status == PRONY_OK && p->count < p->selection.plan.count) {
		cli_say("profiling %s\n", p->selection.plan.cells[p->count].cell.framework);
		struct profile *profile = &p->profiles[p->count];
		status = profile_take(&p->selection.plan.cells[p->count], &how, profile, err);
		if (status == PRONY_OK)
			p->count++;
		else
			profile_release(profile);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

static enum prony_status show(const struct profiling *p, struct error *err)
{
	const char *format = p->options->format;
	struct strbuf text;
	strbuf_init(&text, OUTPUT_BYTES_MAX);
	enum prony_status status = PRONY_OK;
	if (!strcmp(format, "json"))
		profile_write_json(p->profiles, p->count, &text);
	else if (!strcmp(format, "csv"))
		profile_write_csv(p->profiles, p->count, &text);
	else if (!strcmp(format, "chrome"))
		profile_write_chrome(p->profiles, p->count, &text);
	else if (!strcmp(format, "folded"))
		profile_write_folded(p->profiles, p->count, &text);
	else
		profile_text(p->profiles, p->count, (size_t)p->options->top,
			     p->options->output ? false : cli_colour(),
			     p->options->output ? 0 : cli_width(), &text);
	if (text.truncated)
		status = error_set(err, PRONY_INVALID,
				   "the profile is larger than 1 GiB; use fewer --steps");
	else if (!strcmp(format, "table") && !p->options->output)
		cli_page(strbuf_text(&text));
	else
		status = results_write(&text, p->options->output, err);
	if (status == PRONY_OK && p->options->output)
		cli_say("wrote %s\n", p->options->output);
	strbuf_release(&text);
	return status;
}

/* Shows the profiles finished before an interruption; status and err still report it. */
static enum prony_status show_taken(const struct profiling *p, enum prony_status status,
				    struct error *err)
{
	struct error why = ERROR_INIT;
	if (status == PRONY_OK)
		return show(p, err);
	cli_say("interrupted after %zu of %zu profiles\n", p->count, p->selection.plan.count);
	if (show(p, &why) == PRONY_OK)
		return status;
	error_clear(err);
	return error_set(err, why.code, "%s", why.text);
}

/* 1 when a framework asked for by name has no profile, or none has one. */
static int outcome(const struct profiling *p)
{
	size_t good = 0;
	bool failed = false;
	for (size_t i = 0; i < p->count; i++) {
		bool ok = p->profiles[i].status == CELL_OK;
		good += ok;
		failed = failed || (!ok && p->selection.plan.cells[i].explicit_);
		if (!ok && strcmp(p->options->format, "table") != 0)
			cli_say("prony: %s: %s: %s\n", p->selection.plan.cells[i].cell.framework,
				cell_status_name(p->profiles[i].status), p->profiles[i].reason);
	}
	return failed || good == 0;
}

static void release(struct profiling *p)
{
	for (size_t i = 0; i < p->count; i++)
		profile_release(&p->profiles[i]);
	free(p->profiles);
	selection_release(&p->selection);
}

int command_profile(const struct cli_call *call, struct error *err)
{
	const struct profile_options *options = &profile_options;
	struct profiling p = {.options = options};
	int exit_code = 0;
	selection_init(&p.selection);
	catch_signals();
	enum prony_status status = PRONY_OK;
	if (options->output && strcmp(options->output, "-") != 0)
		status = file_check_output(options->output, err);
	if (status == PRONY_OK)
		status = choose(&p, call->words, call->count, err);
	if (status == PRONY_OK)
		status = take_all(&p, err);
	if (status == PRONY_OK || (status == PRONY_INTERRUPTED && p.count > 0))
		status = show_taken(&p, status, err);
	if (status == PRONY_OK)
		exit_code = outcome(&p);
	release(&p);
	return exit_code;
}
