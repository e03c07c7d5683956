#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define NS_PER_SECOND INT64_C(1000000000)
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* Without pidfd_open (Linux before 5.3) an end is noticed within this time. */
#define WAIT_SLICE_NS INT64_C(5000000)
#define DEFAULT_LIMIT_BYTES ((size_t)64 * 1024 * 1024)

/* The numbers are those of every architecture since 2019 (one table for all new calls). */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
/* Linux's default for fs.nr_open, when neither close_range nor /proc is to be had. */
#define MOST_DESCRIPTORS 1048576
#define RANGE_CLOEXEC (1U << 2)

/* Everything the child needs, made before the fork: afterwards it may not allocate. */
struct launch {
	char *program;
	const char **argv, **environment;
	const struct process_spec *spec;
	int *moved; /* fd_count entries, filled in by the child */
	int above;  /* the first number above every target */
	int report; /* the write end of the close-on-exec pipe */
};

/* What the child says through that pipe when it fails before its program runs. */
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

/* The path to execute: a relative one is ours, not relative to spec->directory. */
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

/* True when a row of `changes` (or one after `row` itself) speaks of the same variable. */
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

/* Marks instead of closing: the report pipe must live until the exec. Async-signal-safe. */
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

/* Between fork and exec only async-signal-safe calls are allowed (signal-safety(7)). */
static _Noreturn void child_main(const struct launch *launch)
{
	const struct process_spec *spec = launch->spec;
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;

	if (spec->new_group)
		setpgid(0, 0);
	/* Dispositions first: unblocking could otherwise run one of the parent's handlers here. */
	for (int number = 1; number < NSIG; number++)
		sigaction(number, &normal, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	/* Out of the way first: one row's source may be another row's target. */
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
		setpgid(pid, pid); /* both sides do it, so that neither sees it undone */
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
				 "cannot start %s: the interpreter or loader it names is not there",
				 launch->program);
	return error_errno(err,
			   failure->errnum == ENOENT || failure->errnum == ENOTDIR ? PRONY_MISSING
										   : PRONY_IO,
			   failure->errnum, "cannot start %s", launch->program);
}

static pid_t reap(pid_t pid, int *status, int flags, struct rusage *usage)
{
	pid_t reaped;

	do {
		reaped = wait4(pid, status, flags, usage);
	} while (reaped < 0 && errno == EINTR);
	return reaped;
}

/* Forks and waits until the program runs (the pipe closes) or the child says why it does not. */
static enum prony_status launch_child(const struct launch *launch, int report, pid_t *out,
				      struct error *err)
{
	struct launch_failure failure;
	ssize_t got;
	pid_t pid = fork_child(launch);

