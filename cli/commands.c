/* The one table of commands. */
#include "cli/commands.h"

#include "cli/cli.h"

const struct cli_command cli_commands[] = {
	{.syntax = {.name = "data", .arguments = "[list | verify [NAME|FILE...] | fetch NAME...]",
	            .summary = "data sets: what is here, whether it is whole, getting it",
	            .description = "Data sets are looked for in --data DIR, $PRONY_DATA, the data folder "
	                           "of the user, and beside the program. `verify` compares every file "
	                           "with its published size and SHA-256; a FILE is read as IDX. `fetch` "
	                           "downloads, checks, and keeps only what is whole.",
	            .options = data_option_rows},
	 .run = command_data},
	{.syntax = {.name = "doctor",
	            .summary = "what on this machine will spoil a measurement, and the remedy",
	            .description = "Only looks; what it advises is yours to do. Sensors that are absent "
	                           "are named with the reason.",
	            .options = doctor_option_rows},
	 .run = command_doctor},
	{.syntax = {.name = "worker", .summary = "the measuring process of a framework (internal)",
	            .options = worker_option_rows},
	 .run = command_worker, .hidden = true},
	{.syntax = {.name = "guard", .summary = "ends a worker's process tree (internal)"},
	 .run = command_guard, .hidden = true},
	{.run = NULL},
};
