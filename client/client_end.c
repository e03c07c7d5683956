/* Ends a worker: sends close if it still listens, then ends its whole tree and reaps it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/process.h"
#include "client/client_internal.h"

#define CLOSE_WAIT_NS INT64_C(30000000000) /* a framework may need long to unload */
#define REAP_WAIT_NS INT64_C(20000000000)

static bool alive(const struct client *client)
{
	return !client->ended && client->report_fd >= 0;
}

static void wait_for_end(struct client *client, int64_t wait_ns)
{
	int64_t deadline = clock_monotonic_ns() + wait_ns;
	while (alive(client) && clock_monotonic_ns() < deadline)
		client_wait(&client, 1, false, deadline);
}

enum prony_status client_hang_up(struct client *client, int64_t timeout_ns, struct error *err)
{
	client_close_fd(&client->request_fd);
	/* Further output is not read, and a channel at its end would keep poll from waiting. */
	client_close_fd(&client->reply_fd);
	client->broken = true;
	wait_for_end(client, client_patience_ns(client, timeout_ns));
	return alive(client)
		       ? error_set(err, PRONY_TIMEOUT, "it still runs after its requests ended")
		       : PRONY_OK;
}

/* Lets the guard finish (it ends the tree when the life pipe closes) and reaps it. */
static void reap(struct client *client)
{
	if (client->closed)
		wait_for_end(client, CLOSE_WAIT_NS);
	bool late = client->closed && alive(client);
	client_close_fd(&client->life_fd);
	int64_t deadline = clock_monotonic_ns() + REAP_WAIT_NS;
	while (client->report_fd >= 0 && clock_monotonic_ns() < deadline)
		client_wait(&client, 1, false, deadline);
	struct process_end end;
	if (client->spec->join_fd > 0) { /* its parent is MPI's launcher */
		if (client->report_fd >= 0)
			kill(client->guard, SIGKILL);
	} else if (process_wait(client->guard, REAP_WAIT_NS, &end, NULL) == PRONY_TIMEOUT) {
		kill(client->guard, SIGKILL);
		process_wait(client->guard, -1, &end, NULL);
	}
	/* A guard that was killed ended no process; its descendants are now children of this
	 * process. */
	if (!client->ended)
		client->left_over = process_end_orphans(&client->before);
	client_drain_log(client);
	if (late)
		snprintf(client->how, sizeof client->how,
			 "it was still running %d s after its reply to close",
			 (int)(CLOSE_WAIT_NS / 1000000000));
}

static void release(struct client *client)
{
	int *fds[] = {&client->request_fd, &client->reply_fd, &client->life_fd, &client->report_fd,
		      &client->log_fd,	   &client->ready_fd, &client->free_fd};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		client_close_fd(fds[i]);
	shared_release(&client->shared);
	log_buffer_release(&client->log);
	strbuf_release(&client->line);
	strbuf_release(&client->report);
	free(client->read_file);
	free(client->records);
	free(client);
}

void client_give_up(struct client *client)
{
	client->broken = true;
}

void client_end(struct client *client, struct client_end *out)
{
	if (!client)
		return;
	client->ending = true;
	if (client->guard > 0) {
		if (client->said_hello && !client->broken && !client->closed)
			client_request(client, VERB_CLOSE, NULL, CLOSE_WAIT_NS, NULL, NULL, NULL,
				       NULL);
		client_close_fd(&client->request_fd);
		client_close_fd(&client->reply_fd);
		reap(client);
	}
	if (out) {
		*out = (struct client_end){.log = log_buffer_text(&client->log),
					   .rss_peak_bytes = client->rss_peak_bytes,
					   .user_ns = client->user_ns,
					   .system_ns = client->system_ns,
					   .left_over = client->left_over,
					   .signalled = client->ended && client->signalled,
					   .exited_zero = client->ended && client->exited_zero,
					   .clean = client->closed && client->exited_zero};
		snprintf(out->how, sizeof out->how, "%s",
			 client->how[0] ? client->how : "it could not be started");
	}
	release(client);
}