	if (pid < 0) {
		int errnum = errno;
		close(launch->report);
		return error_errno(err, PRONY_IO, errnum, "cannot start %s", launch->program);
	}
	close(launch->report);
	do {
		got = read(report, &failure, sizeof(failure));
	} while (got < 0 && errno == EINTR);
	if (got == (ssize_t)sizeof(failure)) {
		reap(pid, NULL, 0, NULL);
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
		return error_set(err, PRONY_INTERNAL, "no program was named");
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

static int64_t timeval_ns(const struct timeval *time)
{
	return (int64_t)time->tv_sec * NS_PER_SECOND + (int64_t)time->tv_usec * 1000;
}

static void describe_end(int status, const struct rusage *usage, struct process_end *end)
{
	*end = (struct process_end){
		.signalled = WIFSIGNALED(status),
		.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		.max_rss_bytes = (int64_t)usage->ru_maxrss * 1024,
		.user_ns = timeval_ns(&usage->ru_utime),
		.system_ns = timeval_ns(&usage->ru_stime),
	};
}

/* -1: wait for ever. */
static int64_t deadline_after(int64_t timeout_ns)
{
	int64_t now = clock_monotonic_ns();

	return timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
}

static bool is_past(int64_t deadline_ns)
{
	return deadline_ns >= 0 && clock_monotonic_ns() >= deadline_ns;
}

/*
 * Sleeps until one of the two descriptors (either may be -1) is ready or the deadline has come.
 * Without a pidfd the sleep is a slice, after which the caller looks at the child itself.
 */
static void wait_ready(int pidfd, struct pollfd *pipe_end, int64_t deadline_ns)
{
	struct pollfd fds[2] = {{.fd = pidfd, .events = POLLIN}, *pipe_end};
	int64_t rest = deadline_ns < 0 ? -1 : deadline_ns - clock_monotonic_ns();

	if (rest < 0 && deadline_ns >= 0)
		rest = 0;
	if (pidfd < 0 && (rest < 0 || rest > WAIT_SLICE_NS))
		rest = WAIT_SLICE_NS;
	struct timespec time = {.tv_sec = (time_t)(rest / NS_PER_SECOND),
				.tv_nsec = (long)(rest % NS_PER_SECOND)};
	fds[1].revents = 0;
	if (ppoll(fds, 2, rest < 0 ? NULL : &time, NULL) < 0)
		fds[1].revents = 0;
	pipe_end->revents = fds[1].revents;
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
}

enum prony_status process_wait(pid_t pid, int64_t timeout_ns, struct process_end *end,
			       struct error *err)
{
	struct pollfd no_pipe = {.fd = -1};
	struct rusage usage;
	int64_t deadline_ns = deadline_after(timeout_ns);
	int pidfd = deadline_ns < 0 ? -1 : open_pidfd(pid);
	int ended = 0;
	pid_t reaped;

	for (;;) {
		bool last = is_past(deadline_ns);
		reaped = reap(pid, &ended, deadline_ns < 0 ? 0 : WNOHANG, &usage);
		if (reaped != 0 || last)
			break;
		wait_ready(pidfd, &no_pipe, deadline_ns);
	}
	int errnum = errno;
	if (pidfd >= 0)
		close(pidfd);
	if (reaped < 0)
		return error_errno(err, PRONY_INTERNAL, errnum, "cannot wait for process %ld",
				   (long)pid);
	if (reaped == 0)
		return error_set(err, PRONY_TIMEOUT, "process %ld did not end within %.3g s",
				 (long)pid, (double)timeout_ns / 1e9);
	if (end)
		describe_end(ended, &usage, end);
	return PRONY_OK;
}

/* The last limit_bytes of a stream; the buffer holds up to twice as many between moves. */
struct tail {
	char *bytes;
	size_t length, capacity, limit_bytes;
};

static void tail_trim(struct tail *tail)
{
	if (tail->length <= tail->limit_bytes)
		return;
	size_t lost = tail->length - tail->limit_bytes;
	memmove(tail->bytes, tail->bytes + lost, tail->limit_bytes);
	tail->length = tail->limit_bytes;
}

static void tail_add(struct tail *tail, const char *bytes, size_t length)
{
	if (tail->length > 2 * tail->limit_bytes)
		tail_trim(tail);
	size_t needed = tail->length + length + 1;
	if (needed > tail->capacity) {
		tail->capacity = needed > tail->capacity * 2 ? needed : tail->capacity * 2;
		tail->bytes = memory_realloc(tail->bytes, tail->capacity);
	}
	memcpy(tail->bytes + tail->length, bytes, length);
	tail->length += length;
}

/* The text, terminated; NULs that a program printed would hide what follows them. */
static char *tail_take(struct tail *tail)
{
	tail_trim(tail);
	if (!tail->bytes)
		return memory_strdup("");
	for (size_t i = 0; i < tail->length; i++)
		if (tail->bytes[i] == '\0')
			tail->bytes[i] = ' ';
	tail->bytes[tail->length] = '\0';
	char *text = tail->bytes;
	tail->bytes = NULL;
	return text;
}

/*
 * Reads what is there; false at the end of the stream. At most 1 MiB, the most a pipe can hold, so
 * that a program that never stops printing cannot keep us from its deadline.
 */
static bool drain(int fd, struct tail *tail)
{
	char chunk[16384];

	for (int i = 0; i < 64; i++) {
		ssize_t got = read(fd, chunk, sizeof(chunk));
		if (got > 0)
			tail_add(tail, chunk, (size_t)got);
		else if (got == 0)
			return false;
		else if (errno != EINTR)
			return errno == EAGAIN;
		if (got > 0 && (size_t)got < sizeof(chunk))
			break;
	}
	return true;
}

/*
 * Collects output until the child has ended. Not until the stream ends: a daemon that the child
 * left behind may hold it open. True with *ended and *usage set, false at the deadline.
 */
static bool collect(pid_t pid, int fd, int64_t deadline_ns, struct tail *tail, int *ended,
		    struct rusage *usage)
{
	struct pollfd pipe_end = {.fd = fd, .events = POLLIN};
	int pidfd = open_pidfd(pid);
	bool finished = false;

	for (;;) {
		bool last = is_past(deadline_ns);
		finished = reap(pid, ended, WNOHANG, usage) != 0;
		if (pipe_end.fd >= 0 && !drain(fd, tail))
			pipe_end.fd = -1;
		if (finished || last)
			break;
		wait_ready(pidfd, &pipe_end, deadline_ns);
	}
	if (pidfd >= 0)
		close(pidfd);
	return finished;
}

/* Adds stdin, stdout and stderr to the caller's descriptors, unless the caller gave its own. */
static struct process_fd *standard_fds(const struct process_spec *spec, int null_fd, int output_fd,
				       size_t *count)
{
	struct process_fd *fds = memory_alloc((spec->fd_count + 3) * sizeof(*fds));

	*count = 0;
	for (int child = 0; child <= 2; child++)
		fds[(*count)++] = (struct process_fd){.parent = child == 0 ? null_fd : output_fd,
						      .child = child};
	for (size_t i = 0; i < spec->fd_count; i++) {
		if (spec->fds[i].child >= 0 && spec->fds[i].child <= 2)
			fds[spec->fds[i].child] = spec->fds[i];
		else
			fds[(*count)++] = spec->fds[i];
	}
	return fds;
}

/* Starts the child with the pipe as its output; the write end is closed here in any case. */
static enum prony_status start_captured(const struct process_spec *spec, int output_fd, pid_t *pid,
					struct error *err)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null_fd < 0) {
		enum prony_status status =
			error_errno(err, PRONY_IO, errno, "cannot open /dev/null");
		close(output_fd);
		return status;
	}
	struct process_spec captured = *spec;
	struct process_fd *fds = standard_fds(spec, null_fd, output_fd, &captured.fd_count);
	captured.fds = fds;
	captured.new_group = true;
	enum prony_status status = process_start(&captured, pid, err);
	free(fds);
	close(null_fd);
	close(output_fd);
	return status;
}

