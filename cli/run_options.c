#include "cli/run_options.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "frameworks/registry.h"
#include "zoo/zoo.h"

#define ROW_FLAG(member, flag, what)                                                               \
	{                                                                                          \
		FLAG_OPTION(struct run_options, member, flag, what)                                \
	}
#define ROW_TEXT(member, flag, unit, what)                                                         \
	{                                                                                          \
		TEXT_OPTION(struct run_options, member, flag, unit, what)                          \
	}

const struct option run_option_rows[] = {
	RUN_OPTIONS_CELLS RUN_OPTIONS_EFFORT RUN_OPTIONS_PATIENCE ROW_FLAG(
		resume, "resume", "continue the newest unfinished run of the same cells"),
	ROW_TEXT(part, "part", "I/N",
		 "measure part I of N, for N machines: each part has whole tables, and `prony "
		 "import` joins the stores of the parts into one run"),
	ROW_TEXT(run_id, "run-id", "WORD",
		 "with --part: tells two runs of the same cells apart (default: the id of the "
		 "array job of Slurm, PBS or LSF); with --launch --resume: which run to continue"),
	ROW_TEXT(
		launch, "launch", "COMMAND",
		"measure on other nodes, a part of the run on each: 'ssh {node}' or srun starts an "
		"agent there, which sends its results back"),
	{.name = "node-list",
	 .kind = OPTION_LIST,
	 .offset = offsetof(struct run_options, node_list),
	 .metavar = "LIST",
	 .help = "with --launch: the nodes (default: those of the allocation of Slurm)"},
	ROW_FLAG(every_node, "every-node",
		 "with --launch: the whole run on each node, instead of a part"),
	ROW_FLAG(dry_run, "dry-run", "print what would run, and stop"),
	ROW_FLAG(full, "full", "with --dry-run: the reason of each cell that cannot run"),
	ROW_FLAG(show_command, "show-command",
		 "like --dry-run, with the command line of each worker"),
	ROW_FLAG(gate, "gate", "repeat parity gates that passed in an earlier run"),
	ROW_FLAG(gate_only, "gate-only", "run only the parity gates, without timing"),
	CLI_OPTION_DATA(struct run_options),
	ROW_TEXT(keep_bundle, "keep-bundle", "DIR", "keep the case bundles in this folder"),
	ROW_TEXT(keep_proofs, "keep-proofs", "DIR",
		 "put the reference's answers of all cells (computed if needed, also for devices "
		 "that are not here) and their passed gates into DIR/cache, and stop; another "
		 "machine uses them with PRONY_SHARED=DIR"),
	ROW_TEXT(budget, "budget", "TIME",
		 "end within this time, such as 90s, 30m, 1.5h: first one process of each cell, "
		 "the cheapest first, then 3, then those of the widest intervals"),
	ROW_TEXT(setup, "setup", "COMMAND", "shell command before each process"),
	ROW_TEXT(cleanup, "cleanup", "COMMAND", "shell command after each process"),
	ROW_TEXT(report, "report", "FILE", "write the HTML page to this file"),
	ROW_TEXT(name, "name", "NAME", "name of the run; must be unique"),
	ROW_TEXT(baseline, "baseline", "RUN",
		 "compare with this run at the end; exit code 2 when a cell is slower, 3 when one "
		 "is "
		 "INCONCLUSIVE"),
	ROW_TEXT(
		save_baseline, "save-baseline", "NAME",
		"at the end, move this name to the run, "
		"unless a cell is slower, INCONCLUSIVE or not ok; with the same name in --baseline "
		"the first run gets it, then only a faster one"),
	{.name = "allow",
	 .kind = OPTION_LIST,
	 .offset = offsetof(struct run_options, allow),
	 .choices = run_allow_words,
	 .metavar = "LIST",
	 .help = "what does not change the exit code: inconclusive (cells of --baseline), "
		 "unsupported (cells requested by name)"},
	ROW_TEXT(threshold, "threshold", "PERCENT",
		 "with --baseline: differences up to this size, such as 5%, count as the same "
		 "(default: 1%, or this machine's noise)"),
	ROW_FLAG(force, "force",
		 "with --baseline: also compare different machines, and judge disturbed cells"),
	CLI_OPTION_STORE(struct run_options),
	CLI_OPTION_FORMAT(struct run_options),
	{.name = NULL},
};

struct run_options run_options = RUN_OPTIONS_DEFAULT;

/* Words of --input with "=" say what an input of an ONNX file is filled with; the others are words
 * of the axis. */
static void split_inputs(const struct option_list *given, struct option_list *words,
			 struct option_list *fills)
{
	*words = *fills = (struct option_list){.count = 0};
	for (size_t i = 0; i < given->count; i++) {
		struct option_list *to = strchr(given->values[i], '=') ? fills : words;

		to->values[to->count++] = given->values[i];
	}
}

static enum prony_status set_axes(const struct run_options *o, struct spec *spec, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (int id = 0; id < AXIS_COUNT && status == PRONY_OK; id++) {
		const struct axis *axis = &axes[id];
		const struct option_list *given = &o->axes[id];
		struct option_list words, fills;
		char origin[CELL_WORD_BYTES];
		if (id == AXIS_INPUT) {
			split_inputs(given, &words, &fills);
			spec_set_fills(spec, fills.values, fills.count);
			given = &words;
		}
		if (axis->letter)
			snprintf(origin, sizeof origin, "-%c", axis->letter);
		else
			snprintf(origin, sizeof origin, "--%s", axis->option);
		if (given->count)
			status = spec_set_axis(spec, (enum axis_id)id, given->values, given->count,
					       origin, err);
	}
	if (o->axes[AXIS_FRAMEWORK].count)
		spec->cells_explicit = true;
	if (status != PRONY_OK || o->batches_per_rank.count == 0)
		return status;
	if (o->axes[AXIS_BATCH].count)
		return error_set(err, PRONY_USAGE,
				 "-b is the batch of all ranks, --batch-per-rank that of one: give "
				 "one of them");
	spec->batch_per_rank = true;
	return spec_set_axis(spec, AXIS_BATCH, o->batches_per_rank.values,
			     o->batches_per_rank.count, "--batch-per-rank", err);
}

