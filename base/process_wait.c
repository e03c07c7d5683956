/* Waits for children with a time limit and captures their output. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process_internal.h"

#define NS_PER_SECOND INT64_C(1000000000)

/* Without pidfd_open (Linux before 5.3) a process's end is noticed within this time. */
#define WAIT_SLICE_NS INT64_C(5000000)
#define STOP_LOOK_NS INT64_C(100000000)
#define DEFAULT_LIMIT_BYTES ((size_t)64 * 1024 * 1024)

/* This number is the same on every architecture (new system calls share one table since 2019). */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static pid_t reap(pid_t pid, int *status, int flags)
{
	pid_t reaped;

	do {
		reaped = waitpid(pid, status, flags);
	} while (reaped < 0 && errno == EINTR);
	if (reaped > 0)
		process_note_end(reaped);
	return reaped;
}

static void describe_end(int status, struct process_end *end)
{
	*end = (struct process_end){
		.signalled = WIFSIGNALED(status),
		.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
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

/* Sleeps until one of the two descriptors (either may be -1) is ready or the deadline passes.
 * Without a pidfd, sleeps for one slice, and the caller polls the child. */
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
	return (int)syscall(SYS_pidfd_open, pid, 0); /* pidfds are close-on-exec by default */
}

enum prony_status process_wait(pid_t pid, int64_t timeout_ns, struct process_end *end,
			       struct error *err)
{
	struct pollfd no_pipe = {.fd = -1};
	int64_t deadline_ns = deadline_after(timeout_ns);
	int pidfd = deadline_ns < 0 ? -1 : open_pidfd(pid);
	int ended = 0;
	pid_t reaped;

	for (;;) {
		bool last = is_past(deadline_ns);
		reaped = reap(pid, &ended, deadline_ns < 0 ? 0 : WNOHANG);
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
		describe_end(ended, end);
	return PRONY_OK;
}

/* Keeps the last limit_bytes of a stream; the buffer holds up to twice as much between moves. */
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

/* The kept text, 0-terminated. NUL bytes in the output are replaced, because they would hide the
 * rest. */
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

/* Reads what is available; false at the end of the stream. Reads at most 1 MiB, the most that a
 * pipe can hold, so that a program that prints without end cannot delay the deadline. */
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
 * A signal just before the wait would not interrupt it, so check the stop flag again after a slice.
 */
static int64_t next_look(int64_t deadline_ns)
{
	int64_t look = clock_monotonic_ns() + STOP_LOOK_NS;

	return deadline_ns < 0 || look < deadline_ns ? look : deadline_ns;
}

/* Collects output until the child ends. Does not wait for the end of the stream, because a daemon
 * left behind by the child may keep it open. True with *ended set; false at the deadline or when
 * stopped. */
static bool collect(pid_t pid, int fd, int64_t deadline_ns, const volatile int *stop,
		    struct tail *tail, int *ended)
{
	struct pollfd pipe_end = {.fd = fd, .events = POLLIN};
	int pidfd = open_pidfd(pid);
	bool finished = false;

	for (;;) {
		bool last = is_past(deadline_ns) || (stop && *stop);
		finished = reap(pid, ended, WNOHANG) != 0;
		if (pipe_end.fd >= 0 && !drain(fd, tail))
			pipe_end.fd = -1;
		if (finished || last)
			break;
		wait_ready(pidfd, &pipe_end, stop ? next_look(deadline_ns) : deadline_ns);
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

/* Starts the child with the pipe as its output. Closes the write end in any case. */
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

/* The last non-empty line, for the message of a timeout. */
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
	enum prony_status status = error_set(
		err, PRONY_TIMEOUT, "%s did not end within %.3g s and was killed%s%.200s",
		spec->argv[0], (double)timeout_ns / 1e9, *line ? "; last output: " : "", line);

	free(text);
	return status;
}

enum prony_status process_run(const struct process_spec *spec, int64_t timeout_ns,
			      size_t limit_bytes, char **output, struct process_end *end,
			      struct error *err)
{
	struct tail tail = {.limit_bytes = limit_bytes < DEFAULT_LIMIT_BYTES ? limit_bytes
									     : DEFAULT_LIMIT_BYTES};
	int64_t deadline_ns = deadline_after(timeout_ns);
	int ends[2], ended = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_errno(err, PRONY_IO, errno, "cannot make a pipe");
	fcntl(ends[0], F_SETFL,
	      O_NONBLOCK); /* affects only our end: the flag belongs to the open file description */
	enum prony_status status = start_captured(spec, ends[1], &pid, err);
	if (status != PRONY_OK)
		goto out;
	if (!collect(pid, ends[0], deadline_ns, spec->stop, &tail, &ended)) {
		kill(-pid, SIGKILL);
		reap(pid, &ended, 0);
		drain(ends[0], &tail);
		status = spec->stop && *spec->stop
				 ? error_set(err, PRONY_INTERRUPTED, "interrupted")
				 : timed_out(spec, timeout_ns, &tail, err);
		goto out;
	}
	if (output)
		*output = tail_take(&tail);
	if (end)
		describe_end(ended, end);
out:
	close(ends[0]);
	free(tail.bytes);
	return status;
}

/* Linux's default. */
#define STACK_USUAL_BYTES (8u << 20)

/* A limit of this process, inherited by its children, that may be the cause of the signal. */
static void name_limit(int signal, char *out, size_t out_bytes)
{
	struct rlimit stack;

	out[0] = '\0';
	if (signal == SIGXFSZ)
		snprintf(out, out_bytes, "; ulimit -f limits the size of files");
	else if (signal == SIGSEGV && getrlimit(RLIMIT_STACK, &stack) == 0 &&
		 stack.rlim_cur < STACK_USUAL_BYTES)
		snprintf(out, out_bytes, "; ulimit -s limits its stack to %llu KiB",
			 (unsigned long long)stack.rlim_cur >> 10);
}

void process_end_text(const struct process_end *end, char *out, size_t out_bytes)
{
	char limit[64];

	name_limit(end->code, limit, sizeof limit);
	if (end->signalled)
		snprintf(out, out_bytes, "killed by signal %d (%s)%s", end->code,
			 strsignal(end->code), limit);
	else
		snprintf(out, out_bytes, "exit code %d", end->code);
}
