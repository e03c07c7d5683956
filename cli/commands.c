/* The table of commands. */
#include "cli/commands.h"

#include "cli/cli.h"
#include "cli/run_options.h"

/* Arguments of commands that take runs. */
#define RUN_WORDS                                                                                  \
	"RUN is a name, a number, `latest`, `latest~1` for the one before, or at least four "      \
	"digits with which a uid begins."

static int command_manual(const struct cli_command *command, int argc, char **argv)
{
	return manual_print(command, cli_commands, argc, argv);
}

static int command_help(const struct cli_command *command, int argc, char **argv)
{
	return help_print(command, cli_commands, argc, argv);
}

static int command_complete(const struct cli_command *command, int argc, char **argv)
{
	(void)command;
	return completion_print(cli_commands, argc, argv);
}

const struct cli_command cli_commands[] = {
	{.syntax =
		 {.name = "run",
		  .arguments = "[SUITE | FILE.yaml]",
		  .summary = "measure: a suite, or the product of the axes given",
		  .description =
			  "Each cell first has to prove that it computes the same as the "
			  "reference; then processes of all cells run in rounds, in random "
			  "order, until each is known well enough. Options replace the axes of "
			  "a suite; what neither names has its default (data sets: the network's "
			  "own). The effort says how well "
			  "is well enough: by default 5 to 12 processes of 10 s each, until the "
			  "interval is +/- 2 %; less with --quick, more with --rigorous. Results "
			  "are stored as they come: what was killed goes on with --resume.\n\n"
			  "  prony run quickstart --dry-run       # what would run, and how long\n"
			  "  prony run quickstart\n"
			  "  prony run -f native,pytorch -n lenet -b 1..256*4 -s forward,train\n"
			  "  prony run -f all -n lenet --gate-only",
		  .options = run_option_rows},
	 .run = command_run},
	{.syntax = {.name = "show",
		    .arguments = "[RUN]",
		    .summary = "a run as a table (the newest unless told)",
		    .description = RUN_WORDS "\n\n"
					     "  prony show\n"
					     "  prony show latest~1 --format json",
		    .options = show_option_rows},
	 .run = command_show},
	{.syntax = {.name = "report",
		    .arguments = "[RUN...]",
		    .summary = "one page with charts; several runs stand side by side",
		    .description = RUN_WORDS "\n\n"
					     "  prony report -o report.html\n"
					     "  prony report main latest -o both.html\n"
					     "  prony report --figures figures",
		    .options = report_option_rows},
	 .run = command_report},
	{.syntax = {.name = "export",
		    .arguments = "[RUN...]",
		    .summary = "results as CSV, JSON, JSON lines, Markdown or LaTeX",
		    .description = RUN_WORDS "\n\n"
					     "  prony export --layout cells > cells.csv\n"
					     "  prony export latest --format jsonl > run.jsonl",
		    .options = export_option_rows},
	 .run = command_export},
	{.syntax =
		 {.name = "profile",
		  .arguments = "[SUITE | FILE.yaml]",
		  .summary = "where the step of one cell goes: phases, layers, lines, processors",
		  .description =
			  "The words of `prony run`, which here choose one cell, in one framework "
			  "or several side by side. Its steps run apart from any measurement, "
			  "timed from within: nothing of it is proved or stored.\n\n"
			  "  prony profile -f native,onnxruntime -n lenet -s forward\n"
			  "  prony profile -f native -n lenet -s train --format chrome -o "
			  "trace.json",
		  .options = profile_option_rows},
	 .run = command_profile},
	{.syntax = {.name = "log",
		    .arguments = "[CELL...]",
		    .summary = "what each process of a cell printed, and the gate's evidence",
		    .description = "CELL is the beginning of a cell's hash, or words of its key; "
				   "without one, every cell is listed.\n\n"
				   "  prony log\n"
				   "  prony log pytorch train",
		    .options = log_option_rows},
	 .run = command_log},
	{.syntax = {.name = "import",
		    .arguments = "STORE...",
		    .summary = "add the runs of another store that are not here yet",
		    .description = "For example to see several machines side by side: copy the "
				   "store of each, import them, name the runs to report.\n\n"
				   "  prony import other-machine.db",
		    .options = import_option_rows},
	 .run = command_import},
	{.syntax =
		 {.name = "delete",
		  .arguments = "RUN...",
		  .summary = "delete runs from the store for good",
		  .description =
			  "RUN is a run's name, its number, or at least four digits with which its "
			  "uid begins. What may mean two runs deletes neither. Says what it found "
			  "and asks; without a terminal to answer at, --yes is needed. The file "
			  "becomes as much smaller as it can.\n\n"
			  "  prony list runs\n"
			  "  prony delete 12 13",
		  .options = delete_option_rows},
	 .run = command_delete},
	{.syntax = {.name = "tag",
		    .arguments = "RUN [TAG...]",
		    .summary = "give a run a name and tags; every command finds it by its name",
		    .description =
			    "A name is one run's only; tags as many runs may share as one likes. "
			    "Both begin with a letter (a tag also with a digit) and hold letters, "
			    "digits and . _ + -.\n\n"
			    "  prony tag latest nightly --name v2.1\n"
			    "  prony list runs --tag nightly",
		    .options = tag_option_rows},
	 .run = command_tag},
	{.syntax = {.name = "compare",
		    .arguments = "A [B] [CELL...]",
		    .summary = "how much slower B is than A, cell by cell, and how sure that is",
		    .description =
			    "A and B are runs (without B, the newest), or RUN:FRAMEWORK for two "
			    "frameworks. Words after them tell the cells that are meant. Cells of "
			    "one run are paired by rounds, those of different runs by Welch's t on "
			    "the logarithms of process means. Ends with 0 when B is the same or "
			    "faster, 2 when a cell is slower, 3 when it cannot be told, 1 when a "
			    "cell that was ok in A is not in B.\n\n"
			    "  prony compare main latest\n"
			    "  prony compare latest:native latest:onnxruntime forward\n"
			    "  prony compare 12 15 --threshold 5%",
		    .options = compare_option_rows},
	 .run = command_compare},
	{.syntax = {.name = "history",
		    .arguments = "CELL...",
		    .summary = "a cell through the stored runs, and where it changed",
		    .description =
			    "CELL is the beginning of a cell's hash, or words of its key. Runs of "
			    "other machines than that of the newest one are left out. Changes are "
			    "found by E-divisive with permutation tests, at a level of 1 % for a "
			    "history without any.\n\n"
			    "  prony history native lenet train",
		    .options = history_option_rows},
	 .run = command_history},
	{.syntax =
		 {.name = "data",
		  .arguments = "[list | verify [NAME|FILE...] | fetch NAME... | convert NAME|FILE "
			       "--to FORMAT -o DIR]",
		  .summary =
			  "data sets: what is here, whether it is whole, getting and converting it",
		  .description =
			  "Data sets are looked for in --data DIR, $PRONY_DATA, the data folder "
			  "of the user, and beside the program. `verify` compares every file "
			  "with its published size and SHA-256; a FILE is read through in "
			  "whichever of the formats of `prony data list` it is, and so is a "
			  "folder of pictures, of which every broken one is named. `fetch` "
			  "downloads, checks, and keeps only what is whole. `convert` writes what "
			  "frameworks read themselves: lmdb (Caffe), recordio (MXNet), tfrecord "
			  "(TensorFlow), png with a map and a mean file (CNTK); a data set into "
			  "DIR/train and "
			  "DIR/evaluation. Photographs keep their bytes unless --size is given. "
			  "Killed, the same command goes on.\n\n"
			  "  prony data list\n"
			  "  prony data fetch cifar10\n"
			  "  prony data verify mnist-sample\n"
			  "  prony data convert mnist-sample --to recordio -o mnist-recordio",
		  .options = data_option_rows},
	 .run = command_data},
	{.syntax = {.name = "doctor",
		    .summary = "what on this machine will spoil a measurement, and the remedy",
		    .description =
			    "Only looks; what it advises is yours to do. Sensors that are absent "
			    "are named with the reason. --measure finds what processors and memory "
			    "can do at best: each cell of later runs says its share of it.\n\n"
			    "  prony doctor\n"
			    "  prony doctor --measure",
		    .options = doctor_option_rows},
	 .run = command_doctor},
	{.syntax =
		 {.name = "selftest",
		  .summary = "what prony can tell apart on this machine, and its ceilings",
		  .description =
			  "Measures the clock, what the sensors cost, how far two runs of the same "
			  "lie apart (its noise), how much slower something must be to be found "
			  "(the "
			  "noise floor) and whether slowdowns of 1, 2 and 5 % are "
			  "found, with the framework fake; and what processors and memory can do "
			  "at best. About a minute; --quick 15 seconds. What it finds is kept for "
			  "this machine, and later runs carry it: comparisons use the noise, "
			  "each cell says its share of the peak.",
		  .options = selftest_option_rows},
	 .run = command_selftest},
	{.syntax = {.name = "ceilings",
		    .summary = "measures what this machine can do at best (internal)",
		    .options = ceilings_option_rows},
	 .run = command_ceilings,
	 .hidden = true},
	{.syntax = {.name = "manual", .summary = "prints prony(1) as roff (internal)"},
	 .run = command_manual,
	 .hidden = true},
	{.syntax = {.name = "list",
		    .arguments = "[frameworks|networks|datasets|devices|suites|metrics|runs ...]",
		    .summary = "what exists, what is installed, and why the rest is not",
		    .description = "Without a word: everything but metrics and runs.\n\n"
				   "  prony list frameworks\n"
				   "  prony list networks datasets suites\n"
				   "  prony list runs",
		    .options = list_option_rows},
	 .run = command_list},
	{.syntax = {.name = "framework",
		    .arguments = "install NAME... | remove NAME... | list [NAME...]",
		    .summary =
			    "install, remove or list frameworks, each in an environment of its own",
		    .description =
			    "`install` downloads exactly the files that a lock pins by SHA-256, "
			    "with pip and its own configuration, loads the framework once, and "
			    "only then puts it into the data folder; what is installed already "
			    "is left alone. `all` stands for all that can be installed. What each "
			    "downloads and takes is said first; several are installed at a time "
			    "where the disk has room. After Ctrl-C, or a failure, the same command "
			    "goes on. `remove` takes away what `install` made. NAME@ENV names one "
			    "environment of "
			    "several; its lock is one of the framework's own whose version begins "
			    "with ENV, or NAME@ENV.txt in the folder locks of the data folder.\n\n"
			    "  prony framework install pytorch\n"
			    "  prony framework install jax@0.10\n"
			    "  prony framework install pytorch@mine --own ~/venv/bin/python\n"
			    "  prony framework remove pytorch",
		    .options = framework_option_rows},
	 .run = command_framework},
	{.syntax =
		 {.name = "network",
		  .arguments = "NAME|FILE.onnx",
		  .summary =
			  "layers, shapes, parameters, MACs and memory of a network; its ONNX file",
		  .description = "MACs are multiply-accumulates of the forward pass.\n\n"
				 "  prony network lenet\n"
				 "  prony network resnet50 --batch 8 --onnx resnet50.onnx\n"
				 "  prony network ./model.onnx --draw model.svg",
		  .options = network_option_rows},
	 .run = command_network},
	{.syntax = {.name = "worker-check",
		    .arguments = "COMMAND [ARGUMENT...]",
		    .summary = "whether a worker keeps the protocol and computes right",
		    .description =
			    "Starts COMMAND as a worker several times and holds it to "
			    "docs/worker-protocol.md: every verb, with shared memory and without, "
			    "and requests that no good parent sends. Options of prony stand before "
			    "COMMAND. Ends with 0 when every check passed, else with 1.\n\n"
			    "  prony worker-check python3 python/worker.py --adapter null\n"
			    "  prony worker-check --level numeric ./my-worker",
		    .options = worker_check_option_rows},
	 .run = command_worker_check},
	{.syntax = {.name = "completion",
		    .arguments = "bash | zsh | fish",
		    .summary = "a script that makes a shell complete prony's words",
		    .description =
			    "Prints a script for the shell, which asks this program for the words "
			    "that may stand where the cursor is: commands, options, and what "
			    "there is of frameworks, networks, data sets and suites.\n\n"
			    "  source <(prony completion bash)      # in ~/.bashrc\n"
			    "  source <(prony completion zsh)       # in ~/.zshrc, after compinit\n"
			    "  prony completion fish | source       # in config.fish",
		    .options = completion_option_rows},
	 .run = command_completion},
	{.syntax = {.name = "complete", .summary = "words for a shell (internal)"},
	 .run = command_complete,
	 .hidden = true},
	{.syntax = {.name = "help",
		    .arguments = "[COMMAND]",
		    .summary = "the commands, or what one of them does"},
	 .run = command_help},
	{.syntax = {.name = "version", .summary = "the version of the program"},
	 .run = command_version},
	{.syntax = {.name = "worker",
		    .summary = "the measuring process of a framework (internal)",
		    .options = worker_option_rows},
	 .run = command_worker,
	 .hidden = true},
	{.syntax = {.name = "guard", .summary = "ends a worker's process tree (internal)"},
	 .run = command_guard,
	 .hidden = true},
	{.run = NULL},
};
