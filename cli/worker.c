/* `prony worker` and `prony guard`: the program as its own child process. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "client/guard.h"
#include "worker/worker.h"

const struct option worker_option_rows[] = {
	{.name = "adapter",
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct worker_options, adapter),
	 .metavar = "NAME",
	 .help = "adapter to run"},
	{.name = "library",
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct worker_options, library),
	 .metavar = "FILE",
	 .help = "shared library that it loads"},
	{.name = "option",
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct worker_options, option),
	 .metavar = "TEXT",
	 .help = "options of the adapters null and fake"},
	{.name = NULL},
};

int command_worker(const struct cli_command *command, int argc, char **argv)
{
	struct worker_options options = {0};
	const char *positional[64];
	size_t count = 0;
	int exit_code = 0;
	struct error err = ERROR_INIT;
	if (argc > 64)
		exit_code = cli_fail((error_set(&err, PRONY_USAGE, "too many arguments"), &err));
	else if (cli_parse(command, argc, argv, &options, positional, &count, &exit_code)) {
		if (!options.adapter || count)
			error_set(&err, PRONY_USAGE,
				  "prony worker takes --adapter NAME and no other words");
		else
			exit_code = worker_main(&options, &err);
		if (err.code)
			exit_code = cli_fail(&err);
	}
	/* Skip destructors: those of some frameworks crash or hang, and everything has been
	 * delivered. */
	fflush(NULL);
	_exit(exit_code);
}

int command_guard(const struct cli_command *command, int argc, char **argv)
{
	(void)command;
	return guard_main(argc, argv);
}
