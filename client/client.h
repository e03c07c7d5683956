/* The parent's end of the worker protocol: starts a worker under a guard, sends requests, checks
 * every reply, ends it. */
#ifndef PRONY_CLIENT_CLIENT_H
#define PRONY_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bundle/target.h"
#include "cell/vocabulary.h"
#include "graph/tensor.h"
#include "samples/protocol.h"

struct client_spec {
	const char *const *argv, *const *environment; /* of the worker */
	const char *self;			      /* prony's executable, for the guard */
	const char *launcher; /* MPI's, which must start several ranks (client/launcher.h); NULL */
	int join_fd; /* a guard that waits there (launcher_join_fd) is used; 0: one is started */
	const struct target *target; /* the target of hello: borrowed; NULL = the CPU, alone */
	const char *bundle;	     /* the case bundle; its folder also replaces shared memory */
	const int *cpus;	     /* cores to bind the worker to; NULL = not bound */
	int cpu_count;
	size_t tensors_bytes;	 /* largest set that will be read, as a safetensors image */
	size_t records_capacity; /* step records */
	bool input_times;	 /* batches arrive during a run: its reply has their times */
	size_t ring_bytes;	 /* if prony loads the batches; else 0 */
	int64_t memory_limit_bytes;
	int64_t timeout_ns; /* of each request without a longer one of its own */
	const volatile int *stop;
	/* Returns how long, between two instants of the monotonic clock, the worker was seen to
	 * compute nothing on any device that can be watched; NULL: it cannot be seen. */
	int64_t (*rested_ns)(void *context, int64_t from_ns, int64_t to_ns);
	void *rested_context;
	bool no_shared_memory; /* offer no shared memory: files of the bundle serve */
	bool profile;	       /* hello announces that a profile will be requested */
};

struct client;

/* Starts guard and worker. Call client_end on *out in any case (it may be NULL). */
enum prony_status client_start(const struct client_spec *spec, struct client **out,
			       struct error *err);

/* Sends a request (`members` may be NULL; its reference is taken) and waits for the reply. *reply
 * is a new reference. An ok:false reply becomes its status and text, even if its id is null because
 * the worker could not read the request. PRONY_PROTOCOL: not JSON, wrong id, line too long;
 * PRONY_CRASHED: the worker ended; PRONY_TIMEOUT; PRONY_OUT_OF_MEMORY: over the limit;
 * PRONY_INTERRUPTED. sent_ns and received_ns bracket the request on prony's clock (may be NULL). */
enum prony_status client_request(struct client *client, enum protocol_verb verb, json_t *members,
				 int64_t timeout_ns, json_t **reply, int64_t *sent_ns,
				 int64_t *received_ns, struct error *err);

/* The same in three steps, for workers that are driven together (run/team.h): client_ask sends the
 * request; client_await waits until each of at most CLIENTS_MAX workers, all asked the same verb,
 * has sent its whole reply; client_take_reply checks it. The first failure ends the wait; workers
 * whose reply is then missing cannot be asked again. After a refusal the others have a second: if
 * one has died, the refusal is its consequence. *failed: the client that the error is about. */
enum { CLIENTS_MAX = TARGET_RANKS_MAX };
struct client_reply {
	json_t *json; /* new reference */
	int64_t sent_ns, received_ns;
};
enum prony_status client_ask(struct client *client, enum protocol_verb verb, json_t *members,
			     int64_t timeout_ns, struct error *err);
enum prony_status client_await(struct client *const *clients, size_t count, size_t *failed,
			       struct error *err);
enum prony_status client_take_reply(struct client *client, struct client_reply *out,
				    struct error *err);

/* Returns PRONY_INVALID when the reply to hello (borrowed) names another framework than `name`,
 * under which the results would be stored. */
enum prony_status client_check_name(const json_t *reply, const char *name, struct error *err);

