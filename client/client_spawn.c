/* Starts a worker under its guard, with all its channels. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/process_tree.h"
#include "base/strbuf.h"
#include "client/client_internal.h"
#include "client/guard.h"

/* All pipes of a worker; index 0 is for reading, 1 for writing. The ring's pipes come last. */
struct pipes {
	int life[2], report[2], request[2], reply[2], log[2], ready[2], freed[2];
};

static enum prony_status make_pipes(struct pipes *pipes, bool ring, struct error *err)
{
	int(*all[])[2] = {&pipes->life, &pipes->report, &pipes->request, &pipes->reply,
			  &pipes->log,	&pipes->ready,	&pipes->freed};
	size_t count = sizeof all / sizeof *all;
	for (size_t i = 0; i < count; i++)
		(*all[i])[0] = (*all[i])[1] = -1;
	for (size_t i = 0; i < (ring ? count : count - 2); i++)
		if (pipe2(*all[i], O_CLOEXEC))
			return error_errno(err, PRONY_INTERNAL, errno,
					   "cannot make a pipe for a worker");
	return PRONY_OK;
}

static void close_pipes(struct pipes *pipes)
{
	int *all[] = {pipes->life, pipes->report, pipes->request, pipes->reply,
		      pipes->log,  pipes->ready,  pipes->freed};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		client_close_fd(&all[i][0]);
		client_close_fd(&all[i][1]);
	}
}

static void cpu_list(const struct client_spec *spec, struct strbuf *out)
{
	for (int i = 0; spec->cpus && i < spec->cpu_count; i++)
		strbuf_printf(out, "%s%d", i ? "," : "", spec->cpus[i]);
	if (!out->length)
		strbuf_putc(out, '-');
}

/* Builds the guard's argv: self guard LIFE REPORT CPUS -- worker... */
static enum prony_status guard_argv(const struct client_spec *spec, const char *cpus,
				    const char ***out, struct error *err)
{
	static const char life[] = "3", report[] = "4";
	size_t count = 0;
	while (spec->argv[count])
		count++;
	const char **argv = calloc(count + 7, sizeof *argv);
	if (!argv)
		return error_set(err, PRONY_NOMEM, "not enough memory for a command line");
	const char *head[] = {spec->self, "guard", life, report, cpus, "--"};
	memcpy(argv, head, sizeof head);
	memcpy(argv + 6, spec->argv, count * sizeof *argv);
	*out = argv;
	return PRONY_OK;
}

/* Returns the worker's environment rows with the numbers of its channels added. */
static const char **worker_environment(const struct client_spec *spec)
{
	size_t count = 0;
	while (spec->environment && spec->environment[count])
		count++;
	const char **rows = calloc(count + 3, sizeof *rows);
	if (!rows)
		return NULL;
	if (count)
		memcpy(rows, spec->environment, count * sizeof *rows);
	rows[count] = PROTOCOL_ENV_REQUEST "=5";
	rows[count + 1] = PROTOCOL_ENV_REPLY "=6";
	return rows;
}

/* Sends a guard that has joined its CPUs and descriptors; those of its channels are in the order of
 * their numbers, from 1 on. */
