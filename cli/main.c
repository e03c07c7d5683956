/* prony: one row per command, in the order in which help shows them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/environment.h"

/* A stream that the caller closed leaves its number to the next file: what we print would end in
 * that. */
static bool open_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return false;
	return true;
}

static bool reader_is_gone(int errnum)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return errnum == EPIPE || (poll(&out, 1, 0) == 1 && (out.revents & POLLERR));
}

/* Output that did not arrive is a failure, but for a reader who has seen enough. What ends with a
 * code of its own (a verdict, cells that failed) keeps it. */
static int finish_output(int code)
{
	int errnum = cli_finish_output();
	if (!errnum || reader_is_gone(errnum) || code == prony_status_exit(PRONY_IO))
		return code;
	struct error err = ERROR_INIT;
	error_errno(&err, PRONY_IO, errnum, "writing to standard output");
	int failed = cli_fail(&err);
	return code ? code : failed;
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		help_overview(cli_commands, cli_say);
		return prony_status_exit(PRONY_USAGE);
	}
	/* The options that programs have are commands too. */
	const char *word = argv[1];
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		help_overview(cli_commands, cli_out);
		return 0;
	}
	const struct cli_command *command =
		help_find(cli_commands, strcmp(word, "--version") ? word : "version");
	if (!command)
		return help_unknown(cli_commands, word);
	if (!command->hidden)
		environment_say_sudo();
	return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	/* Past `ulimit -f` a write then fails and is told; the signal would end us without a word.
	 */
	signal(SIGXFSZ, SIG_IGN);
	if (!open_standard_streams())
		return prony_status_exit(PRONY_INTERNAL);
	return finish_output(dispatch(argc, argv));
}
