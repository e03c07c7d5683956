/* `prony profile`: where the step of one cell goes, in each framework that is named. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/framework_word.h"
#include "cli/memory_limit.h"
#include "cli/profile_text.h"
#include "cli/results.h"
#include "cli/run_job.h"
#include "client/leftover.h"
#include "diagnose/machine.h"
#include "profile/write.h"
#include "run/lock.h"

enum { DEFAULT_TIMEOUT_S = 300, DEFAULT_TOP = 15 };
#define SECOND_NS INT64_C(1000000000)
#define OUTPUT_BYTES_MAX ((size_t)1 << 30)

struct profile_options {
	struct run_options run; /* first: RUN_OPTION_AXIS counts on it */
	long long steps, top;
	const char *format, *output;
};

static const char *const formats[] = {"table", "json", "csv", "chrome", "folded", NULL};

#define ROW_INT(member, flag, low, high, unit, what)                                               \
	{                                                                                          \
		.name = (flag), .kind = OPTION_INT,                                                \
		.offset = offsetof(struct profile_options, member), .min = (low), .max = (high),   \
		.metavar = (unit), .help = (what)                                                  \
	}

const struct option profile_option_rows[] = {
	CELL_AXES(RUN_OPTION_AXIS){
		.name = "worker",
		.kind = OPTION_LIST,
		.offset = offsetof(struct profile_options, run.workers),
		.metavar = "NAME=COMMAND",
		.help = "a worker of your own as framework NAME; words are split as a shell does"},
	{.name = "shape",
	 .kind = OPTION_LIST,
	 .offset = offsetof(struct profile_options, run.shapes),
	 .metavar = "NAME=DIMS",
	 .help = "shape of an input that an ONNX file leaves open, for one sample: x=1x3x48x320"},
	ROW_INT(steps, "steps", 1, 100000, "N",
		"steps to look at, and as many before and after that nothing looks at "
		"(default: about a second)"),
	ROW_INT(run.warm_up, "warm-up", 0, 4096, "N", "fixed steps of warm-up"),
	ROW_INT(top, "top", 1, 1000000, "N", "rows of a table (default: 15)"),
	ROW_INT(run.seed, "seed", 0, INT32_MAX, "N", "seed of weights and batches"),
	ROW_INT(run.timeout, "timeout", 1, 86400, "SECONDS",
		"patience with one request (default: 300)"),
	{.name = "memory-limit",
	 .kind = OPTION_MIB,
	 .offset = offsetof(struct profile_options, run.memory_limit),
	 .min = 16,
	 .max = 1 << 30,
	 .help = "resident memory of a worker's processes, as in 1536 or 2GiB (default: 90 % of "
		 "what is available)"},
	{.name = "data",
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct profile_options, run.data),
	 .metavar = "DIR",
	 .help = "folder of data sets"},
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct profile_options, output),
	 .metavar = "FILE",
	 .help = "write there instead of to standard output"},
	{.name = "format",
	 .kind = OPTION_CHOICE,
	 .offset = offsetof(struct profile_options, format),
	 .choices = formats,
	 .metavar = "FORMAT",
	 .help = "how to print: chrome is a trace for Perfetto, folded are stacks for a flame "
		 "graph"},
	{.name = NULL},
};

static volatile int stop_wanted;

static void on_signal(int number)
{
	(void)number;
	stop_wanted = 1;
}

/* Everything of one `prony profile`. */
struct profiling {
	const struct profile_options *options;
	struct spec spec;
	struct registry registry;
	struct plan plan;
	struct profile *profiles; /* one for each cell of the plan */
	size_t count;		  /* of them so far */
	char *self;
	int cpus[JOB_CPUS_MAX], cpu_count;
	bool plan_ready;
};

/* A profile is of one cell: what the frameworks have in common. */
static enum prony_status check_one(const struct plan *plan, struct error *err)
{
	char first[CELL_KEY_BYTES], other[CELL_KEY_BYTES];
	if (plan->count == 0)
		return error_set(err, PRONY_USAGE, "these words choose no cell");
	workload_key(&plan->cells[0], first);
	for (size_t i = 1; i < plan->count; i++) {
		workload_key(&plan->cells[i], other);
		if (strcmp(first, other) != 0)
			return error_set(
				err, PRONY_USAGE,
				"a profile is of one cell, in one framework or several; these "
				"words choose %zu: give one batch, one stage ...; the first "
				"two are '%.200s' and '%.200s'",
				plan->count, first, other);
	}
	return PRONY_OK;
}