static enum prony_status hand_over(struct client *client, const char *cpus,
				   const struct process_fd *fds, size_t count, struct error *err)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(GUARD_JOIN_FDS_MAX * sizeof(int))];
	} control = {.bytes = ""};
	const struct iovec text = {.iov_base = (void *)(uintptr_t)cpus,
				   .iov_len = strlen(cpus) + 1};
	const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)&text,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	struct ucred peer = {.pid = 0};
	socklen_t length = sizeof(peer);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	for (size_t i = 0; i < count; i++)
		memcpy(CMSG_DATA(header) + i * sizeof(int), &fds[i].parent, sizeof(int));
	if (sendmsg(client->spec->join_fd, &message, MSG_NOSIGNAL) < 0 ||
	    getsockopt(client->spec->join_fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
		return error_errno(err, PRONY_CRASHED, errno,
				   "cannot hand a worker's descriptors to its guard");
	client->guard = peer.pid;
	return PRONY_OK;
}

static enum prony_status spawn(struct client *client, struct pipes *pipes, struct error *err)
{
	const struct client_spec *spec = client->spec;
	const char **argv = NULL, **environment = worker_environment(spec);
	struct strbuf cpus;
	strbuf_init(&cpus, 0);
	cpu_list(spec, &cpus);
	enum prony_status status = guard_argv(spec, strbuf_text(&cpus), &argv, err);
	if (status == PRONY_OK && !environment)
		status = error_set(err, PRONY_NOMEM, "not enough memory for an environment");
	if (status == PRONY_OK) {
		struct process_fd fds[] = {
			{.parent = pipes->log[1], .child = 1},
			{.parent = pipes->log[1], .child = 2},
			{.parent = pipes->life[0], .child = FD_LIFE},
			{.parent = pipes->report[1], .child = FD_REPORT},
			{.parent = pipes->request[0], .child = FD_REQUEST},
			{.parent = pipes->reply[1], .child = FD_REPLY},
			{.parent = client->shared.fd, .child = FD_SHARED},
			{.parent = pipes->ready[0], .child = FD_READY},
			{.parent = pipes->freed[1], .child = FD_FREE},
		};
		size_t count = sizeof fds / sizeof *fds - (spec->ring_bytes ? 0 : 2) -
			       (spec->no_shared_memory ? 1 : 0);
		struct process_spec process = {.argv = argv,
					       .environment = environment,
					       .fds = fds,
					       .fd_count = count,
					       .new_group = true};
		client->started_ns = clock_monotonic_ns();
		status = spec->join_fd > 0 ? hand_over(client, strbuf_text(&cpus), fds, count, err)
					   : process_start(&process, &client->guard, err);
	}
	strbuf_release(&cpus);
	free(argv);
	free(environment);
	return status;
}

/* Moves the ends that the parent keeps into the client; close_pipes then closes the rest. */
static void keep_ends(struct client *client, struct pipes *pipes)
{
	int *ours[] = {&client->life_fd, &client->request_fd, &client->report_fd, &client->reply_fd,
		       &client->log_fd,	 &client->ready_fd,   &client->free_fd};
	int *ends[] = {&pipes->life[1], &pipes->request[1], &pipes->report[0], &pipes->reply[0],
		       &pipes->log[0],	&pipes->ready[1],   &pipes->freed[0]};
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		*ours[i] = *ends[i];
		*ends[i] = -1;
		/* The parent's ends do not block, so that no worker can hold it in a read or a
		 * write. */
		if (*ours[i] >= 0)
			fcntl(*ours[i], F_SETFL, O_NONBLOCK);
	}
}

enum prony_status client_start(const struct client_spec *spec, struct client **out,
			       struct error *err)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client)
		return error_set(err, PRONY_NOMEM, "not enough memory for the state of a worker");
	*out = client;
	client->spec = spec;
	client->request_fd = client->reply_fd = client->life_fd = client->report_fd =
		client->log_fd = client->ready_fd = client->free_fd = -1;
	client->rss_peak_bytes = client->user_ns = client->system_ns = -1;
	client->oom_kills = process_oom_kills(PROCESS_HERE);
	client->next_id = 1;
	strbuf_init(&client->line, PROTOCOL_LINE_BYTES_MAX);
	strbuf_init(&client->report, 4096);
	log_buffer_init(&client->log);
	struct pipes pipes;
	enum prony_status status = make_pipes(&pipes, spec->ring_bytes > 0, err);
	if (status == PRONY_OK && !spec->no_shared_memory)
		status = shared_init(&client->shared, spec->records_capacity, spec->tensors_bytes,
				     spec->ring_bytes, err);
	process_adopt_orphans(&client->before);
	if (status == PRONY_OK)
		status = spawn(client, &pipes, err);
	if (status == PRONY_OK)
		keep_ends(client, &pipes);
	close_pipes(&pipes);
	return status;
}

void client_take_ring(struct client *client, struct client_ring *out)
{
	*out = (struct client_ring){.memory = shared_ring(&client->shared),
				    .ready_fd = client->ready_fd,
				    .free_fd = client->free_fd};
	client->ready_fd = client->free_fd = -1;
}
