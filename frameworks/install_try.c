/* The proof that an installation works: a worker loads it and says hello. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "frameworks/install.h"
#include "samples/protocol.h"

#define HELLO_LIMIT_NS INT64_C(300000000000)
#define CLOSE_LIMIT_NS INT64_C(10000000000)
#define REPLY_BYTES_MAX ((size_t)64 * 1024)
#define LOG_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define POLL_MS 200
#define SAYS_BYTES_MAX 400
#define REQUEST_FD 3
#define REPLY_FD 4

static const char requests[] = "{\"id\":1,\"verb\":\"hello\",\"protocol\":1}\n"
			       "{\"id\":2,\"verb\":\"close\"}\n";
_Static_assert(PROTOCOL_VERSION == 1, "the requests above speak it");

struct trial {
	pid_t pid;
	int reply_fd;
	const char *log; /* path of what the worker printed */
};

static enum prony_status start_worker(struct install *install, const struct framework_place *place,
				      struct trial *trial, struct error *err)
{
	const char *const *argv, *const *rows;
	int request[2] = {-1, -1}, reply[2] = {-1, -1}, null_fd = -1, log_fd = -1;
	char *self = path_self();
	enum prony_status status =
		framework_worker_command(place, self, NULL, 1, &install->arena, &argv, &rows, err);
	if (status != PRONY_OK)
		goto out;
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	log_fd = open(trial->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (null_fd < 0 || log_fd < 0 || pipe2(request, O_CLOEXEC) || pipe2(reply, O_CLOEXEC)) {
		status = error_errno(err, PRONY_IO, errno, "cannot start a worker");
		goto out;
	}
	/* Both requests fit into the pipe: nobody has to be reading yet. */
	if (write(request[1], requests, sizeof(requests) - 1) < 0) {
		status = error_errno(err, PRONY_IO, errno, "cannot start a worker");
		goto out;
	}
	size_t count = 0;
	while (rows[count])
		count++;
	const char **environment = arena_array(&install->arena, count + 3, sizeof(*environment));
	memcpy(environment, rows, count * sizeof(*rows));
	environment[count++] =
		arena_printf(&install->arena, PROTOCOL_ENV_REQUEST "=%d", REQUEST_FD);
	environment[count++] = arena_printf(&install->arena, PROTOCOL_ENV_REPLY "=%d", REPLY_FD);
	const struct process_fd fds[] = {{null_fd, 0},
					 {log_fd, 1},
					 {log_fd, 2},
					 {request[0], REQUEST_FD},
					 {reply[1], REPLY_FD}};
	const struct process_spec spec = {.argv = argv,
					  .environment = environment,
					  .fds = fds,
					  .fd_count = sizeof(fds) / sizeof(fds[0]),
					  .new_group = true};
	status = process_start(&spec, &trial->pid, err);
	if (status == PRONY_OK) {
		trial->reply_fd = reply[0];
		reply[0] = -1;
	}
out:
	for (int i = 0; i < 2; i++) {
		if (request[i] >= 0)
			close(request[i]);
		if (reply[i] >= 0)
			close(reply[i]);
	}
	if (null_fd >= 0)
		close(null_fd);
	if (log_fd >= 0)
		close(log_fd);
	free(self);
	return status;
}

/* The first line that the worker sends, in *text (terminated; "" when it ended without one). */
static enum prony_status first_reply(const struct install *install, int fd, char *text,
				     struct error *err)
{
	int64_t deadline_ns = clock_monotonic_ns() + HELLO_LIMIT_NS;
	size_t length = 0;

