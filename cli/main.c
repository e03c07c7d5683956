/* prony: one row per command, in the order in which help shows them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/environment.h"

static void print_overview(void (*print)(const char *format, ...))
{
	print("prony: a dynamometer for deep-learning frameworks\n\n"
	      "Usage: prony COMMAND [OPTIONS]\n\nCommands:\n");
	for (const struct cli_command *command = cli_commands; command->run; command++)
		if (!command->hidden)
			print("  %-14s %s\n", command->syntax.name, command->syntax.summary);
	print("\n'prony COMMAND --help' explains a command; prony(1) explains everything.\n");
}

static int unknown_command(const char *word)
{
	const char *names[64];
	size_t count = 0;
	for (const struct cli_command *command = cli_commands; command->run && count < 64;
	     command++)
		if (!command->hidden)
			names[count++] = command->syntax.name;
	const char *nearest = word_nearest(word, names, count);
	struct error err = ERROR_INIT;
	error_set(&err, PRONY_USAGE, "no command '%s'%s%s%s; 'prony --help' lists them", word,
		  nearest ? ": did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
	return cli_fail(&err);
}

/* A stream that the caller closed leaves its number to the next file: what we print would end in
 * that. */
static bool open_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return false;
	return true;
}

/* Output that did not arrive is a failure, but for a reader who has seen enough. */
static int finish_output(int code)
{
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE || code)
		return code;
	struct error err = ERROR_INIT;
	error_errno(&err, PRONY_IO, errno ? errno : EIO, "writing to standard output");
	return cli_fail(&err);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(cli_say);
		return prony_status_exit(PRONY_USAGE);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_overview(cli_out);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		cli_out("prony " PRONY_VERSION "\n");
		return 0;
	}
	for (const struct cli_command *command = cli_commands; command->run; command++) {
		if (strcmp(argv[1], command->syntax.name))
			continue;
		if (!command->hidden)
			environment_say_sudo();
		return command->run(command, argc - 1, argv + 1);
	}
	return unknown_command(argv[1]);
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
