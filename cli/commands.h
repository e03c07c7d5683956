/* The commands: their option rows, the structs that these fill, and their functions. Each command
 * has a file. */
#ifndef PRONY_CLI_COMMANDS_H
#define PRONY_CLI_COMMANDS_H

#include "cli/cli.h"

#define COMMAND(name)                                                                              \
	extern const struct option name##_option_rows[];                                           \
	extern struct name##_options name##_options;                                               \
	int command_##name(const struct cli_call *call, struct error *err);
COMMAND(run)
COMMAND(batch)
COMMAND(show)
COMMAND(report)
COMMAND(export)
COMMAND(profile)
COMMAND(log)
COMMAND(import)
COMMAND(delete)
COMMAND(tag)
COMMAND(compare)
COMMAND(history)
COMMAND(data)
COMMAND(doctor)
COMMAND(selftest)
COMMAND(ceilings)
COMMAND(list)
COMMAND(framework)
COMMAND(network)
COMMAND(worker_check)
COMMAND(worker)
#undef COMMAND

/* With the options of run. */
int command_layers(const struct cli_call *call, struct error *err);

/* Those without options. */
int command_manual(const struct cli_call *call, struct error *err);
int command_help(const struct cli_call *call, struct error *err);
int command_complete(const struct cli_call *call, struct error *err);
int command_completion(const struct cli_call *call, struct error *err);
int command_version(const struct cli_call *call, struct error *err);
int command_agent(const struct cli_call *call, struct error *err);
int command_guard(const struct cli_call *call, struct error *err);

#endif
