/* The client's waiting: lines from the worker, its log, the guard's reports, limits. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/process_tree.h"
#include "client/client_internal.h"

#define TICK_NS INT64_C(250000000)	 /* how often limits are checked while waiting */
#define LAST_WORD_NS INT64_C(5000000000) /* the guard's report follows the worker's end at once */

void client_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void client_drain_log(struct client *client)
{
	char chunk[16384];
	/* At most 1 MiB a turn, so that a flood of output cannot delay the reply. */
	for (int turn = 0; client->log_fd >= 0 && turn < 64; turn++) {
		ssize_t got = read(client->log_fd, chunk, sizeof chunk);
		if (got > 0) {
			log_buffer_add(&client->log, chunk, (size_t)got);
			continue;
		}
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			client_close_fd(&client->log_fd);
		return;
	}
}

/* Reads one line of the guard: the worker's pid, or how it ended. */
static void take_report(struct client *client, const char *line, size_t length)
{
	json_t *json = NULL;
	if (json_parse(line, length, "the guard", &json, NULL))
		return;
	client->worker = (pid_t)json_int_or(json, "pid", client->worker);
	client->exec_errno = (int)json_int_or(json, "exec_errno", client->exec_errno);
	if (json_object_get(json, "code")) {
		struct process_end end = {.signalled = json_bool_or(json, "signalled", false),
					  .code = (int)json_int_or(json, "code", -1)};
		process_end_text(&end, client->how, sizeof client->how);
		client->rss_peak_bytes = json_int_or(json, "max_rss_bytes", -1);
		client->user_ns = json_int_or(json, "user_ns", -1);
		client->system_ns = json_int_or(json, "system_ns", -1);
		client->left_over = (int)json_int_or(json, "left_over", 0);
		client->ended = true;
		client->signalled = end.signalled;
		client->exited_zero = !end.signalled && end.code == 0;
	}
	json_decref(json);
}

void client_drain_report(struct client *client)
{
	char chunk[1024];
	while (client->report_fd >= 0) {
		ssize_t got = read(client->report_fd, chunk, sizeof chunk);
		if (got > 0) {
			strbuf_add(&client->report, chunk, (size_t)got);
			continue;
		}
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			client_close_fd(&client->report_fd);
		break;
	}
	const char *text = strbuf_text(&client->report), *newline;
	while ((newline = strchr(text, '\n'))) {
		take_report(client, text, (size_t)(newline - text));
		text = newline + 1;
	}
	char *rest = memory_strdup(text);
	strbuf_clear(&client->report);
	strbuf_puts(&client->report, rest);
	free(rest);
}

void client_wait(struct client *const *clients, size_t count, bool writing, int64_t deadline_ns)
{
	struct pollfd fds[4 * CLIENTS_MAX];
	int64_t left = deadline_ns - clock_monotonic_ns();
	int64_t wait = left < TICK_NS ? left : TICK_NS;
	for (size_t i = 0; i < count; i++) {
		const struct client *client = clients[i];
		bool replies = !writing && !client->asked.answered;
		/* A reply that comes too early would only keep poll from waiting. */
		fds[4 * i] = (struct pollfd){replies ? client->reply_fd : -1, POLLIN, 0};
		fds[4 * i + 1] = (struct pollfd){client->log_fd, POLLIN, 0};
		fds[4 * i + 2] = (struct pollfd){client->report_fd, POLLIN, 0};
		fds[4 * i + 3] = (struct pollfd){writing ? client->request_fd : -1, POLLOUT, 0};
	}
	poll(fds, 4 * count, wait > 0 ? (int)((wait + 999999) / 1000000) : 0);
	for (size_t i = 0; i < count; i++) {
		if (fds[4 * i + 1].revents)
			client_drain_log(clients[i]);
		if (fds[4 * i + 2].revents)
			client_drain_report(clients[i]);
	}
}

/* Whether the memory of the worker's tree is over its limit. */
static bool over_memory(const struct client *client)
{
	int64_t limit = client->spec->memory_limit_bytes;
	return limit > 0 && client->worker > 0 &&
	       process_tree_rss_bytes(PROCESS_HERE, client->worker) > limit;
}

/* Checks what else ends a wait: the stop flag, limits, the worker's end. */
static enum prony_status check_limits(struct client *client, const char *verb, int64_t deadline_ns,
				      struct error *err)
{
	if (client_interrupted(client))
		return error_set(err, PRONY_INTERRUPTED, "interrupted");
	if (over_memory(client))
		return error_set(err, PRONY_OUT_OF_MEMORY,
				 "the worker's processes used more than %lld MiB of memory during "
				 "%s (--memory-limit changes the limit)",
				 (long long)(client->spec->memory_limit_bytes >> 20), verb);
	/* Remaining processes of its tree may hold the reply channel open, but none of them will
	 * reply. */
	if (client->report_fd < 0 && !client->ended && !client->exec_errno)
		return error_set(err, PRONY_CRASHED,
				 "the worker's guard process was killed during %s", verb);
	if (clock_monotonic_ns() >= deadline_ns)
		return error_set(err, PRONY_TIMEOUT, "no reply to %s within %.3g s", verb,
				 (double)client->asked.patience_ns * 1e-9);
	return PRONY_OK;
}