/* Whether "all" is requested: then cells that cannot run are no failure. */
static bool names_all(const struct spec_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->words[i].text, "all"))
			return true;
	return false;
}

static void weigh_words(struct spec *spec)
{
	if (names_all(&spec->axes[AXIS_FRAMEWORK]) || names_all(&spec->axes[AXIS_NETWORK]))
		spec->cells_explicit = false;
}

static void set_numbers(const struct run_options *options, struct spec *spec)
{
	if (options->quick)
		spec->effort = EFFORT_QUICK;
	if (options->rigorous)
		spec->effort = EFFORT_RIGOROUS;
	if (*spec->origin && spec->effort == EFFORT_QUICK)
		spec_screen(spec);
	if (spec->effort == EFFORT_QUICK && spec->quick_repeat > 0)
		spec->repeat = spec->quick_repeat;
	if (options->steps > 0)
		spec_fix_steps(spec, options->steps);
	if (options->warm_up >= 0)
		spec_fix_warm_up(spec, options->warm_up);
	if (options->repeat > 0)
		spec->repeat = (int)options->repeat;
	if (options->seed >= 0)
		spec->seed = (uint64_t)options->seed;
	spec->gate_only = options->gate_only;
}

/* A training until a target: of the suite, or of the options. */
static enum prony_status set_until(const struct run_options *options, struct spec *spec,
				   struct error *err)
{
	if (options->until && !until_parse(options->until, &spec->until))
		return error_set(err, PRONY_USAGE,
				 "--until: needs " UNTIL_NEEDS
				 ", not '%.40s'; for example --until " UNTIL_EXAMPLE,
				 options->until);
	if (options->evaluate_every > 0)
		spec->until.every = options->evaluate_every;
	if (options->max_steps > 0)
		spec->until.most = options->max_steps;
	if (!spec->until.goal && (spec->until.every || spec->until.most))
		return error_set(err, PRONY_USAGE,
				 "--evaluate-every and --max-steps belong to --until; for example "
				 "--until " UNTIL_EXAMPLE);
	if (spec->until.most > 0 && spec->until.every >= spec->until.most)
		return error_set(err, PRONY_USAGE,
				 "--max-steps %lld: the first evaluation is behind step %lld (the "
				 "first step and --evaluate-every); use more, or a smaller "
				 "--evaluate-every",
				 (long long)spec->until.most, 1 + (long long)spec->until.every);
	if (spec->until.goal && (spec->steps > 0 || spec->warm_up_steps >= 0 || spec->samples > 0))
		return error_set(err, PRONY_USAGE,
				 "--until trains from the first step until its target: leave out "
				 "the number of steps, warm-up steps and epochs (--max-steps is "
				 "the most)");
	return PRONY_OK;
}

static bool is_framework(const char *word)
{
	struct registry registry;
	struct error ignored = ERROR_INIT;
	if (registry_load(&registry, &ignored) != PRONY_OK)
		return false;
	const char *name = arena_strndup(&registry.arena, word, strcspn(word, "@:+"));
	bool found = framework_find(&registry, name, NULL) != NULL;
	registry_release(&registry);
	return found;
}

/* Sets an error if the word in the place of a suite is something else that is known. A suite may
 * have the name of a network (alexnet). */
static enum prony_status not_a_suite(const char *word, struct error *err)
{
	size_t length = strlen(word);
	bool model = length > 5 && !strcmp(word + length - 5, ".onnx");
	struct error ignored = ERROR_INIT;
	char *path = NULL;
	bool suite = !model && spec_find_suite(word, &path, &ignored) == PRONY_OK;
	free(path);
	if (suite)
		return PRONY_OK;
	if (model || zoo_find(word, NULL))
		return error_set(err, PRONY_USAGE,
				 "'%.200s' is a network, not a suite: write -n %.200s", word, word);
	if (!strcmp(word, "all") || is_framework(word))
		return error_set(err, PRONY_USAGE,
				 "'%.200s' is not a suite: for frameworks write -f %.200s%s", word,
				 word, is_framework(word) ? "" : ", for networks -n all");
	return PRONY_OK;
}

enum prony_status run_options_spec(const struct run_options *options, const char **suites,
				   size_t suite_count, struct spec *spec, struct error *err)
{
	if (options->quick && options->rigorous)
		return error_set(err, PRONY_USAGE, "use --quick or --rigorous, not both");
	if (suite_count > 1)
		return error_set(
			err, PRONY_USAGE,
			"a run takes one suite, but got '%s' and '%s'; call prony run for each",
			suites[0], suites[1]);
	enum prony_status status = PRONY_OK;
	for (size_t i = 0; i < suite_count && status == PRONY_OK; i++) {
		char *path = NULL;
		status = not_a_suite(suites[i], err);
		if (status == PRONY_OK)
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
	status = set_until(options, spec, err);
	if (status != PRONY_OK)
		return status;
	spec_set_shapes(spec, options->shapes.values, options->shapes.count);
	weigh_words(spec);
	spec_complete(spec);
	return PRONY_OK;
}
