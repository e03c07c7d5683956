#include "cli/machine_lock.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/cli.h"
#include "run/lock.h"

static void say_waiting(void *context, const char *path, const struct lock_holder *holder)
{
	char since[32] = "?";
	struct tm local;
	time_t at = (time_t)holder->since_s;

	(void)context;
	if (!holder->pid) {
		cli_say("waiting: another prony is measuring on this machine (%s)\n", path);
		return;
	}
	if (localtime_r(&at, &local))
		strftime(since, sizeof since, "%F %H:%M", &local);
	cli_say("waiting: another prony is measuring on this machine (%s): user %s, pid %d, since "
		"%s%s%s: %s\n",
		path, holder->user, holder->pid, since, *holder->takes ? ", takes " : "",
		holder->takes, holder->command);
}

volatile int stop_wanted;

/* The reference may compute for long before it checks the request to stop. Therefore a second
 * signal ends the program at once, and the guards end the workers. A second signal within two
 * seconds does not count: timeout(1) sends each signal twice. */
static void on_signal(int number)
{
	static struct timespec first;
	struct timespec now;

	(void)number;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!stop_wanted)
		first = now;
	else if (now.tv_sec - first.tv_sec >= 2)
		_exit(prony_status_exit(PRONY_INTERRUPTED));
	stop_wanted = 1;
}

void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal}, before;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		sigaction(numbers[i], &action, &before);
		/* nohup(1) */
		if (numbers[i] == SIGHUP && before.sa_handler == SIG_IGN)
			sigaction(SIGHUP, &before, NULL);
	}
	/* A worker may end while we write to it. */
	signal(SIGPIPE, SIG_IGN);
}

enum prony_status machine_lock(const volatile int *stop, int *fd, struct error *err)
{
	char *path = lock_default_path(), *self = path_self();
	struct file_stamp before = file_stamp(self);
	int taken = -1;
	enum prony_status status = lock_take(path, stop, say_waiting, NULL, &taken, err);
	struct file_stamp now = file_stamp(self);

	if (status == PRONY_OK && !file_stamp_equal(&before, &now)) {
		close(taken);
		status = error_set(err, PRONY_IO,
				   "%s was replaced or removed during the wait for another prony; "
				   "nothing was measured",
				   self);
	}
	if (status == PRONY_OK)
		*fd = taken;
	free(self);
	free(path);
	return status;
}
