/* `prony worker` and `prony guard`: the program as its own child process. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "client/guard.h"
#include "worker/worker.h"

struct worker_options worker_options;

const struct option worker_option_rows[] = {
	{TEXT_OPTION(struct worker_options, adapter, "adapter", "NAME", "adapter to run")},
	{TEXT_OPTION(struct worker_options, library, "library", "FILE",
		     "shared library that the adapter loads")},
	{TEXT_OPTION(struct worker_options, option, "option", "TEXT",
		     "options of the adapters null and fake")},
	{.name = NULL},
};

int command_worker(const struct cli_call *call, struct error *err)
{
	int exit_code = 0;
	(void)call;
	if (!worker_options.adapter)
		error_set(err, PRONY_USAGE, "prony worker needs --adapter NAME");
	else
		exit_code = worker_main(&worker_options, err);
	if (err->code)
		exit_code = cli_fail(err);
	/* Skip destructors: those of some frameworks crash or hang, and everything has been
	 * delivered. */
	fflush(NULL);
	_exit(exit_code);
}

int command_guard(const struct cli_call *call, struct error *err)
{
	(void)err;
	return guard_main(call->argc, call->argv);
}
