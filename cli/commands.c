/* The one table of commands. */
#include "cli/commands.h"

#include "cli/cli.h"

const struct cli_command cli_commands[] = {
	{.syntax = {.name = "worker", .summary = "the measuring process of a framework (internal)",
	            .options = worker_option_rows},
	 .run = command_worker, .hidden = true},
	{.syntax = {.name = "guard", .summary = "ends a worker's process tree (internal)"},
	 .run = command_guard, .hidden = true},
	{.run = NULL},
};