/* The last line that says something, for the message of a timeout. */
static const char *last_line(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
		text[--length] = '\0';
	const char *newline = strrchr(text, '\n');
	return newline ? newline + 1 : text;
}

static enum prony_status timed_out(const struct process_spec *spec, int64_t timeout_ns,
				   struct tail *tail, struct error *err)
{
	char *text = tail_take(tail);
	const char *line = last_line(text);
	enum prony_status status =
		error_set(err, PRONY_TIMEOUT, "%s did not end within %.3g s and was killed%s%.200s",
			  spec->argv[0], (double)timeout_ns / 1e9,
			  *line ? "; the last it printed: " : "", line);

	free(text);
	return status;
}

enum prony_status process_run(const struct process_spec *spec, int64_t timeout_ns,
			      size_t limit_bytes, char **output, struct process_end *end,
			      struct error *err)
{
	struct tail tail = {.limit_bytes = limit_bytes < DEFAULT_LIMIT_BYTES ? limit_bytes
									     : DEFAULT_LIMIT_BYTES};
	struct rusage usage = {0};
	int64_t deadline_ns = deadline_after(timeout_ns);
	int ends[2], ended = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_errno(err, PRONY_IO, errno, "cannot make a pipe");
	fcntl(ends[0], F_SETFL, O_NONBLOCK); /* only our end: the flag is the open file's */
	enum prony_status status = start_captured(spec, ends[1], &pid, err);
	if (status != PRONY_OK)
		goto out;
	if (!collect(pid, ends[0], deadline_ns, &tail, &ended, &usage)) {
		kill(-pid, SIGKILL);
		reap(pid, &ended, 0, &usage);
		drain(ends[0], &tail);
		status = timed_out(spec, timeout_ns, &tail, err);
		goto out;
	}
	if (output)
		*output = tail_take(&tail);
	if (end)
		describe_end(ended, &usage, end);
out:
	close(ends[0]);
	free(tail.bytes);
	return status;
}

void process_end_text(const struct process_end *end, char *out, size_t out_bytes)
{
	if (end->signalled)
		snprintf(out, out_bytes, "killed by signal %d (%s)", end->code,
			 strsignal(end->code));
	else
		snprintf(out, out_bytes, "exit code %d", end->code);
}