/* Copies the last line that the worker printed, which usually says why it died. */
static void last_words(struct client *client, char *out, size_t bytes)
{
	char *log = log_buffer_text(&client->log);
	out[0] = '\0';
	if (!log)
		return;
	size_t length = strlen(log);
	while (length && (log[length - 1] == '\n' || log[length - 1] == ' '))
		log[--length] = '\0';
	const char *line = strrchr(log, '\n');
	if (length)
		snprintf(out, bytes, "; last output: %.300s", line ? line + 1 : log);
	free(log);
}

/* Called when the worker's end of a channel is closed: waits for the guard's report and sets the
 * error. */
static enum prony_status died(struct client *client, const char *verb, struct error *err)
{
	int64_t deadline = clock_monotonic_ns() + LAST_WORD_NS;
	client_close_fd(&client->reply_fd);
	while (!client->ended && !client->exec_errno && client->report_fd >= 0 &&
	       clock_monotonic_ns() < deadline)
		client_wait(&client, 1, false, deadline);
	client_drain_log(client);
	if (client->exec_errno)
		return error_errno(err, PRONY_MISSING, client->exec_errno, "cannot start '%s'",
				   client->spec->argv[0]);
	char words[400];
	last_words(client, words, sizeof words);
	bool killed = client->ended && strstr(client->how, "signal 9");
	if (killed && client->oom_kills >= 0 && process_oom_kills(PROCESS_HERE) > client->oom_kills)
		return error_set(err, PRONY_OUT_OF_MEMORY,
				 "the kernel killed the worker during %s, because memory ran out",
				 verb);
	return error_set(err, PRONY_CRASHED, "the worker ended %s %s: %s%s",
			 client->line.length ? "in the middle of its reply to" : "during", verb,
			 client->ended ? client->how : "it closed its reply channel", words);
}

enum prony_status client_send(struct client *client, const char *verb, const char *bytes,
			      size_t length, int64_t deadline_ns, struct error *err)
{
	enum prony_status status = PRONY_OK;
	for (size_t sent = 0; sent < length && status == PRONY_OK;) {
		ssize_t written = write(client->request_fd, bytes + sent, length - sent);
		if (written > 0) {
			sent += (size_t)written;
		} else if (written < 0 && errno == EAGAIN) {
			status = check_limits(client, verb, deadline_ns, err);
			if (status == PRONY_OK)
				client_wait(&client, 1, true, deadline_ns);
		} else if (written < 0 && (errno == EPIPE || errno == EBADF)) {
			status = died(client, verb, err);
		} else if (written < 0 && errno != EINTR) {
			status = error_errno(err, PRONY_INTERNAL, errno,
					     "cannot write to the worker");
		}
	}
	if (status != PRONY_OK)
		client->broken = true;
	return status;
}

enum prony_status client_may_ask(struct client *client, const char *verb, struct error *err)
{
	char chunk[201];
	if (client_interrupted(client))
		return error_set(err, PRONY_INTERRUPTED, "interrupted");
	ssize_t got = read(client->reply_fd, chunk, sizeof chunk - 1);
	if (got <= 0)
		return PRONY_OK; /* the request itself reports an end of file, in more detail */
	chunk[got] = '\0';
	client->broken = true;
	return error_set(err, PRONY_PROTOCOL, "it sent output without a request, before %s: %s",
			 verb, chunk);
}

static enum prony_status read_line(struct client *client, const char *verb, int64_t deadline_ns,
				   bool *complete, struct error *err)
{
	*complete = false;
	for (;;) {
		char chunk[65536];
		ssize_t got = read(client->reply_fd, chunk, sizeof chunk);
		if (got > 0) {
			if (client->line.length + (size_t)got > PROTOCOL_LINE_BYTES_MAX)
				return error_set(err, PRONY_PROTOCOL,
						 "the reply to %s is longer than 1 MiB", verb);
			strbuf_add(&client->line, chunk, (size_t)got);
			*complete = memchr(chunk, '\n', (size_t)got);
			if (*complete)
				return PRONY_OK;
			continue;
		}
		if (got == 0)
			return died(client, verb, err);
		if (errno == EAGAIN)
			return check_limits(client, verb, deadline_ns, err);
		if (errno != EINTR)
			return error_errno(err, PRONY_INTERNAL, errno,
					   "cannot read from the worker");
	}
}

enum prony_status client_read_line(struct client *client, const char *verb, int64_t deadline_ns,
				   bool *complete, struct error *err)
{
	enum prony_status status = read_line(client, verb, deadline_ns, complete, err);
	if (status != PRONY_OK)
		client->broken = true;
	return status;
}
