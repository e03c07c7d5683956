#include "cli/run_options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define ROW_LIST(member, flag, letter_, what)                                                      \
	{                                                                                          \
		.name = (flag), .letter = (letter_), .kind = OPTION_LIST,                          \
		.offset = offsetof(struct run_options, member), .metavar = "LIST", .help = (what)  \
	}
#define ROW_INT(member, flag, low, high, unit, what)                                               \
	{                                                                                          \
		.name = (flag), .kind = OPTION_INT,                                                \
		.offset = offsetof(struct run_options, member), .min = (low), .max = (high),       \
		.metavar = (unit), .help = (what)                                                  \
	}
#define ROW_FLAG(member, flag, what)                                                               \
	{                                                                                          \
		.name = (flag), .kind = OPTION_FLAG,                                               \
		.offset = offsetof(struct run_options, member), .help = (what)                     \
	}
#define ROW_TEXT(member, flag, unit, what)                                                         \
	{                                                                                          \
		.name = (flag), .kind = OPTION_STRING,                                             \
		.offset = offsetof(struct run_options, member), .metavar = (unit), .help = (what)  \
	}

const struct option run_option_rows[] = {
	ROW_LIST(frameworks, "frameworks", 'f',
		 "frameworks, NAME[@ENV][:BACKEND][+OPTION...], or all"),
	{.name = "worker",
	 .kind = OPTION_LIST,
	 .offset = offsetof(struct run_options, workers),
	 .metavar = "NAME=COMMAND",
	 .help = "a worker of your own as framework NAME; words are split as a shell does"},
	ROW_LIST(networks, "networks", 'n', "networks"),
	ROW_LIST(datasets, "datasets", 'd', "data sets"),
	ROW_LIST(devices, "devices", 'D', "devices: cpu, cpu:4, cuda:0"),
	ROW_LIST(precisions, "precisions", 'p', "precisions: fp32, tf32, fp16, bf16"),
	ROW_LIST(stages, "stages", 's', "stages: forward, forward-backward, train"),
	ROW_LIST(batches, "batches", 'b', "batch sizes; ranges 1..64*2 and 16..64+16"),
	ROW_LIST(syncs, "sync", 0, "when to wait for issued work: blocks, step, end"),
	ROW_LIST(inputs, "input", 0, "how batches arrive: resident"),
	ROW_LIST(optimisers, "optimiser", 0, "optimisers of train: sgd, momentum, rmsprop"),
	ROW_FLAG(quick, "quick", "3 processes, 2 s each: screening"),
	ROW_FLAG(rigorous, "rigorous", "10 to 40 processes, until the interval is 1 % wide"),
	ROW_INT(steps, "steps", 1, 1000000000, "N", "fixed steps of the measured window"),
	ROW_INT(warm_up, "warm-up", 0, 1000000000, "N", "fixed steps of warm-up"),
	ROW_INT(repeat, "repeat", 1, 10000, "N", "fixed number of processes"),
	ROW_INT(seed, "seed", 0, INT32_MAX, "N", "seed of weights, batches and order"),
	ROW_INT(timeout, "timeout", 1, 86400, "SECONDS",
		"patience with one request (default: 300)"),
	{.name = "memory-limit",
	 .kind = OPTION_MIB,
	 .offset = offsetof(struct run_options, memory_limit),
	 .min = 16,
	 .max = 1 << 30,
	 .help = "resident memory of a worker's processes, as in 1536 or 2GiB (default: 90 % of "
		 "what is "
		 "available)"},
	ROW_FLAG(no_dropout, "no-dropout", "dropout layers do nothing"),
	ROW_FLAG(resume, "resume", "go on with the newest unfinished run of the same cells"),
	ROW_FLAG(dry_run, "dry-run", "say what would run, and stop"),
	ROW_FLAG(show_command, "show-command", "with --dry-run: the command line of each worker"),
	ROW_FLAG(gate, "gate", "repeat parity gates that passed in an earlier run"),
	ROW_TEXT(data, "data", "DIR", "folder of data sets"),
	ROW_TEXT(keep_bundle, "keep-bundle", "DIR", "keep the case bundles there"),
	ROW_TEXT(setup, "setup", "COMMAND", "shell command before each process"),
	ROW_TEXT(cleanup, "cleanup", "COMMAND", "shell command after each process"),
	ROW_TEXT(report, "report", "FILE", "write the HTML page there"),
	CLI_OPTION_STORE(struct run_options),
	CLI_OPTION_FORMAT(struct run_options),
	{.name = NULL},
};

void run_options_init(struct run_options *options)
{
	*options = (struct run_options){.warm_up = -1, .seed = -1, .format = "table"};
}

static enum prony_status set_axes(const struct run_options *o, struct spec *spec, struct error *err)
{
	const struct {
		const struct option_list *list;
		const char *axis, *origin;
	} axes[] = {
		{&o->frameworks, "frameworks", "-f"}, {&o->networks, "networks", "-n"},
		{&o->datasets, "datasets", "-d"},     {&o->devices, "devices", "-D"},
		{&o->precisions, "precisions", "-p"}, {&o->stages, "stages", "-s"},
		{&o->batches, "batches", "-b"},	      {&o->syncs, "syncs", "--sync"},
		{&o->inputs, "inputs", "--input"},    {&o->optimisers, "optimisers", "--optimiser"},
	};
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < sizeof axes / sizeof *axes && status == PRONY_OK; i++)
		if (axes[i].list->count)
			status = spec_set_axis(spec, axes[i].axis, axes[i].list->values,
					       axes[i].list->count, axes[i].origin, err);
	if (o->frameworks.count)
		spec->frameworks_explicit = true;
	return status;
}

/* "all" asks for whatever there is: what is missing then is no failure. */
static void weigh_frameworks(struct spec *spec)
{
	for (size_t i = 0; i < spec->frameworks.count; i++)
		if (!strcmp(spec->frameworks.words[i].text, "all"))
			spec->frameworks_explicit = false;
}

static void set_numbers(const struct run_options *options, struct spec *spec)
{
	if (options->quick)
		spec->effort = EFFORT_QUICK;
	if (options->rigorous)
		spec->effort = EFFORT_RIGOROUS;
	if (options->steps > 0)
		spec_fix_steps(spec, options->steps);
	if (options->warm_up >= 0)
		spec_fix_warm_up(spec, options->warm_up);
	if (options->repeat > 0)
		spec->repeat = (int)options->repeat;
	if (options->seed >= 0)
		spec->seed = (uint64_t)options->seed;
	if (options->no_dropout)
		spec->dropout = false;
}

enum prony_status run_options_spec(const struct run_options *options, const char **suites,
				   size_t suite_count, struct spec *spec, struct error *err)
{
	if (options->quick && options->rigorous)
		return error_set(err, PRONY_USAGE, "--quick and --rigorous exclude each other");
	if (suite_count > 1)
		return error_set(
			err, PRONY_USAGE,
			"one suite a run: '%s' and '%s' were given; call prony run for each",
			suites[0], suites[1]);
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < suite_count && status == PRONY_OK; i++) {
		char *path = NULL;
		status = spec_find_suite(suites[i], &path, err);
		if (status == PRONY_OK)
			status = spec_read_file(spec, path, err);
		free(path);
	}
	if (status == PRONY_OK)
		status = set_axes(options, spec, err);
	if (status != PRONY_OK)
		return status;
	set_numbers(options, spec);
	weigh_frameworks(spec);
	spec_complete(spec);
	return PRONY_OK;
}
