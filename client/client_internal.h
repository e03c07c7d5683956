/* Private to the client: its state and the steps that its sources share. */
#ifndef PRONY_CLIENT_CLIENT_INTERNAL_H
#define PRONY_CLIENT_CLIENT_INTERNAL_H

#include "base/process.h"
#include "base/strbuf.h"
#include "client/client.h"
#include "client/log_buffer.h"
#include "client/shared_memory.h"

/* Descriptor numbers in the worker, and the guard's own two. */
enum {
	FD_LIFE = 3,
	FD_REPORT = 4,
	FD_REQUEST = 5,
	FD_REPLY = 6,
	FD_SHARED = 7,
	FD_READY = 8,
	FD_FREE = 9
};

struct client {
	const struct client_spec *spec; /* borrowed until client_end */
	pid_t guard, worker;
	int request_fd, reply_fd, life_fd, report_fd, log_fd; /* own ends; -1 = closed */
	int ready_fd, free_fd; /* of the ring, until client_take_ring */
	struct strbuf line, report;
	struct log_buffer log;
	struct shared shared;
	bool uses_shared, said_hello, closed;
	bool broken; /* nothing more can be asked */
	bool ending; /* interruptions no longer matter: it gets a moment to close */
	int64_t next_id, started_ns, oom_kills;
	/* The request in progress. */
	struct client_request_state {
		enum protocol_verb verb;
		int64_t id, patience_ns, deadline_ns, sent_ns, received_ns;
		bool answered; /* its line has arrived */
	} asked;
	char *read_file; /* content of the last read's file, for workers without shared memory */
	struct step_record *records;   /* of the last run: a copy that the worker cannot change */
	struct process_orphans before; /* orphans adopted before the worker started */
	char how[128];
	int64_t rss_peak_bytes, user_ns, system_ns;
	int left_over;
	bool ended, signalled, exited_zero;
	int exec_errno;
};

static inline int64_t client_patience_ns(const struct client *client, int64_t timeout_ns)
{
	return timeout_ns > 0 ? timeout_ns : client->spec->timeout_ns;
}

static inline bool client_interrupted(const struct client *client)
{
	return !client->ending && client->spec->stop && *client->spec->stop;
}

void client_close_fd(int *fd);

/* Waits at most until the deadline for any input from these workers or their guards, and if
 * `writing` also until one can take more of a request. Takes in logs and reports. */
void client_wait(struct client *const *clients, size_t count, bool writing, int64_t deadline_ns);

/* Reads what the worker printed and the guard reported so far. */
void client_drain_log(struct client *client);
void client_drain_report(struct client *client);

/* Checks before a request that the user has not interrupted and that no line has come that would be
 * taken for the reply. */
enum prony_status client_may_ask(struct client *client, const char *verb, struct error *err);

/* Sends bytes; PRONY_TIMEOUT if the worker does not read them. `verb` is for messages. */
enum prony_status client_send(struct client *client, const char *verb, const char *bytes,
			      size_t length, int64_t deadline_ns, struct error *err);

/* Reads the part of a reply that has come into client->line; *complete: its newline has come. After
 * an error the worker cannot be asked any more. */
enum prony_status client_read_line(struct client *client, const char *verb, int64_t deadline_ns,
				   bool *complete, struct error *err);

#endif
