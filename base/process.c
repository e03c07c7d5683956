#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process_internal.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* This number is the same on every architecture (new system calls share one table since 2019). */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
/* Linux's default for fs.nr_open, used when neither close_range nor /proc is available. */
#define MOST_DESCRIPTORS 1048576
#define RANGE_CLOEXEC (1U << 2)

/* Everything the child needs, prepared before the fork, because the child must not allocate. */
struct launch {
	char *program;
	const char **argv, **environment;
	const struct process_spec *spec;
	int *moved; /* fd_count entries, filled in by the child */
	int above;  /* the first number above every target */
	int report; /* the write end of the close-on-exec pipe */
};

/* What the child writes to that pipe when it fails before its program runs. */
enum launch_stage { LAUNCH_FDS, LAUNCH_DIRECTORY, LAUNCH_EXEC };
struct launch_failure {
	enum launch_stage stage;
	int errnum;
};

static bool is_program(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

char *process_find(const char *program)
{
	if (!program || !*program)
		return NULL;
	if (strchr(program, '/'))
		return is_program(program) ? memory_strdup(program) : NULL;

	const char *path = getenv("PATH");
	if (!path)
		path = DEFAULT_PATH;
	for (;;) {
		/* An empty entry is the current directory (POSIX, "Environment Variables"). */
		size_t length = strcspn(path, ":");
		char *candidate = length > 0 ? memory_printf("%.*s/%s", (int)length, path, program)
					     : memory_printf("./%s", program);
		if (is_program(candidate))
			return candidate;
		free(candidate);
		if (path[length] == '\0')
			return NULL;
		path += length + 1;
	}
}

/* The path to execute. A relative path is relative to our directory, not to spec->directory. */
static char *locate(const struct process_spec *spec)
{
	const char *wanted = spec->argv[0];
	char *found = strchr(wanted, '/') ? memory_strdup(wanted) : process_find(wanted);

	if (!found || found[0] == '/' || !spec->directory)
		return found;
	char here[PATH_MAX];
	if (!getcwd(here, sizeof(here)))
		return found;
	char *absolute = memory_printf("%s/%s", here, found);
	free(found);
	return absolute;
}

static bool same_name(const char *row, const char *other)
{
	size_t length = strcspn(row, "=");

	return length == strcspn(other, "=") && strncmp(row, other, length) == 0;
}

/* Whether a row of `changes` (or one after `row` itself) sets the same variable. */
static bool replaced(const char *row, const char *const *changes)
{
	for (size_t i = 0; changes && changes[i]; i++)
		if (same_name(row, changes[i]))
			return true;
	return false;
}

static const char **make_environment(const char *const *changes)
{
	size_t count = 0, added = 0, used = 0;

	while (environ && environ[count])
		count++;
	while (changes && changes[added])
		added++;
	const char **rows = memory_alloc((count + added + 1) * sizeof(*rows));
	for (size_t i = 0; i < count; i++)
		if (!replaced(environ[i], changes))
			rows[used++] = environ[i];
	for (size_t i = 0; i < added; i++)
		if (strchr(changes[i], '=') && !replaced(changes[i], changes + i + 1))
			rows[used++] = changes[i];
	rows[used] = NULL;
	return rows;
}

static const char **copy_argv(const char *const *argv)
{
	size_t count = 0;

	while (argv[count])
		count++;
	return memcpy(memory_alloc((count + 1) * sizeof(*argv)), argv, (count + 1) * sizeof(*argv));
}

/* Layout of the kernel's directory entries (getdents64(2)). */
struct kernel_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

static bool mark_listed_cloexec(void)
{
	_Alignas(struct kernel_entry) char buffer[2048];
	long got;
	int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return false;
	while ((got = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got;) {
			const struct kernel_entry *entry = (const void *)(buffer + at);
			int fd = 0;
			for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++)
				fd = fd * 10 + (*c - '0');
			if (fd > 2)
				fcntl(fd, F_SETFD, FD_CLOEXEC);
			at += entry->bytes;
		}
	}
	close(folder);
	return got == 0;
}

/* Marks descriptors close-on-exec instead of closing them: the report pipe must live until the
 * exec. Async-signal-safe. */
