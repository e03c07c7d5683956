/* Options of `prony run` and how they become a spec. */
#ifndef PRONY_CLI_RUN_OPTIONS_H
#define PRONY_CLI_RUN_OPTIONS_H

#include <stddef.h>

#include "base/options.h"
#include "spec/spec.h"

struct run_options {
	struct option_list axes[AXIS_COUNT];
	struct option_list batches_per_rank, workers, shapes, allow, node_list;
	long long steps, warm_up, repeat, seed, timeout, memory_limit, evaluate_every, max_steps;
	bool quick, rigorous, dry_run, full, resume, show_command, gate, gate_only, force,
		every_node;
	const char *store, *data, *keep_bundle, *keep_proofs, *setup, *cleanup, *budget, *format,
		*report;
	const char *name, *baseline, *save_baseline, *threshold, *part, *run_id, *until, *launch;
};

extern const struct option run_option_rows[];
extern const char *const run_allow_words[]; /* of --allow; ends with NULL */

/* The option of an axis, as X of cell/axes.h; for commands whose struct begins with run_options. */
#define RUN_OPTION_AXIS(id, member, type, enumeration, recipe, option, letter_, what, ...)         \
	{.name = (option),                                                                         \
	 .letter = (letter_),                                                                      \
	 .kind = OPTION_LIST,                                                                      \
	 .offset = offsetof(struct run_options, axes) + AXIS_##id * sizeof(struct option_list),    \
	 .metavar = "LIST",                                                                        \
	 .initial = &axes[AXIS_##id].initial,                                                      \
	 .help = (what)},

/* Option rows for commands whose struct begins with run_options: the choice of cells. */
#define RUN_OPTIONS_CELLS                                                                          \
	CELL_AXES(RUN_OPTION_AXIS){.name = "batch-per-rank",                                       \
				   .kind = OPTION_LIST,                                            \
				   .offset = offsetof(struct run_options, batches_per_rank),       \
				   .metavar = "LIST",                                              \
				   .help = "instead of -b: batch sizes of one rank; a cell's "     \
					   "batch is that times its ranks"},                       \
		{.name = "worker",                                                                 \
		 .kind = OPTION_LIST,                                                              \
		 .offset = offsetof(struct run_options, workers),                                  \
		 .metavar = "NAME=COMMAND",                                                        \
		 .help = "your own worker as framework NAME; COMMAND is split "                    \
			 "into words like in a shell"},                                            \
		{.name = "shape",                                                                  \
		 .kind = OPTION_LIST,                                                              \
		 .offset = offsetof(struct run_options, shapes),                                   \
		 .metavar = "NAME=DIMS",                                                           \
		 .help = "shape of one sample for an ONNX input with open dimensions: "            \
			 "x=1x3x48x320; N marks a batch that is not the first: x=10xNx8"},
/* The same: how much is measured. */
#define RUN_OPTIONS_EFFORT                                                                         \
	{FLAG_OPTION(struct run_options, quick, "quick",                                           \
		     "effort quick: 11 processes of 0.4 s each, for screening")},                  \
		{FLAG_OPTION(struct run_options, rigorous, "rigorous",                             \
			     "effort rigorous: 10 to 40 processes of 20 s each, until the "        \
			     "interval is +/- 1 %")},                                              \
		{INT_OPTION(struct run_options, steps, "steps", 1, 1000000000, "N",                \
			    "number of steps in the measured window (default: as many as fit its " \
			    "time)")},                                                             \
		{INT_OPTION(struct run_options, warm_up, "warm-up", 0, 1000000000, "N",            \
			    "number of warm-up steps (default: until the step time is steady)")},  \
		{INT_OPTION(struct run_options, repeat, "repeat", 1, 10000, "N",                   \
			    "number of processes (default: set by the effort)")},                  \
		{INT_OPTION(struct run_options, seed, "seed", 0, INT32_MAX, "N",                   \
			    "seed of weights, batches and order (default: 1)")},                   \
		{TEXT_OPTION(struct run_options, until, "until", "TARGET",                         \
			     "train until an evaluation reaches this, such as accuracy=0.99 or "   \
			     "loss=0.05; each process is a training with a seed of its own, and "  \
			     "--repeat is the number of seeds (default: 20)")},                    \
		{INT_OPTION(struct run_options, evaluate_every, "evaluate-every", 1, 1000000000,   \
			    "N",                                                                   \
			    "with --until: steps between two evaluations, which are not timed "    \
			    "(default: a quarter of an epoch)")},                                  \
		{INT_OPTION(struct run_options, max_steps, "max-steps", 2, 1000000000, "N",        \
			    "with --until: steps of a training that does not reach the target "    \
			    "(default: 20 epochs)")},
/* The same: the limits of a worker. */
#define RUN_OPTIONS_PATIENCE                                                                       \
	{.name = "timeout",                                                                        \
	 .kind = OPTION_INT,                                                                       \
	 .offset = offsetof(struct run_options, timeout),                                          \
	 .min = 1,                                                                                 \
	 .max = 86400,                                                                             \
	 .metavar = "SECONDS",                                                                     \
	 .help = "time limit of a request (default: 300)"},                                        \
		{.name = "memory-limit",                                                           \
		 .kind = OPTION_MIB,                                                               \
		 .offset = offsetof(struct run_options, memory_limit),                             \
		 .min = 16,                                                                        \
		 .max = 1 << 30,                                                                   \
		 .help = "limit of a worker's resident memory, such as 1536 or 2GiB (default: "    \
			 "90 % of the available memory)"},
/* The values without any option. */
#define RUN_OPTIONS_DEFAULT                                                                        \
	{                                                                                          \
		.warm_up = -1, .seed = -1, .timeout = 300, .format = "table"                       \
	}

/* Makes a spec from the suites named on the command line, then the options, which override them,
 * then defaults. */
enum prony_status run_options_spec(const struct run_options *options, const char **suites,
				   size_t suite_count, struct spec *spec, struct error *err);

#endif
