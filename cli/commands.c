/* The table of commands. */
#include "cli/commands.h"

#include "cli/run_options.h"

/* Arguments of commands that take runs. */
#define RUN_WORDS                                                                                  \
	"RUN is a name, a number, `latest`, `latest~1` for the run before it, or the first four "  \
	"or more digits of a uid."

const struct cli_command cli_commands[] = {
	{.syntax =
		 {.name = "run",
		  .arguments = "[SUITE | FILE.yaml]",
		  .summary = "measure a suite, or all combinations of the given axes",
		  .description =
			  "Each cell first passes the parity gate: it must compute the same as the "
			  "reference. Then processes of all cells run in rounds, in random order, "
			  "until each result is precise enough. Options replace the axes of a "
			  "suite. An axis without a value has its default (for data sets: the "
			  "network's own). The effort sets the precision: by default 5 to 12 "
			  "processes of 10 s each, until the interval is +/- 2 %; less with "
			  "--quick, more with --rigorous. Each result is stored at once; an "
			  "interrupted run prints what it has measured, and --resume continues "
			  "it.\n\n"
			  "Exit codes: 0 success; 1 a cell that was requested by name is not ok, "
			  "or was ok in the baseline; 2 a cell is slower than in the baseline; 3 a "
			  "cell may be slower (INCONCLUSIVE). --allow accepts some of these.\n\n"
			  "  prony run quickstart --dry-run       # shows what would run, and for "
			  "how long\n"
			  "  prony run quickstart\n"
			  "  prony run -f native,pytorch -n lenet -b 1..256*4 -s forward,train\n"
			  "  prony run -f all -n lenet --gate-only",
		  .options = run_option_rows},
	 .target = &run_options,
	 .run = command_run},
	{.syntax =
		 {.name = "batch",
		  .arguments = "[SUITE | FILE.yaml]",
		  .summary = "run a suite on a cluster with Slurm, in parts or on every node",
		  .description =
			  "Takes the options of `prony run`. Each task of an array job measures a "
			  "part of the run (--part) on a node of its own, and moves its store into "
			  "a folder that all nodes see; `prony import` joins them. --print shows "
			  "the script: a site may edit it and submit it, or translate it for "
			  "another batch system. Ctrl-C during --wait leaves the jobs in the "
			  "queue.\n\n"
			  "  prony batch quickstart --nodes 4 --print > job.sh\n"
			  "  prony batch quickstart --nodes 4 --sbatch-option '-p main' --wait\n"
			  "  prony batch quickstart --nodes 4 --resume --wait",
		  .options = batch_option_rows},
	 .target = &batch_options,
	 .run = command_batch},
	{.syntax =
		 {.name = "layers",
		  .summary = "measure each distinct layer of a network by itself",
		  .description =
			  "Makes a network of each distinct layer (an operator with the functions "
			  "of an element behind it, or an attention), and runs them forward beside "
			  "the whole network, through the parity gate and in rounds. The table has "
			  "the step of each layer in each framework, and their sum against "
			  "that of the network. Takes the options of `prony run` and one "
			  "network.\n\n"
			  "  prony layers -n resnet50 -f native,pytorch,onnxruntime -b 8 --quick\n"
			  "  prony layers -n lenet -f native --repeat 3",
		  .options = run_option_rows},
	 .target = &run_options,
	 .run = command_layers},
	{.syntax = {.name = "show",
		    .arguments = "[RUN...]",
		    .summary = "print a run as a table (default: the newest run)",
		    .description = RUN_WORDS " --by node takes all runs that measured the same "
					     "as RUN, or the runs that are named, and says which "
					     "node is slower than the median of the others: exit "
					     "code 2 if one is in both of its last runs, 3 if it "
					     "has only one run, 1 if a cell is not ok there.\n\n"
					     "  prony show\n"
					     "  prony show latest~1 --format json\n"
					     "  prony show --by node",
		    .options = show_option_rows},
	 .target = &show_options,
	 .run = command_show},
	{.syntax = {.name = "report",
		    .arguments = "[RUN...]",
		    .summary = "write a page with charts; several runs are shown side by side",
		    .description = RUN_WORDS "\n\n"
					     "  prony report -o report.html\n"
					     "  prony report main latest -o both.html\n"
					     "  prony report --figures figures",
		    .options = report_option_rows},
	 .target = &report_options,
	 .run = command_report},
	{.syntax = {.name = "export",
		    .arguments = "[RUN...]",
		    .summary = "write results as CSV, JSON, JSON lines, Markdown or LaTeX",
		    .description = RUN_WORDS "\n\n"
					     "  prony export --layout cells > cells.csv\n"
					     "  prony export latest --format jsonl > run.jsonl",
		    .options = export_option_rows},
	 .target = &export_options,
	 .run = command_export},
	{.syntax =
		 {.name = "profile",
		  .arguments = "[SUITE | FILE.yaml]",
		  .summary = "show where the step time of a cell is spent: phases, layers, lines, "
			     "processors",
		  .description =
			  "Takes the options of `prony run`, which must select one cell, in one or "
			  "several frameworks. Profiling slows the steps, so a profile is not a "
			  "measurement: the parity gate does not run, and nothing is stored.\n\n"
			  "  prony profile -f native,onnxruntime -n lenet -s forward\n"
			  "  prony profile -f native -n lenet -s train --format chrome -o "
			  "trace.json",
		  .options = profile_option_rows},
	 .target = &profile_options,
	 .run = command_profile},
	{.syntax = {.name = "log",
		    .arguments = "[CELL...]",
		    .summary =
			    "print the output of a cell's processes, and the evidence of its gate",
		    .description = "CELL is the beginning of a cell's hash, or words of its key. "
				   "Without CELL, lists all cells.\n\n"
				   "  prony log\n"
				   "  prony log pytorch train",
		    .options = log_option_rows},
	 .target = &log_options,
	 .run = command_log},
	{.syntax = {.name = "import",
		    .arguments = "STORE...",
		    .summary = "copy the runs of another store that this one lacks",
		    .description = "Parts of a run (prony run --part) are joined into one run, in "
				   "any order.\n\n"
				   "Example: to compare several machines, copy the store of each, "
				   "import the copies, and report their runs together.\n\n"
				   "  prony import other-machine.db",
		    .options = import_option_rows},
	 .target = &import_options,
	 .run = command_import},
	{.syntax = {.name = "delete",
		    .arguments = "RUN...",
		    .summary = "delete runs from the store permanently",
		    .description = "RUN is a run's name, its number, or the first four or more "
				   "digits of its uid. If it matches two runs, nothing is deleted. "
				   "prony lists the runs and asks for confirmation; without a "
				   "terminal, --yes is required. Then the file shrinks.\n\n"
				   "  prony list runs\n"
				   "  prony delete 12 13",
		    .options = delete_option_rows},
	 .target = &delete_options,
	 .run = command_delete},
	{.syntax = {.name = "tag",
		    .arguments = "RUN [TAG...]",
		    .summary = "give a run a name and tags; every command accepts the name",
		    .description = "A name belongs to one run; a tag may be on any number of runs. "
				   "Both begin with a letter (a tag also with a digit) and consist "
				   "of letters, digits and . _ + -.\n\n"
				   "  prony tag latest nightly --name v2.1\n"
				   "  prony list runs --tag nightly",
		    .options = tag_option_rows},
	 .target = &tag_options,
	 .run = command_tag},
	{.syntax = {.name = "compare",
		    .arguments = "A [B] [CELL...]",
		    .summary = "show how much slower B is than A, cell by cell, with intervals",
		    .description =
			    "A and B are runs (default for B: the newest), or RUN:FRAMEWORK "
			    "to compare two frameworks. Further words select cells. Cells of "
			    "the same run are paired by rounds; cells of different runs are "
			    "compared with Welch's t on the logarithms of process means. "
			    "Exit codes: 0 B is the same or faster, 2 a cell is slower, 3 a "
			    "cell is inconclusive, 1 a cell that is ok in A is not ok in B.\n\n"
			    "  prony compare main latest\n"
			    "  prony compare latest:native latest:onnxruntime forward\n"
			    "  prony compare 12 15 --threshold 5%",
		    .options = compare_option_rows},
	 .target = &compare_options,
	 .run = command_compare},
	{.syntax = {.name = "history",
		    .arguments = "CELL...",
		    .summary = "show a cell over the stored runs, and where it changed",
		    .description =
			    "CELL is the beginning of a cell's hash, or words of its key. "
			    "Only runs of the same machine as the newest one are included. "
			    "Changes are found by E-divisive with permutation tests; a "
			    "history without changes gives a false alarm in 1 % of cases.\n\n"
			    "  prony history native lenet train",
		    .options = history_option_rows},
	 .target = &history_options,
	 .run = command_history},
	{.syntax = {.name = "data",
		    .arguments =
			    "[list | verify [NAME|FILE...] | fetch NAME... | convert NAME|FILE "
			    "--to FORMAT -o DIR]",
		    .summary = "list, verify, download and convert data sets",
		    .description =
			    "prony looks for data sets in --data DIR, $PRONY_DATA, the user's data "
			    "folder, and beside the program. `verify` compares every file with its "
			    "published size and SHA-256. A FILE in any format of `prony data "
			    "list`, or a folder of pictures, is read completely, and every broken "
			    "sample is listed. `fetch` downloads and verifies; only intact files "
			    "are kept. `convert` writes the formats that frameworks read "
			    "themselves: lmdb (Caffe), recordio (MXNet), tfrecord (TensorFlow), "
			    "png with a map and a mean file (CNTK), into DIR/train and "
			    "DIR/evaluation. Photographs are copied unchanged unless --size is "
			    "given. After an interruption the same command continues.\n\n"
			    "  prony data list\n"
			    "  prony data fetch cifar10\n"
			    "  prony data verify mnist-3000\n"
			    "  prony data convert mnist-3000 --to recordio -o mnist-recordio",
		    .options = data_option_rows},
	 .target = &data_options,
	 .run = command_data},
	{.syntax = {.name = "doctor",
		    .summary = "report what disturbs measurements on this machine, and the remedy",
		    .description =
			    "prony only reports and changes nothing. Missing sensors are listed "
			    "with the reason. --measure measures the peak of processors and "
			    "memory; later runs then show each cell's share of it.\n\n"
			    "  prony doctor\n"
			    "  prony doctor --measure",
		    .options = doctor_option_rows},
	 .target = &doctor_options,
	 .run = command_doctor},
	{.syntax = {.name = "selftest",
		    .summary = "measure the smallest difference that prony can detect here, and "
			       "the machine's peak",
		    .description =
			    "Measures the clock, the cost of the sensors, how much two "
			    "identical runs differ (the noise), the smallest slowdown that "
			    "is detected (the noise floor), and whether slowdowns of 1, 2 "
			    "and 5 % are detected, with the framework fake; also the peak of "
			    "processors and memory. Takes about a minute, or 15 seconds with "
			    "--quick. The results are stored for this machine and used by "
			    "later runs: comparisons use the noise, and each cell shows its "
			    "share of the peak.",
		    .options = selftest_option_rows},
	 .target = &selftest_options,
	 .run = command_selftest},
	{.syntax = {.name = "ceilings",
		    .summary = "measure the peak of this machine (internal)",
		    .options = ceilings_option_rows},
	 .target = &ceilings_options,
	 .run = command_ceilings,
	 .hidden = true},
	{.syntax = {.name = "manual", .summary = "print prony(1) as roff (internal)"},
	 .run = command_manual,
	 .hidden = true},
	{.syntax = {.name = "list",
		    .arguments = "[frameworks|networks|datasets|devices|suites|metrics|runs ...]",
		    .summary = "list what prony knows and what is installed",
		    .description = "Without arguments: everything except metrics and runs.\n\n"
				   "  prony list frameworks\n"
				   "  prony list networks datasets suites\n"
				   "  prony list runs",
		    .options = list_option_rows},
	 .target = &list_options,
	 .run = command_list},
	{.syntax =
		 {.name = "framework",
		  .arguments = "install NAME... | remove NAME... | list [NAME...]",
		  .summary = "install, remove or list frameworks, each in its own environment",
		  .description =
			  "`install` downloads exactly the files that a lock file pins by SHA-256, "
			  "with pip and its own configuration, loads the framework once as a test, "
			  "and only then moves it into the data folder. Existing installations are "
			  "kept. `all` means every framework that can be installed. Sizes are "
			  "shown first; several frameworks are installed in parallel if the disk "
			  "has room. After Ctrl-C or a failure the same command continues. "
			  "`remove` deletes what `install` created. NAME@ENV selects one of "
			  "several environments. Its lock file is the framework's own lock whose "
			  "version begins with ENV, or locks/NAME@ENV.txt in the data folder.\n\n"
			  "  prony framework install pytorch\n"
			  "  prony framework install jax@0.10\n"
			  "  prony framework install pytorch@mine --own ~/venv/bin/python\n"
			  "  prony framework remove pytorch",
		  .options = framework_option_rows},
	 .target = &framework_options,
	 .run = command_framework},
	{.syntax = {.name = "network",
		    .arguments = "NAME|FILE.onnx|FILE.py:NAME",
		    .summary = "show layers, shapes, parameters, MACs and memory of a network; "
			       "write its ONNX file",
		    .description = "MACs are multiply-accumulates of the forward pass.\n\n"
				   "  prony network lenet\n"
				   "  prony network resnet50 --batch 8 --onnx resnet50.onnx\n"
				   "  prony network ./model.onnx --draw model.svg\n"
				   "  prony network model.py:Net",
		    .options = network_option_rows},
	 .target = &network_options,
	 .run = command_network},
	{.syntax = {.name = "worker-check",
		    .arguments = "COMMAND [ARGUMENT...]",
		    .summary = "check that a worker follows the protocol and computes correctly",
		    .description = "Starts COMMAND as a worker several times and checks it against "
				   "docs/worker-protocol.md: every verb, with and without shared "
				   "memory, and invalid requests. Options of prony come before "
				   "COMMAND. Exit code 0 when every check passed, otherwise 1.\n\n"
				   "  prony worker-check python3 python/worker.py --adapter null\n"
				   "  prony worker-check --level numeric ./my-worker",
		    .options = worker_check_option_rows},
	 .target = &worker_check_options,
	 .run = command_worker_check,
	 .raw = true},
	{.syntax =
		 {.name = "completion",
		  .arguments = "bash | zsh | fish",
		  .summary = "print a script for shell completion",
		  .description =
			  "It completes commands, options, frameworks, networks, data sets, suites "
			  "and runs.\n\n"
			  "  source <(prony completion bash)      # in ~/.bashrc\n"
			  "  source <(prony completion zsh)       # in ~/.zshrc, after compinit\n"
			  "  prony completion fish | source       # in config.fish"},
	 .run = command_completion},
	{.syntax = {.name = "complete", .summary = "print words for shell completion (internal)"},
	 .run = command_complete,
	 .hidden = true,
	 .raw = true},
	{.syntax = {.name = "help",
		    .arguments = "[COMMAND]",
		    .summary = "list the commands, or explain one"},
	 .run = command_help},
	{.syntax = {.name = "version",
		    .summary = "print version, commit, and the SHA-256 of the program and of "
			       "native's library"},
	 .run = command_version},
	{.syntax = {.name = "worker",
		    .summary = "the measuring process of a framework (internal)",
		    .options = worker_option_rows},
	 .target = &worker_options,
	 .run = command_worker,
	 .hidden = true},
	{.syntax = {.name = "guard", .summary = "end a worker's process tree (internal)"},
	 .run = command_guard,
	 .hidden = true,
	 .raw = true},
	{.syntax = {.name = "agent",
		    .summary = "measure on a node what `prony run --launch` asks for (internal)"},
	 .run = command_agent,
	 .hidden = true},
	{.run = NULL},
};