static void mark_all_cloexec(void)
{
	if (syscall(SYS_close_range, 3U, ~0U, RANGE_CLOEXEC) == 0 || mark_listed_cloexec())
		return;
	for (int fd = 3; fd < MOST_DESCRIPTORS; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static _Noreturn void child_fail(const struct launch *launch, enum launch_stage stage)
{
	struct launch_failure failure = {.stage = stage, .errnum = errno};
	ssize_t written;

	do {
		written = write(launch->report, &failure, sizeof(failure));
	} while (written < 0 && errno == EINTR);
	_exit(127);
}

/* Resets all signals to their defaults. The C library refuses to change the two signals that its
 * threads use. If a parent ignored them (init of a container may), the child would inherit that,
 * and cancelling a thread or changing the user would hang. So call the kernel directly: all zeros
 * mean the default action on every architecture. */
static void reset_signals(void)
{
	static const unsigned long zeros[8];
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;

	/* Reset the handlers before unblocking, or a handler of the parent could run here. */
	for (int number = 1; number < NSIG; number++)
		if (sigaction(number, &normal, NULL) != 0)
			syscall(SYS_rt_sigaction, number, zeros, NULL, (size_t)(NSIG / 8));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Between fork and exec only async-signal-safe calls are allowed (signal-safety(7)). */
static _Noreturn void child_main(const struct launch *launch)
{
	const struct process_spec *spec = launch->spec;

	if (spec->new_group)
		setpgid(0, 0);
	reset_signals();
	/* Files that a child creates are executed or trusted later (packages that pip unpacks), so
	 * never make them world-writable. */
	umask(umask(0) | S_IWOTH);

	/* Move the sources out of the way first: a source may be the target of another row. */
	for (size_t i = 0; i < spec->fd_count; i++) {
		launch->moved[i] = fcntl(spec->fds[i].parent, F_DUPFD_CLOEXEC, launch->above);
		if (launch->moved[i] < 0)
			child_fail(launch, LAUNCH_FDS);
	}
	mark_all_cloexec();
	for (size_t i = 0; i < spec->fd_count; i++)
		if (dup2(launch->moved[i], spec->fds[i].child) < 0)
			child_fail(launch, LAUNCH_FDS);
	if (spec->directory && chdir(spec->directory) != 0)
		child_fail(launch, LAUNCH_DIRECTORY);
	execve(launch->program, (char *const *)launch->argv, (char *const *)launch->environment);
	child_fail(launch, LAUNCH_EXEC);
}

/* With SIGCHLD ignored the kernel reaps children itself and exit codes are lost (wait(2)). */
static void keep_ends_of_children(void)
{
	struct sigaction action;

	if (sigaction(SIGCHLD, NULL, &action) != 0)
		return;
	if (action.sa_handler == SIG_IGN) {
		action = (struct sigaction){.sa_handler = SIG_DFL};
		sigaction(SIGCHLD, &action, NULL);
	}
}

static pid_t fork_child(const struct launch *launch)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0)
		child_main(launch);
	int errnum = errno;
	if (pid > 0 && launch->spec->new_group)
		setpgid(pid, pid); /* parent and child both call it, so that it is done whichever
				      runs first */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = errnum;
	return pid;
}

static enum prony_status launch_status(const struct launch *launch,
				       const struct launch_failure *failure, struct error *err)
{
	const struct process_spec *spec = launch->spec;

	if (failure->stage == LAUNCH_DIRECTORY)
		return error_errno(err, PRONY_IO, failure->errnum,
				   "cannot start %s in the directory %s", spec->argv[0],
				   spec->directory);
	if (failure->stage == LAUNCH_FDS)
		return error_errno(err, PRONY_IO, failure->errnum,
				   "cannot pass a file descriptor to %s", spec->argv[0]);
	if (failure->errnum == ENOENT && is_program(launch->program))
		return error_set(err, PRONY_MISSING,
				 "cannot start %s: its interpreter or loader does not exist",
				 launch->program);
	return error_errno(err,
			   failure->errnum == ENOENT || failure->errnum == ENOTDIR ? PRONY_MISSING
										   : PRONY_IO,
			   failure->errnum, "cannot start %s", launch->program);
}

/* Forks and waits until the program runs (the pipe closes) or the child reports a failure. */
static enum prony_status launch_child(const struct launch *launch, int report, pid_t *out,
				      struct error *err)
{
	struct launch_failure failure;
	ssize_t got;

	keep_ends_of_children();
	pid_t pid = fork_child(launch);
	if (pid < 0) {
		int errnum = errno;
		close(launch->report);
		return error_errno(err, PRONY_IO, errnum, "cannot start %s", launch->program);
	}
	process_note_start(pid);
	close(launch->report);
	do {
		got = read(report, &failure, sizeof(failure));
	} while (got < 0 && errno == EINTR);
	if (got == (ssize_t)sizeof(failure)) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		process_note_end(pid);
		return launch_status(launch, &failure, err);
	}
	*out = pid;
	return PRONY_OK;
}

/* A close-on-exec pipe whose write end is above every target of the child. */
static bool make_report_pipe(struct launch *launch, int *report)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	launch->report = fcntl(ends[1], F_DUPFD_CLOEXEC, launch->above);
	int errnum = errno;
	close(ends[1]);
	if (launch->report < 0) {
		close(ends[0]);
		errno = errnum;
		return false;
	}
	*report = ends[0];
	return true;
}

enum prony_status process_start(const struct process_spec *spec, pid_t *pid, struct error *err)
{
	struct launch launch = {.spec = spec, .above = 3};
	enum prony_status status;
	int report = -1;

	if (!spec->argv || !spec->argv[0])
		return error_set(err, PRONY_INTERNAL, "no program was given");
	launch.program = locate(spec);
	if (!launch.program)
		return error_set(err, PRONY_MISSING, "cannot start %s: no such program on PATH",
				 spec->argv[0]);
	for (size_t i = 0; i < spec->fd_count; i++)
		if (spec->fds[i].child >= launch.above)
			launch.above = spec->fds[i].child + 1;
	launch.argv = copy_argv(spec->argv);
	launch.environment = make_environment(spec->environment);
	launch.moved = memory_alloc(spec->fd_count * sizeof(*launch.moved));

	if (!make_report_pipe(&launch, &report)) {
		status = error_errno(err, PRONY_IO, errno, "cannot start %s", launch.program);
		goto out;
	}
	status = launch_child(&launch, report, pid, err);
	close(report);
out:
	free(launch.moved);
	free(launch.environment);
	free(launch.argv);
	free(launch.program);
	return status;
}
