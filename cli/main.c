/* The main function: dispatches to the commands. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/identity.h"
#include "cli/cli.h"
#include "cli/environment.h"
#include "generated_version.h"

/* If the caller closed a standard stream, the next opened file would get its number and receive our
 * output. */
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

/* Output that could not be written is a failure, except when the reader has closed the pipe. A
 * command's own exit code (a verdict, failed cells) is kept. */
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
	/* Options such as --help and --version work as commands too. */
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
	return cli_run(cli_commands, command, argc - 1, argv + 1);
}

/* With less, prony overflows its stack and ends by a signal. */
#define STACK_LEAST_BYTES (512u << 10)

static bool stack_is_large_enough(struct error *err)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_LEAST_BYTES)
		return true;
	error_set(err, PRONY_NOMEM,
		  "the stack is limited to %llu KiB (ulimit -s), and prony needs %u KiB",
		  (unsigned long long)limit.rlim_cur >> 10, STACK_LEAST_BYTES >> 10);
	return false;
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	/* With SIGXFSZ ignored, a write beyond `ulimit -f` fails with an error that can be
	 * reported; the signal would kill us silently. */
	signal(SIGXFSZ, SIG_IGN);
	identity_set_build(PRONY_BUILD);
	if (!open_standard_streams())
		return prony_status_exit(PRONY_INTERNAL);
	if (!stack_is_large_enough(&err))
		return cli_fail(&err);
	return finish_output(dispatch(argc, argv));
}
