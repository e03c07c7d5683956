/*
 * The workers of one process of a cell, driven as one: every request goes to all of them before any
 * reply is awaited, the first failure ends all, the slowest counts. A cell has one worker today.
 */
#ifndef PRONY_RUN_TEAM_H
#define PRONY_RUN_TEAM_H

#include "client/client.h"
#include "run/run.h"
#include "run/workload.h"

/* What a process of a cell is started with. */
struct launch {
	const struct run_settings *settings;
	const struct run_caller *caller;
	const struct plan_cell *cell;
	size_t index; /* of the cell in the plan */
	struct workload *work;
	const char *folder; /* of its bundle */
	const int *cpus;
	int cpu_count;
	int round, replicate;
	bool profile; /* its worker will be asked for one */
};

/* Its workers have specs of their own, so that it stays where it is until team_end. */
struct team {
	struct team_member {
		struct client_spec spec;
		struct target target; /* with its rank */
	} members[CLIENTS_MAX];
	struct client *clients[CLIENTS_MAX]; /* by rank; owned */
	size_t count;			     /* of those that were started */
};

/* Starts a guard and a worker for each rank of spec->target, whose world_size says how many. */
enum prony_status team_start(struct team *team, const struct client_spec *spec, struct error *err);
/* The same for a process of a cell; `records` is the capacity for step records, `input` that of the
 * recipe. */
enum prony_status team_launch(struct team *team, const struct launch *launch, size_t records,
			      enum input_mode input, struct error *err);
/* Sees from now on how long workers compute nothing (client_spec.rested_ns); NULL: no longer. */
void team_watch_rest(struct team *team,
		     int64_t (*rested_ns)(void *context, int64_t from_ns, int64_t to_ns),
		     void *context);

/* Checks one worker's reply, which it borrows. */
typedef enum prony_status team_check(void *context, size_t rank, const struct client_reply *reply,
				     struct error *err);
/* Asks all (takes the reference of `members`, which may be NULL), then `check`s the replies in
 * order of rank. */
enum prony_status team_request(struct team *team, enum protocol_verb verb, json_t *members,
			       team_check *check, void *context, struct error *err);
/* The run verb. *out is the window of the worker whose steps took longest, with the longest waits
 * of all. */
enum prony_status team_run(struct team *team, int64_t steps, enum sync_mode sync, int64_t every,
			   int64_t slot, int64_t timeout_ns, struct client_window *out,
			   struct error *err);
/* The read verb, of rank 0: its tensors are valid until the next read. */
enum prony_status team_read(struct team *team, const char *what, struct arena *arena,
			    struct tensor_set *out, struct error *err);
/* Reads one scalar of rank 0; PRONY_PROTOCOL when it is not there. */
enum prony_status team_read_loss(struct team *team, double *loss, struct error *err);
/* Reads `what` into the arena: the next read leaves it as it is. */
enum prony_status team_read_kept(struct team *team, const char *what, struct arena *arena,
				 struct tensor_set *out, struct error *err);

/* Ends all. *out: the sum of memory and times; log and `how` of the first one that did not end
 * cleanly, or of rank 0. */
void team_end(struct team *team, struct client_end *out);

/* What workers said of themselves on the way: of rank 0, with the longest times of all. */
struct worker_facts {
	int64_t spawn_ns, import_ns, open_ns, build_ns, feed_ns;
	int64_t threads, mxcsr; /* RECORD_NONE when not stated */
	char precision[16];
	int64_t parameters, macs; /* -1 when it cannot say */
	unsigned profiles;	  /* that it can give: bits of enum protocol_profile */
	char no_layers[256];	  /* why it has no layers; "" when it does not say */
	json_t *details;	  /* version, libraries, settings, notes...; owned */
};

/*
 * hello, supports, open, build, feed of all slots. Fails with PRONY_INVALID when precision, threads
 * or device did not take effect as asked. Announces each stage as an event.
 */
enum prony_status team_prepare(struct team *team, const struct launch *launch,
			       const struct recipe *recipe, struct worker_facts *facts,
			       struct error *err);
void worker_facts_release(struct worker_facts *facts);

/* An error of the caller, which ends the run; the events of single stages give none. */
enum prony_status run_emit(const struct run_caller *caller, const struct run_event *event,
			   struct error *err);
void launch_event(const struct launch *launch, enum run_event_kind kind, const char *text);
/* What a framework says of itself (borrowed); NULL: nothing. */
enum prony_status emit_framework(const struct run_caller *caller, size_t cell,
				 const json_t *details, struct error *err);

#endif