/* The result of a run request; records are borrowed until the next one. */
struct client_window {
	const struct step_record *records;
	size_t count;
	int64_t wait_ns, copy_ns; /* of batches that arrived meanwhile; 0 if resident */
	int64_t rested_ns; /* time outside the steps in which it computed nothing; 0 if that was
			      short */
};

/* The run verb in two steps: sending the request, and checking the reply. */
enum prony_status client_ask_run(struct client *client, int64_t steps, enum sync_mode sync,
				 int64_t every, int64_t slot, int64_t timeout_ns,
				 struct error *err);
enum prony_status client_take_window(struct client *client, int64_t steps, enum sync_mode sync,
				     int64_t every, struct client_window *out, struct error *err);

/* The run verb. Checks every claim: the count and order of records, and that they lie within the
 * request's own bracket. They must cover all of the bracket except the time that the worker takes
 * to be asked, to answer and to rest (spec->rested_ns). PRONY_INVALID says which claim fails. */
enum prony_status client_run(struct client *client, int64_t steps, enum sync_mode sync,
			     int64_t every, int64_t slot, int64_t timeout_ns,
			     struct client_window *out, struct error *err);

/*
 * The read verb. The tensors point into shared memory or into the arena; valid until the next read.
 */
enum prony_status client_read(struct client *client, const char *what, struct arena *arena,
			      struct tensor_set *out, struct error *err);

/* The profile verb. The worker's report about the steps is in the bundle's file. *sent_ns and
 * *received_ns bracket it on prony's clock. PRONY_INVALID: the steps that it claims are others. */
enum prony_status client_profile(struct client *client, enum protocol_profile what, int64_t steps,
				 int64_t slot, int64_t timeout_ns, int64_t *sent_ns,
				 int64_t *received_ns, struct error *err);

/* For worker-check: sends any bytes as one line and takes the reply to them, ok or not. The id of
 * the reply must be the value of client_next_id() before the call, or null with ok:false. */
enum prony_status client_send_raw(struct client *client, const char *bytes, size_t length,
				  int64_t timeout_ns, json_t **reply, struct error *err);
int64_t client_next_id(const struct client *client);

/*
 * For worker-check: ends the requests without a close; PRONY_TIMEOUT when the worker does not end.
 */
enum prony_status client_hang_up(struct client *client, int64_t timeout_ns, struct error *err);

struct client_end {
	char *log; /* stdout and stderr, at most 1 MiB (head and tail); caller frees */
	int64_t rss_peak_bytes, user_ns, system_ns; /* of the worker's tree; -1 unknown */
	char how[128];	/* "exit code 0", "killed by signal 11 (Segmentation fault)" */
	int left_over;	/* processes below the worker that outlived it and had to be killed */
	bool signalled; /* a signal ended it */
	bool exited_zero;
	bool clean; /* it replied to close and exited 0 */
};

/* From now on it is asked nothing more: client_end ends it without a close. */
void client_give_up(struct client *client);

/* Asks the worker to close if it still can, waits briefly, ends the whole tree and reaps it. Never
 * fails; frees the client. NULL is allowed. */
void client_end(struct client *client, struct client_end *out);

/* The parent's end of the ring of batches (client_spec.ring_bytes): its memory, which lives until
 * client_end, and two non-blocking pipe ends, which the caller owns. */
struct client_ring {
	void *memory;
	int ready_fd; /* for writing */
	int free_fd;  /* for reading */
};
void client_take_ring(struct client *client, struct client_ring *out);

int64_t client_started_ns(const struct client *client);
/* Whether its reply to the last request has come. */
bool client_answered(const struct client *client);
/* Whether it has said hello and can be asked more. */
bool client_listens(const struct client *client);
/* Returns the pid of the guard; the worker and its children are the processes below it. */
pid_t client_guard(const struct client *client);
bool client_uses_shared_memory(const struct client *client);
/* Returns how many records fit into the records region of the shared memory. */
int64_t client_record_room(const struct client *client);

#endif