	text[0] = '\0';
	while (!strchr(text, '\n') && length + 1 < REPLY_BYTES_MAX) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		int ready = poll(&wait, 1, POLL_MS);
		if (install_stopped(install))
			return error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (clock_monotonic_ns() > deadline_ns)
			return error_set(err, PRONY_TIMEOUT, "it did not load within 5 minutes");
		if (ready <= 0)
			continue;
		ssize_t got = read(fd, text + length, REPLY_BYTES_MAX - 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
		text[length] = '\0';
	}
	return PRONY_OK;
}

/* The last line that the worker printed says more than how it ended. */
static const char *last_printed(const struct trial *trial, struct arena *arena)
{
	char *text = NULL;
	size_t length = 0;
	const char *kept = "";

	if (file_read(trial->log, LOG_BYTES_MAX, &text, &length, NULL) != PRONY_OK)
		return kept;
	while (length > 0 && strchr(" \r\n", text[length - 1]))
		text[--length] = '\0';
	const char *newline = strrchr(text, '\n');
	kept = arena_strndup(arena, newline ? newline + 1 : text, 400);
	free(text);
	return kept;
}

/* "0.1.0 (onednn 3.2.0)" */
static const char *what_it_says(const json_t *reply, struct arena *arena)
{
	const char *name;
	const json_t *libraries = json_object_get(reply, "libraries");
	json_t *version;
	struct strbuf text;

	strbuf_init(&text, SAYS_BYTES_MAX);
	strbuf_puts(&text, json_string_or(reply, "version", "of an unknown version"));
	const char *before = " (", *after = "";
	json_object_foreach((json_t *)libraries, name, version)
	{
		if (!json_is_string(version))
			continue;
		strbuf_printf(&text, "%s%s %s", before, name, json_string_value(version));
		before = ", ";
		after = ")";
	}
	strbuf_puts(&text, after);
	const char *kept = arena_strdup(arena, strbuf_text(&text));
	strbuf_release(&text);
	return kept;
}

static enum prony_status judge(struct install *install, const struct trial *trial, const char *text,
			       const struct process_end *end, const char **says, struct error *err)
{
	json_t *reply = NULL;
	enum prony_status status = PRONY_OK;

	if (!*text) {
		char how[96];
		const char *printed = last_printed(trial, &install->arena);
		process_end_text(end, how, sizeof(how));
		return error_set(err, PRONY_CRASHED, "its worker ended without an answer (%s)%s%s",
				 how, *printed ? ": " : "", printed);
	}
	status = json_parse(text, strcspn(text, "\n"), "the reply of the worker", &reply, err);
	if (status == PRONY_OK && !json_bool_or(reply, "ok", false))
		status = error_set(err, PRONY_MISSING, "%s",
				   json_string_or(reply, "error", "its worker gave no reason"));
	else if (status == PRONY_OK)
		*says = what_it_says(reply, &install->arena);
	json_decref(reply);
	return status;
}

enum prony_status install_try(struct install *install, const char *entry, const char **says,
			      struct error *err)
{
	const char *path = arena_printf(&install->arena, "%s/%s", install->tree, entry);
	const struct framework_place place = {
		.framework = install->framework,
		.environment = install->environment,
		.origin = ORIGIN_INSTALLED,
		.library = install->framework->kind == FRAMEWORK_LIBRARY ? path : NULL,
		.interpreter = install->framework->kind == FRAMEWORK_PYTHON ? path : NULL,
		.version = install->lock.version,
		.folder = install->tree};
	struct trial trial = {.pid = -1, .reply_fd = -1};
	struct process_end end = {0};
	char *text = NULL;

	trial.log = arena_printf(&install->arena, "%s/worker.log", install->staging);
	enum prony_status status = start_worker(install, &place, &trial, err);
	if (status != PRONY_OK)
		goto out;
	text = arena_array(&install->arena, REPLY_BYTES_MAX, 1);
	status = first_reply(install, trial.reply_fd, text, err);
	/* It was asked to close as well; whatever remains of it must not outlive the installation.
	 */
	if (status != PRONY_OK || process_wait(trial.pid, CLOSE_LIMIT_NS, &end, NULL) != PRONY_OK) {
		kill(-trial.pid, SIGKILL);
		process_wait(trial.pid, -1, &end, NULL);
	}
	kill(-trial.pid, SIGKILL);
	if (status == PRONY_OK)
		status = judge(install, &trial, text, &end, says, err);
out:
	if (trial.reply_fd >= 0)
		close(trial.reply_fd);
	return status;
}
