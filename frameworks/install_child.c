/* Runs the programs of an installation (pip and venv), reads their output line by line and reports
 * the progress. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "frameworks/install_internal.h"

#define OUTPUT_BYTES_MAX ((size_t)64 * 1024)
#define LINE_BYTES_MAX 4096
#define POLL_MS 200
#define GRACE_NS INT64_C(5000000000)

void install_say(const struct install *install, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	if (!install->sink || !install->sink->line)
		return;
	va_start(arguments, format);
	int used = snprintf(text, sizeof(text), "%s: ", install->spelling);
	vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
	va_end(arguments);
	install->sink->line(install->sink->context, text);
}

bool install_stopped(const struct install *install)
{
	return install->sink && install->sink->stop && *install->sink->stop;
}

/* The output of a child, as lines. */
struct follow {
	const struct install *install;
	void (*line)(const struct install *install, const char *text);
	struct strbuf *output;
	char text[LINE_BYTES_MAX];
	size_t length;
};

/* The end of the output has the error, so drop the beginning when there is too much. */
static void keep(struct strbuf *output, const char *text)
{
	if (output->length + strlen(text) + 1 > OUTPUT_BYTES_MAX) {
		char *all = strbuf_take(output);
		size_t length = strlen(all);
		const char *half = all + length / 2;
		strbuf_puts(output, half + strcspn(half, "\n"));
		free(all);
	}
	strbuf_puts(output, text);
	strbuf_putc(output, '\n');
}

static void follow_bytes(struct follow *follow, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool end = bytes[i] == '\n' || bytes[i] == '\r';
		if (!end && follow->length + 1 < sizeof(follow->text))
			follow->text[follow->length++] = bytes[i] ? bytes[i] : '?';
		if (!end || follow->length == 0)
			continue;
		follow->text[follow->length] = '\0';
		keep(follow->output, follow->text);
		if (follow->line)
			follow->line(follow->install, follow->text);
		follow->length = 0;
	}
}

/* Reads to the end of the output, when the last process that holds it open has ended. */
static enum prony_status follow_output(struct follow *follow, int fd, int64_t deadline_ns,
				       struct error *err)
{
	char bytes[4096];

	for (;;) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		int ready = poll(&wait, 1, POLL_MS);
		if (install_stopped(follow->install))
			return error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (clock_monotonic_ns() > deadline_ns)
			return error_set(err, PRONY_TIMEOUT, "it took too long and was stopped");
		if (ready <= 0)
			continue;
		ssize_t got = read(fd, bytes, sizeof(bytes));
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			break;
		follow_bytes(follow, bytes, (size_t)got);
	}
	follow_bytes(follow, "\n", 1);
	return PRONY_OK;
}

/* Send SIGTERM first, so that pip can remove its temporary files. */
static void end_group(pid_t pid, struct process_end *end)
{
	kill(-pid, SIGTERM);
	if (process_wait(pid, GRACE_NS, end, NULL) == PRONY_TIMEOUT) {
		kill(-pid, SIGKILL);
		process_wait(pid, -1, end, NULL);
	}
	kill(-pid, SIGKILL);
}

static enum prony_status start(const struct install *install, const char *const *argv, int *output,
			       pid_t *pid, struct error *err)
{
	/* The user's own pip settings must not change target or meaning. */
	const char *const environment[] = {
		arena_printf((struct arena *)&install->arena, "TMPDIR=%s", install->temporary),
		"PIP_REQUIRE_VIRTUALENV=false",
		"PIP_USER=false",
		"PIP_TARGET",
		"PIP_PREFIX",
		"PIP_ROOT",
		"PIP_REQUIREMENT",
		"PIP_CONSTRAINT",
		"PIP_QUIET",
		"PIP_VERBOSE",
		"PIP_DRY_RUN",
		"PYTHONHOME",
		"PYTHONPATH",
		"PYTHONUNBUFFERED=1",
		"LC_ALL=C.UTF-8",
		NULL};
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int ends[2] = {-1, -1};
	enum prony_status status;

	if (null_fd < 0 || pipe2(ends, O_CLOEXEC) != 0) {
		status = error_errno(err, PRONY_IO, errno, "cannot start %s", argv[0]);
		goto out;
	}
	/* The child inherits the lock, so that nobody touches its folder even if we are killed. */
	const struct process_fd fds[] = {
		{null_fd, 0}, {ends[1], 1}, {ends[1], 2}, {install->lock_fd, 3}};
	const struct process_spec spec = {.argv = argv,
					  .environment = environment,
					  .directory = install->staging,
					  .fds = fds,
					  .fd_count = install->lock_fd >= 0 ? 4 : 3,
					  .new_group = true};
	status = process_start(&spec, pid, err);
	if (status == PRONY_OK) {
		*output = ends[0];
		ends[0] = -1;
	}
out:
	if (ends[0] >= 0)
		close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	if (null_fd >= 0)
		close(null_fd);
	return status;
}

enum prony_status install_child(const struct install *install, const char *const *argv,
				int64_t limit_ns,
				void (*line)(const struct install *install, const char *text),
				struct strbuf *output, struct error *err)
{
	struct follow follow = {.install = install, .line = line, .output = output};
	struct process_end end = {0};
	int fd = -1;
	pid_t pid = -1;
	enum prony_status status = start(install, argv, &fd, &pid, err);

	if (status != PRONY_OK)
		return status;
	status = follow_output(&follow, fd, clock_monotonic_ns() + limit_ns, err);
	close(fd);
	if (status != PRONY_OK) {
		end_group(pid, &end);
		return status;
	}
	status = process_wait(pid, -1, &end, err);
	if (status == PRONY_OK && (end.signalled || end.code != 0)) {
		char text[96];
		process_end_text(&end, text, sizeof(text));
		status = error_set(err, PRONY_BAD_INPUT, "%s", text);
	}
	return status;
}
