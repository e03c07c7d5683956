#include "run/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock_file.h"
#include "base/memory.h"

char *lock_default_path(void)
{
	const char *named = getenv("PRONY_LOCK"), *node = getenv("SLURMD_NODENAME");

	if (named && *named)
		return memory_strdup(named);
	/* Several nodes of Slurm may be on one host. */
	return node && *node && !strchr(node, '/') ? memory_printf("/tmp/prony.lock.%s", node)
						   : memory_strdup("/tmp/prony.lock");
}

/*
 * Opens the lock so that every user of this machine can open it, because all measurements take it.
 */
static enum prony_status open_lock(const char *path, int *lock, struct error *err)
{
	struct error why = ERROR_INIT;
	if (lock_file_open(path, 0666, lock, &why) == PRONY_OK)
		return PRONY_OK;
	return error_set(err, PRONY_STORE, "%s; set PRONY_LOCK to another file", why.text);
}

/* The command line of this process as one line, its program without the folder. */
static void own_command(char *out, size_t bytes)
{
	char text[4096];
	int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	const char *slash = strrchr(text, '/');
	size_t start = slash ? (size_t)(slash + 1 - text) : 0;
	for (ssize_t i = 0; i + 1 < length; i++)
		if (text[i] == '\0' || text[i] == '\n')
			text[i] = ' ';
	snprintf(out, bytes, "%s", text + start);
}

/* An unknown holder if the file says nothing, or names a process that has ended. */
static void read_holder(int lock, struct lock_holder *holder)
{
	char text[1024];
	ssize_t length = pread(lock, text, sizeof text - 1, 0);

	memset(holder, 0, sizeof *holder);
	text[length > 0 ? length : 0] = '\0';
	if (sscanf(text,
		   "pid %9d\nsince %18" SCNd64 "\nuser %63[^\n]\ncommand %255[^\n]\ntakes %63[^\n]",
		   &holder->pid, &holder->since_s, holder->user, holder->command,
		   holder->takes) < 4 ||
	    holder->pid <= 0 || (kill(holder->pid, 0) != 0 && errno == ESRCH))
		memset(holder, 0, sizeof *holder);
}

void lock_say_holder(int lock, const char *takes)
{
	const struct passwd *user = getpwuid(geteuid());
	char text[512], number[24], command[256];

	snprintf(number, sizeof number, "%u", geteuid());
	own_command(command, sizeof command);
	int length = snprintf(text, sizeof text,
			      "pid %d\nsince %" PRId64 "\nuser %.63s\ncommand %s\ntakes %.63s\n",
			      getpid(), (int64_t)time(NULL), user ? user->pw_name : number, command,
			      takes);
	/* Whoever may not write into the file of another user stays unknown. */
	if (pwrite(lock, text, (size_t)length, 0) == length && ftruncate(lock, length) != 0)
		return;
}

enum prony_status lock_take(const char *path, const volatile int *stop,
			    void (*waiting)(void *context, const char *path,
					    const struct lock_holder *holder),
			    void *context, int *fd, struct error *err)
{
	struct lock_holder told = {.pid = -1}, holder;
	int lock;
	enum prony_status status = open_lock(path, &lock, err);
	while (status == PRONY_OK) {
		bool locked = flock(lock, LOCK_EX | LOCK_NB) == 0;
		if (locked && lock_file_stands(path, lock)) {
			lock_say_holder(lock, "");
			*fd = lock;
			return PRONY_OK;
		}
		if (!locked && errno != EWOULDBLOCK && errno != EINTR)
			status = error_errno(err, PRONY_STORE, errno, "cannot lock %s", path);
		if (stop && *stop)
			status = error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (!locked && status == PRONY_OK) {
			read_holder(lock, &holder);
			if (waiting && (holder.pid != told.pid || holder.since_s != told.since_s ||
					strcmp(holder.takes, told.takes) != 0))
				waiting(context, path, &holder);
			told = holder;
			clock_sleep_until_ns(clock_monotonic_ns() + INT64_C(200000000));
			continue;
		}
		/* The file was replaced, so the next process would lock another file. */
		close(lock);
		if (status == PRONY_OK)
			status = open_lock(path, &lock, err);
	}
	return status;
}
