#include "cli/launch_node.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/agent.h"
#include "cli/cli.h"

#define END_NS INT64_C(2000000000)
/* Before the first frame, login scripts may print something. */
#define HEAD_BYTES_MAX (1 << 16)
#define LINE_BYTES_MAX 1000
#define LINES_MAX 2000 /* of a node that are shown */
#define PAYLOAD_BYTES_MAX (1 << 20)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void launch_node_fail(struct launch_node *node, const char *format, ...)
{
	char text[ERROR_TEXT_BYTES];
	va_list arguments;
	if (node->state == NODE_FAILED || node->state == NODE_ENDED)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	error_set(&node->error, PRONY_IO, "%s", text);
	node->state = NODE_FAILED;
	/* The end of its input ends everything on the node. */
	close_fd(&node->in);
	close_fd(&node->out);
	close_fd(&node->text);
	if (node->pid > 0)
		kill(-node->pid, SIGTERM);
}

void launch_node_say(struct launch_node *node, const char *line)
{
	if (node->in >= 0 &&
	    (!file_write_all(node->in, line, strlen(line)) || !file_write_all(node->in, "\n", 1)))
		/* Why it has gone is known at the end of its output. */
		close_fd(&node->in);
}

static void print_line(struct launch_node *node)
{
	const char *text = strbuf_text(&node->line);
	if (*text)
		snprintf(node->last, sizeof node->last, "%s", text);
	if (*text && node->lines < LINES_MAX)
		cli_say("%s: %s%s\n", node->name, text, node->line.truncated ? "..." : "");
	if (*text && node->lines++ == LINES_MAX)
		cli_say("%s: further lines are left out\n", node->name);
	strbuf_clear(&node->line);
}

static void add_text(struct launch_node *node, const char *bytes, size_t length)
{
	for (const char *at = bytes; at < bytes + length; at++) {
		/* A live line of progress is replaced by the next one. */
		if (*at == '\n')
			print_line(node);
		else if (*at && *at != '\r')
			strbuf_putc(&node->line, *at);
	}
}

void launch_node_start(struct launch_node *node, const char *const *argv, const char *request,
		       char *store)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, text[2] = {-1, -1};
	node->in = node->out = node->text = -1;
	node->command = argv[0];
	node->store = store;
	node->state = NODE_STARTED;
	node->heard_ns = clock_monotonic_ns();
	strbuf_init(&node->head, HEAD_BYTES_MAX);
	strbuf_init(&node->payload, PAYLOAD_BYTES_MAX);
	strbuf_init(&node->line, LINE_BYTES_MAX);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(text, O_CLOEXEC)) {
		launch_node_fail(node, "cannot make a pipe: %s", strerror(errno));
	} else {
		const struct process_fd fds[] = {{.parent = in[0], .child = 0},
						 {.parent = out[1], .child = 1},
						 {.parent = text[1], .child = 2}};
		const struct process_spec spec = {
			.argv = argv, .fds = fds, .fd_count = 3, .new_group = true};
		struct error err = ERROR_INIT;
		if (process_start(&spec, &node->pid, &err) != PRONY_OK)
			launch_node_fail(node, "%s", err.text);
	}
	close_fd(&in[0]);
	close_fd(&out[1]);
	close_fd(&text[1]);
	if (node->state == NODE_FAILED) {
		close_fd(&in[1]);
		close_fd(&out[0]);
		close_fd(&text[0]);
		return;
	}
	/* A node that reads nothing cannot hold us. */
	fcntl(in[1], F_SETPIPE_SZ, AGENT_LINE_BYTES_MAX);
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	node->in = in[1];
	node->out = out[0];
	node->text = text[0];
	launch_node_say(node, request);
}

/* The command has closed its output: says why, unless the run has ended. */
static void channel_ended(struct launch_node *node)
{
	struct process_end end;
	char how[64] = "still running";
	char bytes[4096];
	ssize_t got;
	close_fd(&node->in);
	close_fd(&node->out);
	if (process_wait(node->pid, END_NS, &end, NULL) == PRONY_OK) {
		process_end_text(&end, how, sizeof how);
		node->pid = 0;
	}
	/* What it wrote before it ended. A child of it may keep the pipe open. */
	fcntl(node->text, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 64 && (got = read(node->text, bytes, sizeof bytes)) > 0; i++)
		add_text(node, bytes, (size_t)got);
	print_line(node);
	launch_node_fail(node, "%s: %s (%s)%s%s", node->command,
			 node->state == NODE_STARTED ? "it ended without an answer of prony agent"
						     : "the channel ended before the run",
			 how, *node->last ? ": " : "", node->last);
}