static enum prony_status make_plan(struct profiling *p, const char **words, size_t count,
				   struct error *err)
{
	const struct run_options *run = &p->options->run;
	enum prony_status status = run_options_spec(run, words, count, &p->spec, err);
	if (status != PRONY_OK)
		return status;
	p->self = path_self();
	p->cpu_count = machine_cores(p->cpus, JOB_CPUS_MAX);
	struct memory_limit room = memory_limit_worker(run->memory_limit);
	status = cli_registry(&p->registry, err);
	for (size_t i = 0; status == PRONY_OK && i < run->workers.count; i++)
		status = registry_add_worker(&p->registry, run->workers.values[i], err);
	if (status != PRONY_OK)
		return status;
	struct plan_settings settings = {.registry = &p->registry,
					 .data_folder = run->data,
					 .self = p->self,
					 .cores = p->cpu_count,
					 .gpus = machine_gpus(""),
					 .memory_bytes = room.bytes,
					 .memory_of = room.of};
	status = plan_expand(&p->spec, &settings, &p->plan, err);
	if (status != PRONY_OK)
		return status;
	p->plan_ready = true;
	for (size_t i = 0; i < p->plan.note_count; i++)
		cli_say("%s\n", p->plan.notes[i]);
	return check_one(&p->plan, err);
}

static void say_waiting(void *context, const char *path)
{
	(void)context;
	cli_say("waiting: another prony measures on this machine (%s)\n", path);
}

static enum prony_status take_all(struct profiling *p, struct error *err)
{
	const struct run_options *run = &p->options->run;
	struct run_settings settings = {
		.seed = p->spec.seed,
		.limits = {.request_timeout_ns =
				   SECOND_NS * (run->timeout ? run->timeout : DEFAULT_TIMEOUT_S),
			   .memory_limit_bytes = memory_limit_worker(run->memory_limit).bytes},
		.self = p->self,
		.cpus = p->cpus,
		.cpu_count = p->cpu_count,
		.stop = &stop_wanted};
	const struct profile_settings how = {.run = &settings, .steps = p->options->steps};
	char *lock = lock_default_path();
	int fd = -1;
	enum prony_status status = lock_take(lock, &stop_wanted, say_waiting, NULL, &fd, err);
	p->profiles = memory_alloc(p->plan.count * sizeof *p->profiles);
	leftover_sweep();
	while (status == PRONY_OK && p->count < p->plan.count) {
		cli_say("profiling %s\n", p->plan.cells[p->count].cell.framework);
		status = profile_take(&p->plan.cells[p->count], &how, &p->profiles[p->count], err);
		p->count++;
	}
	if (fd >= 0)
		close(fd);
	free(lock);
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
				   "the profile is larger than 1 GiB; take fewer --steps");
	else if (!strcmp(format, "table") && !p->options->output)
		cli_page(strbuf_text(&text));
	else
		status = results_write(&text, p->options->output, err);
	if (status == PRONY_OK && p->options->output)
		cli_say("wrote %s\n", p->options->output);
	strbuf_release(&text);
	return status;
}

/* 1 when one that was asked for by name has none, or none has. */
static int outcome(const struct profiling *p)
{
	size_t good = 0;
	bool failed = false;
	for (size_t i = 0; i < p->count; i++) {
		bool ok = p->profiles[i].status == CELL_OK;
		good += ok;
		failed = failed || (!ok && p->plan.cells[i].explicit_);
		if (!ok && strcmp(p->options->format, "table") != 0)
			cli_say("prony: %s: %s: %s\n", p->plan.cells[i].cell.framework,
				cell_status_name(p->profiles[i].status), p->profiles[i].reason);
	}
	return failed || good == 0;
}

static void release(struct profiling *p)
{
	for (size_t i = 0; i < p->count; i++)
		profile_release(&p->profiles[i]);
	free(p->profiles);
	if (p->plan_ready)
		plan_release(&p->plan);
	registry_release(&p->registry);
	spec_release(&p->spec);
	free(p->self);
}

int command_profile(const struct cli_command *command, int argc, char **argv)
{
	struct profile_options options = {.top = DEFAULT_TOP, .format = formats[0]};
	struct sigaction action = {.sa_handler = on_signal};
	struct error err = ERROR_INIT;
	size_t count = 0;
	int exit_code = 0;
	const char **words = memory_alloc(((size_t)argc + 1) * sizeof *words);
	run_options_init(&options.run);
	if (!cli_parse(command, argc, argv, &options, words, &count, &exit_code)) {
		free(words);
		return exit_code;
	}
	struct profiling p = {.options = &options};
	spec_init(&p.spec);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	enum prony_status status = PRONY_OK;
	if (options.output && strcmp(options.output, "-") != 0)
		status = file_check_output(options.output, &err);
	if (status == PRONY_OK)
		status = make_plan(&p, words, count, &err);
	if (status == PRONY_OK)
		status = take_all(&p, &err);
	if (status == PRONY_OK)
		status = show(&p, &err);
	exit_code = status == PRONY_OK ? outcome(&p) : cli_fail(&err);
	release(&p);
	free(words);
	return exit_code;
}
