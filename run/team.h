/* The workers of one process of a cell, its ranks, driven together: every request is sent to all of
 * them before any reply is awaited, the first failure ends all and names its rank, the slowest
 * counts. Most cells have one rank. */
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
	bool profile; /* a profile will be requested of its worker */
};

/* The specs of its workers point into it, so it must not be moved until team_end. */
struct team {
	struct team_member {
		struct client_spec spec;
		struct target target; /* with its rank */
		/* Of its last run, and after team_end; -1 unknown. */
		int64_t began_ns, took_ns, rss_peak_bytes, user_ns, system_ns;
	} members[CLIENTS_MAX];
	struct client *clients[CLIENTS_MAX]; /* by rank; owned */
	struct launcher *launcher;	     /* of MPI's ranks; owned, or NULL */
	size_t count;			     /* workers that were started */
	struct target target;		     /* what all ranks have in common */
};

/* Starts a guard and a worker for each rank of spec->target; its world_size is their number. The
 * ranks share spec->cpus and the limit of memory in equal parts. */
enum prony_status team_start(struct team *team, const struct client_spec *spec, struct error *err);
/* Does the same for a process of a cell; `records` is the capacity for step records, `input` that
 * of the recipe. */
enum prony_status team_launch(struct team *team, const struct launch *launch, size_t records,
			      enum input_mode input, struct error *err);
/* From now on measures how long workers compute nothing (client_spec.rested_ns); NULL: stops
 * measuring. */
void team_watch_rest(struct team *team,
		     int64_t (*rested_ns)(void *context, int64_t from_ns, int64_t to_ns),
		     void *context);

/* Checks one worker's reply, which is borrowed. */
typedef enum prony_status team_check(void *context, size_t rank, const struct client_reply *reply,
				     struct error *err);
/* Sends a request to all (takes the reference of `members`, which may be NULL), then calls `check`
 * for the replies in order of rank. */
enum prony_status team_request(struct team *team, enum protocol_verb verb, json_t *members,
			       team_check *check, void *context, struct error *err);
/* The same with a request for each rank (takes their references). */
enum prony_status team_request_each(struct team *team, enum protocol_verb verb,
				    json_t *const *members, team_check *check, void *context,
				    struct error *err);
/* The run verb. *out is the window of the worker whose steps took longest, with the longest waits
 * of all workers. */
enum prony_status team_run(struct team *team, int64_t steps, enum sync_mode sync, int64_t every,
			   int64_t slot, int64_t timeout_ns, struct client_window *out,
			   struct error *err);
/* The read verb, for one rank or rank 0; its tensors are valid until that rank's next read. */
enum prony_status team_read_rank(struct team *team, size_t rank, const char *what,
				 struct arena *arena, struct tensor_set *out, struct error *err);
enum prony_status team_read(struct team *team, const char *what, struct arena *arena,
			    struct tensor_set *out, struct error *err);
/* Reads the loss of each rank, one scalar. *loss is their mean: a rank may report the loss of its
 * part of the batch or of all of it. PRONY_PROTOCOL if it is missing. */
enum prony_status team_read_loss(struct team *team, double *loss, struct error *err);
/* Reads the logits of all ranks, one after the other as one tensor: the whole batch. */
enum prony_status team_read_logits(struct team *team, struct arena *arena, struct tensor *out,
				   struct error *err);
/* PRONY_MISMATCH names the rank and the parameter unless all ranks hold the same weights, bit for
 * bit. */
enum prony_status team_check_weights(struct team *team, struct error *err);
/* Reads `what` of rank 0 into the arena, where the next read does not overwrite it. */
enum prony_status team_read_kept(struct team *team, const char *what, struct arena *arena,
				 struct tensor_set *out, struct error *err);

/* Ends all workers. *out: the sum of memory and times; log and `how` of the first worker that did
 * not end cleanly, or of rank 0. */
void team_end(struct team *team, struct client_end *out);

/* What workers reported during preparation: the values of rank 0, with the longest times of all. */
struct worker_facts {
	int64_t spawn_ns, import_ns, open_ns, build_ns, feed_ns;
	int64_t threads, mxcsr; /* RECORD_NONE when not stated */
	char precision[16];
	int64_t parameters, macs; /* -1 when unknown */
	unsigned profiles;	  /* available profiles: bits of enum protocol_profile */
	char no_layers[256];	  /* why it has no layers; "" when not stated */
	json_t *details;	  /* version, libraries, settings, notes...; owned */
};

/* Sends hello, supports, open, build and feed of all slots. Fails with PRONY_INVALID when
 * precision, threads or device did not take effect as requested. Announces each stage as an event.
 */
enum prony_status team_prepare(struct team *team, const struct launch *launch,
			       const struct recipe *recipe, struct worker_facts *facts,
			       struct error *err);
void worker_facts_release(struct worker_facts *facts);

/* Returns an error of the caller, which ends the run; events about single stages return none. */
enum prony_status run_emit(const struct run_caller *caller, const struct run_event *event,
			   struct error *err);
void launch_event(const struct launch *launch, enum run_event_kind kind, const char *text);
/* Reports a framework's own description (borrowed); NULL: does nothing. */
enum prony_status emit_framework(const struct run_caller *caller, size_t cell,
				 const json_t *details, struct error *err);

#endif