/* Takes a line in front of a frame: "KIND LENGTH", or what a login script prints. */
static void begin_frame(struct launch_node *node)
{
	static const char *const kinds[] = {"hello", "text", "beat", "store", "end"};
	const char *text = strbuf_text(&node->head);
	char kind[8];
	long long length = -1;
	int used = 0;
	bool known = false;
	struct error why = ERROR_INIT;
	if (sscanf(text, "%7s %lld%n", kind, &length, &used) == 2 && !text[used])
		for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
			known = known || !strcmp(kinds[i], kind);
	known = known && (node->state == NODE_RUNS) == (strcmp(kind, "hello") != 0) &&
		length >= 0 && (!strcmp(kind, "store") || length <= PAYLOAD_BYTES_MAX);
	if (known) {
		snprintf(node->kind, sizeof node->kind, "%s", kind);
		node->left = length;
	} else if (node->state == NODE_STARTED) {
		add_text(node, text, strlen(text));
		print_line(node);
	} else {
		launch_node_fail(node, "'%.60s' is no line of prony agent", text);
	}
	strbuf_clear(&node->head);
	if (known && !strcmp(kind, "store") &&
	    file_writer_open(node->store, &node->writer, &why) != PRONY_OK)
		launch_node_fail(node, "%s", why.text);
}

static void end_frame(struct launch_node *node, json_t **hello)
{
	const char *text = strbuf_text(&node->payload);
	struct error why = ERROR_INIT;
	if (!strcmp(node->kind, "text")) {
		add_text(node, text, node->payload.length);
		/* The reason of a failure is what the command says, not the run's progress. */
		*node->last = '\0';
	} else if (!strcmp(node->kind, "hello")) {
		if (json_parse(text, node->payload.length, "prony agent", hello, &why) == PRONY_OK)
			node->state = NODE_RUNS;
		else
			launch_node_fail(node, "%s", why.text);
	} else if (!strcmp(node->kind, "store")) {
		node->store_whole = file_writer_finish(node->writer, &why) == PRONY_OK;
		node->writer = NULL;
		if (!node->store_whole)
			launch_node_fail(node, "%s", why.text);
	} else if (!strcmp(node->kind, "end")) {
		node->code = (int)strtol(text, NULL, 10);
		print_line(node);
		node->state = NODE_ENDED;
	}
	*node->kind = '\0';
	strbuf_clear(&node->payload);
}

/* Takes bytes of a frame and returns how many. */
static size_t take(struct launch_node *node, const char *bytes, size_t length, json_t **hello)
{
	struct error why = ERROR_INIT;
	if (!*node->kind) {
		const char *end = memchr(bytes, '\n', length);
		size_t used = end ? (size_t)(end - bytes) : length;
		strbuf_add(&node->head, bytes, used);
		if (node->head.truncated)
			launch_node_fail(node, "%d bytes came without a line of prony agent",
					 HEAD_BYTES_MAX);
		else if (end && node->head.length > 0)
			begin_frame(node);
		if (*node->kind && node->left == 0)
			end_frame(node, hello);
		return used + (end != NULL);
	}
	size_t used = (int64_t)length < node->left ? length : (size_t)node->left;
	if (!node->writer)
		strbuf_add(&node->payload, bytes, used);
	else if (file_writer_add(node->writer, bytes, used, &why) != PRONY_OK) {
		node->writer = NULL;
		launch_node_fail(node, "%s", why.text);
	}
	node->left -= (int64_t)used;
	if (node->left == 0 && node->state != NODE_FAILED)
		end_frame(node, hello);
	return used;
}

void launch_node_read(struct launch_node *node, bool out, bool text, json_t **hello)
{
	char bytes[8192];
	ssize_t got = text && node->text >= 0 ? read(node->text, bytes, sizeof bytes) : -1;
	if (got > 0)
		add_text(node, bytes, (size_t)got);
	else if (got == 0)
		close_fd(&node->text);
	got = out && node->out >= 0 ? read(node->out, bytes, sizeof bytes) : -1;
	if (got == 0)
		channel_ended(node);
	if (got <= 0)
		return;
	for (size_t at = 0; at < (size_t)got && node->state < NODE_ENDED;)
		at += take(node, bytes + at, (size_t)got - at, hello);
	/* What a login prints is no answer. */
	if (node->state != NODE_STARTED)
		node->heard_ns = clock_monotonic_ns();
}

void launch_node_release(struct launch_node *node)
{
	struct process_end end;
	if (node->state == NODE_UNUSED)
		return;
	close_fd(&node->in);
	close_fd(&node->out);
	close_fd(&node->text);
	if (node->pid > 0 && process_wait(node->pid, END_NS, &end, NULL) != PRONY_OK) {
		kill(-node->pid, SIGKILL);
		process_wait(node->pid, END_NS, &end, NULL);
	}
	file_writer_abandon(node->writer);
	if (node->store)
		unlink(node->store);
	free(node->store);
	strbuf_release(&node->head);
	strbuf_release(&node->payload);
	strbuf_release(&node->line);
}
